"""Where what comes of a task's run in its guest is kept: as results of one plugin, each whole or not there at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from malbox_tui.engine import clock
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import GuestSession, PluginJob, ResultStore, ResultWriter

T = TypeVar("T")

PIECE_BYTES = 256 * 1024
"""What is written or hashed at once; others have their turn after each piece."""


class Shelf:
    """The results of `plugin` in one attempt. Each call raises `StoreError` when the store can't keep what it is given."""

    def __init__(self, results: ResultStore, job: PluginJob, plugin: str) -> None:
        self.plugin = plugin
        self._results = results
        self._job = job
        self._kept: dict[str, ResultRef] = {}

    @property
    def kept(self) -> tuple[ResultRef, ...]:
        """What is there, in the order in which it came."""
        return tuple(self._kept.values())

    def has(self, name: str) -> bool:
        """Whether there is a result of this name."""
        return name in self._kept

    async def keep(self, name: str, content: bytes, format: str) -> ResultRef:
        """Keep a content."""

        async def write_all(write: Callable[[bytes], None]) -> None:
            await in_pieces(content, write)

        return (await self._streamed(name, format, write_all))[0]

    async def keep_json(self, name: str, value: object) -> ResultRef:
        """Keep a value."""
        return await self.keep(name, msgspec.json.encode(value), "json")

    async def pull(self, session: GuestSession, path: str, name: str, max_bytes: int) -> tuple[ResultRef, bool]:
        """Bring the first `max_bytes` of a guest's file in; and whether that was all. Raises what the conversation does."""
        return await self._streamed(name, "file", lambda write: session.pull(path, write, max_bytes))

    def place_for(self, name: str) -> Path:
        """Where a hypervisor may write a file for `take_in`."""
        return self._results.place_for(self._job.task_id, self._job.token, self.plugin, name)

    async def take_in(self, name: str, max_bytes: int) -> bool:
        """Keep what was written to `place_for`, at most its first `max_bytes`; whether that was all."""
        reference, is_whole = await self._results.take_in(self._job.task_id, self._job.token, self.plugin, name, max_bytes)
        self._put(reference)
        return is_whole

    async def _streamed(
        self, name: str, format: str, source: Callable[[Callable[[bytes], None]], Awaitable[T]]
    ) -> tuple[ResultRef, T]:
        writer = self._begin(name, format)
        try:
            answer = await source(writer.write)
            reference = writer.commit()
        except BaseException:
            writer.abort()
            raise
        return self._put(reference), answer

    def _begin(self, name: str, format: str) -> ResultWriter:
        return self._results.begin(self._job.task_id, self._job.token, self.plugin, name, format)

    def _put(self, reference: ResultRef) -> ResultRef:
        self._kept[reference.name] = reference
        return reference


async def in_pieces(content: bytes, take: Callable[[bytes], object]) -> None:
    """Hand a content to `take`, `PIECE_BYTES` at a time."""
    take(content[:PIECE_BYTES])
    for at in range(PIECE_BYTES, len(content), PIECE_BYTES):
        await clock.sleep(0)
        take(content[at : at + PIECE_BYTES])


def plain_text(text: str, max_characters: int) -> str:
    """A text of a guest as one that JSON can hold, cut."""
    return text[:max_characters].encode("utf-8", "backslashreplace").decode()


def as_text(content: bytes) -> str:
    """Bytes of a guest as text that JSON can hold."""
    return content.decode("utf-8", "backslashreplace")
