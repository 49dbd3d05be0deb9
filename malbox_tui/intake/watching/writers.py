"""Whether somebody has a file open for writing.

The kernel tells it for one's own files: a read lease (fcntl(2), F_SETLEASE) is given only while nobody has. For files of others, and on
file systems without leases, the open files of all processes that may be looked at are gone through (proc(5)); what neither shows, only
standing still can tell.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

PROCESSES = Path("/proc")


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
