"""Takes what a hypervisor's process writes into a pipe. So no file of ours has to be reachable or writable for its user, each is 0600
and ours, and how much comes is bounded here."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

PIECE_BYTES = 256 * 1024
LOOK_UP_MS = 250
"""How often a drain looks whether it is to give up."""


class Drain:
    """Reads `fd` in a thread until all who write into the pipe have closed it, and closes it.

    `take` is called in that thread with each piece; False, or an OSError, ends the reading. Whoever writes then gets EPIPE.
    """

    def __init__(self, fd: int, take: Callable[[bytes], bool]) -> None:
        self._fd = fd
        self._take = take
        self._given_up = threading.Event()
        self._over = threading.Event()
        self.error: OSError | None = None
        self.is_cut = False
        """`take` wanted no more."""
        threading.Thread(target=self._read, daemon=True, name="libvirt-drain").start()

    def join(self, limit_s: float | None = None) -> bool:
        """Wait, in a thread, until it is over; whether it is."""
        return self._over.wait(limit_s)

    def give_up(self) -> None:
        """Read no more."""
        self._given_up.set()

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        try:
            while not self._given_up.is_set():
                if poll.poll(LOOK_UP_MS):
                    piece = os.read(self._fd, PIECE_BYTES)
                    if not piece:
                        return
                    if not self._take(piece):
                        self.is_cut = True
                        return
        except OSError as error:
            self.error = error
        finally:
            os.close(self._fd)
            self._over.set()


def new_file(path: os.PathLike[str]) -> int:
    """A new file that is ours alone, open for writing. Raises `OSError`."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def write_all(fd: int, piece: bytes | bytearray | memoryview) -> None:
    """Raises `OSError`."""
    rest = memoryview(piece)
    while rest:
        rest = rest[os.write(fd, rest) :]
