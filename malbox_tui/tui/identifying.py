"""Finds out what the first files of a drop are while its preview is open.

1. The files are read here, where they are, and what they are is said by a confined plugin: nothing of them is parsed here.
2. It is bounded in files and in their size, and each file is asked about once.
3. Nobody waits for it: cancelled, its process is ended and its folder removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from malbox_tui.model.errors import MalboxError, RefusedContent
from malbox_tui.model.overview import ProfileView
from malbox_tui.model.report import Identification
from malbox_tui.ports import Client, Identifier, Intake
from malbox_tui.tui.identified import Identified

IDENTIFIED_FILES = 50
IDENTIFIED_BYTES = 16 * 1024**2
"""Of a larger one it is not said what it is."""
PASSED_THINGS = 1000
"""After so many, files or not, no other one is looked at."""


class Identifying:
    """Looks at what it was told of last; `changed` is called whenever it has come further."""

    def __init__(
        self, open_identifier: Callable[[], AbstractAsyncContextManager[Identifier]], client: Client, changed: Callable[[], None]
    ) -> None:
        self._open_identifier = open_identifier
        self._client = client
        self._changed = changed
        self._wanted: tuple[Intake, Sequence[bytes]] | None = None
        self._is_told = asyncio.Event()
        self._known: dict[bytes, Identification | None] = {}
        self.state = Identified()

    def look(self, intake: Intake, paths: Sequence[bytes]) -> None:
        """Look at the files that `intake` finds there, and no more at others."""
        self._wanted = intake, paths
        if not self.state.problem:
            self.state = replace(self.state, done=False)
        self._is_told.set()

    async def run(self) -> None:
        """Until it is cancelled, or nothing can be identified on this host."""
        self.state = Identified(profiles=await self._profiles())
        try:
            async with self._open_identifier() as identifier:
                while True:
                    await self._is_told.wait()
                    self._is_told.clear()
                    await self._look_through(identifier)
        except (MalboxError, OSError) as error:
            self._tell((), problem=str(error), done=True)

    async def _profiles(self) -> tuple[ProfileView, ...]:
        try:
            return (await self._client.overview()).profiles
        except MalboxError:
            return ()

    async def _look_through(self, identifier: Identifier) -> None:
        assert self._wanted is not None
        intake, paths = self._wanted
        found: list[Identification | None] = []
        self._tell(found)
        passed = 0
        async for offer in intake.files(paths):
            if self._is_told.is_set():
                return
            passed += 1
            if offer.content is not None:
                place = offer.name.origin or offer.name.name
                if place not in self._known:
                    self._known[place] = await identifier.identify(_bounded(offer.content))
                found.append(self._known[place])
                self._tell(found)
            if len(found) == IDENTIFIED_FILES or passed == PASSED_THINGS:
                break
        self._tell(found, done=True)

    def _tell(self, found: Sequence[Identification | None], *, problem: str = "", done: bool = False) -> None:
        self.state = replace(self.state, found=tuple(found), problem=problem, done=done)
        self._changed()


async def _bounded(content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    size_bytes = 0
    async for chunk in content:
        size_bytes += len(chunk)
        if size_bytes > IDENTIFIED_BYTES:
            raise RefusedContent("too_large", "It is too large to be looked into beforehand.")
        yield chunk
