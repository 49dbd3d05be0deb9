"""The bytes of an archive, read at any place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .codecs import READ_BYTES


class Source:
    """An open file; reading behind its end gives what is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        self.size_bytes = os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Let go of it."""
        self._file.close()

    def opened(self) -> BinaryIO:
        """It once more, for who closes it."""
        return self.path.open("rb")

    def at(self, offset: int, count: int) -> bytes:
        """At most `count` bytes from `offset` on."""
        if offset < 0 or count <= 0 or offset >= self.size_bytes:
            return b""
        return os.pread(self._file.fileno(), min(count, self.size_bytes - offset), offset)

    def chunks(self, offset: int = 0, count: int | None = None) -> Iterator[bytes]:
        """`count` bytes from `offset` on (None: all), as far as they are there."""
        end = self.size_bytes if count is None else min(self.size_bytes, offset + count)
        while offset < end:
            chunk = self.at(offset, min(READ_BYTES, end - offset))
            if not chunk:
                return
            yield chunk
            offset += len(chunk)

    def find(self, sought: bytes, offset: int) -> int:
        """The first place of `sought` from `offset` on; -1 when there is none."""
        while offset < self.size_bytes:
            block = self.at(offset, 1 << 20)
            place = block.find(sought)
            if place >= 0:
                return offset + place
            if len(block) < len(sought):
                return -1
            offset += len(block) - len(sought) + 1
        return -1
