"""Folders for what is on its way, and removing those that a process left behind which was killed.

Each is locked (flock(2)) by the process that made it for as long as that lives: the kernel lets go of the lock when it ends, however it
does. So one that can be locked is nobody's. In the moment between making and locking a folder it is young, and let be.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from malbox_tui.confine.removal import remove_tree

log = logging.getLogger(__name__)

PREFIX = "malbox-unpacking-"
YOUNG_S = 60.0
"""A folder that changed within this may be one that is about to be locked."""


class OwnFolder:
    """A new folder in `parent`, locked until `remove`. Making it raises OSError."""

    def __init__(self, parent: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove it with all that is in it, and let go of it. Raises OSError when something stays."""
        try:
            remove_tree(self.path)
        finally:
            os.close(self._lock)


def remove_leftovers(parent: Path, now: float) -> int:
    """Remove the folders of processes that are gone; returns how many. Blocking; what can't be removed is logged, and no error."""
    removed = 0
    with suppress(FileNotFoundError), os.scandir(parent) as entries:
        for name in [entry.name for entry in entries if entry.name.startswith(PREFIX)]:
            path = parent / name
            try:
                with _nobodys(path, now) as is_nobodys:
                    if is_nobodys:
                        remove_tree(path)
                        removed += 1
            except OSError as error:
                log.warning("a folder that was left behind can't be removed: %s", error)
    return removed


@contextmanager
def _nobodys(path: Path, now: float) -> Iterator[bool]:
    """Whether it is a folder of ours that nobody has locked; while entered, nobody else has it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mtime > now - YOUNG_S:
            yield False
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
