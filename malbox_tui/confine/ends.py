"""Processes by descriptors, which never come to mean another process: the end of a child, and the first process of a sandbox's PID
namespace, with which the kernel ends all of the namespace."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path


class FirstProcess:
    """That process, which is the only child of the process `launcher_pid` that was spawned.

    While the launcher lives, the child's id can't become another process's: nobody else reaps it.
    """

    def __init__(self, launcher_pid: int) -> None:
        self._launcher_pid = launcher_pid
        self._pid = 0
        self._fd: int | None = None

    def find(self) -> bool:
        """Whether it is known. To be called only while the launcher has not been reaped."""
        if self._fd is None:
            pid = self._launcher_pid
            with suppress(OSError, ValueError):
                self._pid = _only_child(pid)
                self._fd = os.pidfd_open(self._pid)
        return self._fd is not None

    def free_bytes_inside(self, path: str) -> int | None:
        """The room that is left on the file system at `path` as the sandbox sees it; None when that can't be told.

        The namespace's first process stands outside of the sandbox's files, its own child inside.
        """
        try:
            room = os.statvfs(f"/proc/{_only_child(self._pid)}/root{path}")
        except (OSError, ValueError):
            return None
        return room.f_bavail * room.f_frsize

    def kill(self) -> None:
        """End it and all of its namespace, without waiting for that; nothing happens when it isn't known."""
        if self._fd is not None:
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._fd, signal.SIGKILL)

    async def gone(self) -> None:
        """Returns when the namespace is empty, and at once when the process isn't known."""
        if self._fd is not None:
            await _readable(asyncio.get_running_loop(), self._fd)

    def close(self) -> None:
        """Let go of it. A second call does nothing."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _only_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def family_of(pid: int) -> Iterator[int]:
    """The process `pid` and all that descend from it, by their ids, read as they are asked for: there may be many. Those that ended and
    were not reaped are among them."""
    seen = {pid}
    unread = [pid]
    while unread:
        parent = unread.pop()
        yield parent
        children = _children(parent) - seen
        seen |= children
        unread += children


def _children(pid: int) -> set[int]:
    found: set[int] = set()
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found.update(map(int, (thread / "children").read_text().split()))
    return found


class EndWatch:
    """Calls `tell` once, soon after the child process `pid` has ended; `close` lets go of it."""

    def __init__(self, pid: int, tell: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._tell = tell
        self._fd = -1
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._loop.call_soon(tell)
        else:
            self._loop.add_reader(self._fd, self._ended)

    def close(self) -> None:
        """A second call does nothing."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _ended(self) -> None:
        self.close()
        self._tell()


async def _readable(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    ready: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        loop.remove_reader(fd)
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, tell)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
