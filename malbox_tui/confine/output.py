"""What a confined process prints: always read, so that it never blocks, and kept up to a cap."""

from __future__ import annotations

import asyncio
import os

_READ_BYTES = 64 * 1024
_READS_AT_ONCE = 8
"""A pipe holds 64 KiB; more reads in one step only follow a process that prints as fast as it is read."""


class CappedOutput:
    """The reading end of a pipe. What goes beyond `cap_bytes` since the last `take` is thrown away, and that is said."""

    def __init__(self, cap_bytes: int) -> None:
        self._cap_bytes = cap_bytes
        self._kept = bytearray()
        self._cut_bytes = 0
        self._read_fd, self.write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read_fd, self._drain)
        self._open = True

    def take(self) -> bytes:
        """What was printed until now, and not yet taken."""
        if self._open:
            self._drain()
        taken = bytes(self._kept)
        if self._cut_bytes:
            taken += b"\n[%d more bytes were cut here]\n" % self._cut_bytes
        self._kept.clear()
        self._cut_bytes = 0
        return taken

    def close_writer(self) -> None:
        """Let go of the writing end, which a process has by now. A second call does nothing."""
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def close(self) -> None:
        """Read what is there and let go of the pipe; what was kept can still be taken."""
        self.close_writer()
        if self._open:
            self._drain()
        self._shut()

    def _drain(self) -> None:
        for _ in range(_READS_AT_ONCE):
            try:
                chunk = os.read(self._read_fd, _READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                chunk = b""
            if not chunk:
                self._shut()
                return
            room = self._cap_bytes - len(self._kept)
            self._kept += chunk[: max(0, room)]
            self._cut_bytes += max(0, len(chunk) - max(0, room))

    def _shut(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._read_fd)
            os.close(self._read_fd)
