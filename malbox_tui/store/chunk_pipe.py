"""Carries a content from the event loop, where it is produced, to a thread that reads it like a file."""

from __future__ import annotations

import asyncio
import queue


class PipeBroken(Exception):
    """The other end has given up."""


class ChunkPipe:
    """At most `DEPTH` chunks lie between the two ends, so a slow reader slows the producer down, without blocking the loop.

    The loop's end calls `put` for each chunk, then `finish` or `break_off`, which a reader that waits notices at once. The thread's end
    calls `read`.
    """

    DEPTH = 4

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Semaphore(self.DEPTH)
        self._chunks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._rest = memoryview(b"")
        self._reader_gone = False

    # --- on the loop ---

    async def put(self, chunk: bytes) -> None:
        """Hand a chunk over; waits while the reader is behind. Raises `PipeBroken` when the reader has left."""
        if not chunk:
            return
        await self._room.acquire()
        if self._reader_gone:
            raise PipeBroken
        self._chunks.put(chunk)

    def finish(self) -> None:
        """The content is whole."""
        self._chunks.put(b"")

    def break_off(self) -> None:
        """The content ends here and is not whole. After `finish` it does nothing."""
        self._chunks.put(None)

    # --- in the reading thread ---

    def read(self, size: int) -> bytes:
        """At most `size` bytes, as many as are there; empty at the end. Raises `PipeBroken`."""
        if not self._rest:
            chunk = self._chunks.get()
            if chunk is None:
                raise PipeBroken
            if not chunk:
                self.finish()
            self._rest = memoryview(chunk)
            self._loop.call_soon_threadsafe(self._room.release)
        piece = bytes(self._rest[:size])
        self._rest = self._rest[size:]
        return piece

    def leave(self) -> None:
        """The reader reads no more; who waits to put need not."""
        self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._reader_gone = True
        for _ in range(self.DEPTH):
            self._room.release()
