"""All watched folders of an engine, those that are added later too, looked after until they are closed: each is looked into when its
files are due, when the kernel hints at a change, and now and then in any case.

What goes wrong in one folder, whatever it is, ends neither the others nor the engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from malbox_tui.intake.watching.hints import FolderHints
from malbox_tui.intake.watching.standing import troubles_of
from malbox_tui.intake.watching.watched_folder import TRY_AGAIN_S, WatchedFolder
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.sample import visible
from malbox_tui.model.watching import WatchView

log = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
"""How often a folder is looked into without a hint, where that is quick."""
SHARE_OF_TIME = 0.05
"""How much of the time looking without a hint may take: a folder of many files is looked into less often."""
LEAST_PAUSE_S = 0.05
"""Between two looks, hints or not; as long as the last one took, where that is longer."""


class FolderWatch:
    """Everything but `views` and `troubles` belongs to one event loop."""

    def __init__(self, folders: Sequence[WatchedFolder]) -> None:
        self._watched = [_Watched(folder) for folder in folders]
        self._ending: list[_Watched] = []
        self._closed = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None

    @property
    def views(self) -> tuple[WatchView, ...]:
        """How it is with each folder, in order."""
        return tuple(watched.folder.standing.view for watched in tuple(self._watched))

    @property
    def troubles(self) -> tuple[str, ...]:
        """What an operator has to know of them."""
        return troubles_of(self.views)

    async def run(self) -> None:
        """Until `close`."""
        async with asyncio.TaskGroup() as self._group:
            for watched in self._watched:
                self._begin(watched)
            await self._closed.wait()

    def add(self, folder: WatchedFolder) -> None:
        """Look after this one too. No other of its path may be there, and none that is still coming to its end (`is_ending`)."""
        watched = _Watched(folder)
        self._watched.append(watched)
        if not self._closed.is_set():
            self._begin(watched)

    def remove(self, path: str) -> None:
        """Take nothing more of the folder of this path; what is being handed in is handed in to its end."""
        gone = [watched for watched in self._watched if watched.folder.settings.path == path]
        self._watched = [watched for watched in self._watched if watched not in gone]
        self._ending += gone if self._group is not None else []
        for watched in gone:
            watched.close()

    def is_ending(self, path: str) -> bool:
        """Whether something of a folder that was removed is still being handed in."""
        return any(watched.folder.settings.path == path for watched in self._ending)

    def reload(self, max_sample_bytes: int) -> None:
        """From now on samples may be so large."""
        for watched in self._watched:
            watched.folder.max_sample_bytes = max_sample_bytes

    def close(self) -> None:
        """Take nothing more; what is being handed in is handed in to its end."""
        self._closed.set()
        for watched in self._watched:
            watched.close()

    def _begin(self, watched: _Watched) -> None:
        if self._group is not None:
            self._group.create_task(self._watch(watched), name=f"watched folder {visible(watched.folder.settings.path)}")

    async def _watch(self, watched: _Watched) -> None:
        folder, wake, closed = watched.folder, watched.wake, watched.closed
        hinting = _Hinting(folder, wake)
        loop = asyncio.get_running_loop()
        try:
            while not closed.is_set():
                wake.clear()
                began = loop.time()
                due_s = await self._look(folder, began)
                if hinting.follow():
                    due_s = 0.0  # Something may have come since.
                took_s = loop.time() - began
                await _until(closed, max(LEAST_PAUSE_S, took_s))
                every_s = max(LOOK_EVERY_S, took_s / SHARE_OF_TIME)
                rest_s = (every_s if due_s is None else min(due_s, every_s)) - (loop.time() - began)
                if rest_s > 0 and not closed.is_set():
                    await _until(wake, rest_s)
        except EngineStopped:
            log.debug("watched folder %s: the engine has ended", visible(folder.settings.path))
        finally:
            hinting.close()
            if watched in self._ending:
                self._ending.remove(watched)

    async def _look(self, folder: WatchedFolder, now: float) -> float | None:
        try:
            return await folder.look(now)
        except EngineStopped:
            raise
        except Exception as error:  # whatever lies in a folder: it must not end the engine, and is told
            log.exception("watched folder %s", visible(folder.settings.path))
            folder.standing.trouble("broken", f"It could not be looked after ({error!r}); it is tried again.")
            return TRY_AGAIN_S


@dataclass(slots=True, eq=False)
class _Watched:
    """A folder, what ends the watch over it, and what wakes that."""

    folder: WatchedFolder
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        self.closed.set()
        self.wake.set()


class _Hinting:
    """The hints for one folder, as long as it is the same one."""

    def __init__(self, folder: WatchedFolder, wake: asyncio.Event) -> None:
        self._folder = folder
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._hints: FolderHints | None = None
        self._of: tuple[int, int] | None = None
        self._not_before = 0.0

    def follow(self) -> bool:
        """Listen where the folder is now; whether that is new. A kernel that listens no more is asked again only after a while."""
        now = self._loop.time()
        is_same = self._of == self._folder.identity
        if self._hints is not None and (not is_same or self._hints.is_over):
            self.close()
        if self._hints is not None or self._folder.identity is None or (is_same and now < self._not_before):
            return False
        self._of, self._not_before = self._folder.identity, now + TRY_AGAIN_S
        settings = self._folder.settings
        self._hints = FolderHints(settings.path, self._hint, recursive=settings.recursive)
        return True

    def close(self) -> None:
        """Listen no more."""
        if self._hints is not None:
            self._hints.close()
            self._hints = None

    def _hint(self) -> None:
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self._wake.set)


async def _until(event: asyncio.Event, within_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
