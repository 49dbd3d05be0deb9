"""Contents on their way: a small one stays in memory, a larger one in a file of its own that has no name as soon as it is handed on.

Files are written and read in threads. A content that is handed on lets go of its file when it was read, closed or forgotten.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

from malbox_tui.intake.threaded import ThreadedSteps

MEMORY_BYTES = 1024 * 1024
_CHUNK_BYTES = 1024 * 1024


class Spool:
    """One content; `place` is where its file lies as long as it is not handed on. Writing raises OSError, and then it is dropped."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._small = bytearray()
        self._descriptor: int | None = None
        self._is_over = False
        self._writing = threading.Lock()
        """A cancelled wait doesn't stop the write that is under way in its thread: closing waits for that, and no other one begins."""
        self.size_bytes = 0

    async def write(self, chunk: bytes) -> None:
        """Append."""
        if self._descriptor is None and self.size_bytes + len(chunk) <= MEMORY_BYTES:
            self._small += chunk
        else:
            await self._in_thread(chunk)
        self.size_bytes += len(chunk)

    async def settle(self) -> Path:
        """Keep it as the file `place`, which others may read; it is handed on so."""
        await self._in_thread(b"")
        assert self._descriptor is not None
        os.fchmod(self._descriptor, 0o444)
        self._close()
        return self._place

    def hand_on(self) -> AsyncIterator[bytes]:
        """Its chunks."""
        if self._descriptor is None:
            return _in_memory(bytes(self._small))
        self._place.unlink()
        descriptor, self._descriptor = self._descriptor, None
        return ThreadedSteps(_FileChunks(descriptor))

    def drop(self) -> None:
        """Forget it. A second call does nothing, and neither does one after it was handed on."""
        if self._close():
            with suppress(OSError):
                self._place.unlink()
        self._small.clear()

    async def _in_thread(self, chunk: bytes) -> None:
        try:
            await asyncio.to_thread(self._write, chunk)
        except OSError:
            self.drop()
            raise

    def _write(self, chunk: bytes) -> None:
        with self._writing:
            if self._is_over:
                return
            if self._descriptor is None:
                self._descriptor = os.open(self._place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                _write_all(self._descriptor, self._small)
                self._small.clear()
            _write_all(self._descriptor, chunk)

    def _close(self) -> bool:
        """Whether there was a file."""
        with self._writing:
            self._is_over = True
            descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return False
        os.close(descriptor)
        return True


def taken_out(place: Path) -> AsyncIterator[bytes]:
    """The chunks of a settled file, which has no name any more. Raises OSError."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    place.unlink()
    return ThreadedSteps(_FileChunks(descriptor))


class _FileChunks:
    """Of an open file without a name, from its beginning."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        self._offset = 0

    def __next__(self) -> bytes:
        if self._descriptor is None:
            raise StopIteration
        chunk = os.pread(self._descriptor, _CHUNK_BYTES, self._offset)
        if not chunk:
            raise StopIteration
        self._offset += len(chunk)
        return chunk

    def __iter__(self) -> Iterator[bytes]:
        return self

    def close(self) -> None:
        """Let go of the file. A second call does nothing."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def _write_all(descriptor: int, content: bytes | bytearray) -> None:
    view = memoryview(bytes(content))
    while view:
        view = view[os.write(descriptor, view) :]


async def _in_memory(content: bytes) -> AsyncIterator[bytes]:
    if content:
        yield content
