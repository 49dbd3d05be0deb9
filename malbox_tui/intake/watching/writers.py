"""Whether somebody has a file open for writing.

The kernel tells it for one's own files: a read lease (fcntl(2), F_SETLEASE) is given only while nobody has. For files of others, and on
file systems without leases, the open files of all processes that may be looked at are gone through (proc(5)); what neither shows, only
standing still can tell.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from malbox_tui.intake.watching.looking import Found, OpenFolder, parent_of

PROCESSES = Path("/proc")


def being_written(root: OpenFolder, files: Iterable[Found]) -> set[bytes]:
    """Paths of those that somebody has open for writing."""
    written: set[bytes] = set()
    unknown: list[Found] = []
    for found in files:
        told = _lease_tells(root, found)
        if told:
            written.add(found.path)
        elif told is None:
            unknown.append(found)
    open_ones = by_processes({found.identity for found in unknown})
    return written | {found.path for found in unknown if found.identity in open_ones}


def by_lease(descriptor: int) -> bool | None:
    """Whether the file, open for reading, is open for writing somewhere; None: no lease tells.

    Somebody who opens it in the moment the lease is held waits for its end. The kernel sends a signal then, SIGIO unless another one is
    chosen: that would end this process, and SIGURG, which is passed over, doesn't.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return None
    with suppress(OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def by_processes(files: Collection[tuple[int, int]], processes: Path = PROCESSES) -> set[tuple[int, int]]:
    """Those of `files`, each (device, inode), that a process has open for writing, as far as it may be looked at."""
    found: set[tuple[int, int]] = set()
    if not files:
        return found
    for process in _numbered(processes):
        for open_file in _numbered(process / "fd"):
            with suppress(OSError, ValueError):
                seen = open_file.stat()
                identity = (seen.st_dev, seen.st_ino)
                if identity in files and _is_for_writing(process / "fdinfo" / open_file.name):
                    found.add(identity)
    return found


def _numbered(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (entry for entry in folder.iterdir() if entry.name.isdecimal())


def _is_for_writing(description: Path) -> bool:
    for line in description.read_text().splitlines():
        word, _, value = line.partition(":")
        if word == "flags":
            return int(value, 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def _lease_tells(root: OpenFolder, found: Found) -> bool | None:
    try:
        with parent_of(found.path, root.descriptor) as (folder, name):
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return False
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, dir_fd=folder)
    except OSError:
        return None
    try:
        return by_lease(descriptor)
    finally:
        os.close(descriptor)
