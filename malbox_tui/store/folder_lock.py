"""The lock that makes a data folder one engine's, and names its holder to everyone else.

It is a `flock` on a file (flock(2)): the kernel lets go of it when the last descriptor of the opened file is closed, so also when the
process is killed. The descriptor is closed on exec, so no child keeps it.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from malbox_tui.model.errors import DataFolderInUse
from malbox_tui.model.sample import visible
from malbox_tui.store.failures import store_error

LOCK_NAME = "engine.lock"

_HOLDER_LIMIT = 64 << 10
"""Bytes that are read of what a holder wrote about itself."""
_LOOKS = 100
_LOOK_EVERY_S = 0.01
"""So often and so long after each other it is looked who holds the lock: between taking it and writing who it is, a holder may be
held up, and what the one before left is still there."""


class _Holder(msgspec.Struct, frozen=True):
    pid: int
    since: str
    command: str


class FolderLock:
    """The lock of `folder`, which must exist. `acquire` takes it, `close` gives it back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def acquire(self, at: float) -> None:
        """Take the lock without waiting; `at` is the wall time that others will be told. Does nothing when it is held here already.

        Raises `DataFolderInUse` when another process, or another `FolderLock`, holds it, and `StoreError`.
        """
        if self._descriptor is not None:
            return
        try:
            self._descriptor = self._take(at)
        except OSError as exc:
            raise store_error(exc, str(self._folder / LOCK_NAME)) from exc

    def close(self) -> None:
        """Let go. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # a disk that fails: the next holder writes over it all the same
                os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def _take(self, at: float) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._folder / LOCK_NAME, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(_ourselves(at)), 0)
        except BlockingIOError:
            holder = _wait_for_holder(descriptor)
            os.close(descriptor)
            raise self._in_use(holder) from None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _in_use(self, holder: _Holder | None) -> DataFolderInUse:
        if holder is None:
            return DataFolderInUse(str(self._folder), None, None, None)
        return DataFolderInUse(str(self._folder), holder.pid, holder.since, holder.command)


def _ourselves(at: float) -> _Holder:
    since = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return _Holder(os.getpid(), since, visible(" ".join(sys.orig_argv)))


def _wait_for_holder(descriptor: int) -> _Holder | None:
    """Who holds the lock. One that is never seen alive is of another namespace of processes, or was not written over."""
    holder = None
    for _ in range(_LOOKS):
        holder = _read_holder(descriptor)
        if holder is not None and _lives(holder.pid):
            break
        time.sleep(_LOOK_EVERY_S)
    return holder


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _read_holder(descriptor: int) -> _Holder | None:
    """What the holder wrote, or the one before it; None when nobody did."""
    try:
        return msgspec.json.decode(os.pread(descriptor, _HOLDER_LIMIT, 0), type=_Holder)
    except msgspec.DecodeError:
        return None
