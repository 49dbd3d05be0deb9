"""A connection to a store that can't write, whoever may write beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

WAIT_S = 5.0
ROOM_BYTES = 64 << 10
"""What SQLite makes beside a store takes half of it to begin with (https://www.sqlite.org/walformat.html#the_wal_index_file_format)."""


def read_only(path: Path, wait_s: float = WAIT_S) -> sqlite3.Connection:
    """To the store at `path`, which must exist; a lock is waited for so long. Raises sqlite3.Error.

    SQLite makes files beside a store to read it, for those who write it meanwhile. In a folder where nobody can (a disk that is mounted
    read-only, or full; a copy of a store that is kept) it is told that none does: https://www.sqlite.org/wal.html#read_only_databases
    """
    options = "mode=ro&immutable=1" if _stands_still(path) else "mode=ro"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, isolation_level=None, timeout=wait_s)


def _stands_still(path: Path) -> bool:
    """Nothing can be made beside it, and nothing lies there: whoever writes has his log there."""
    try:
        return not _has_room(path.parent) and _has_a_log(path) and not path.with_name(f"{path.name}-wal").exists()
    except OSError:  # whatever that is shows when the store is opened
        return False


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= ROOM_BYTES


def _has_a_log(path: Path) -> bool:
    """Whether it is written by way of a log (https://www.sqlite.org/fileformat.html#file_format_version_numbers)."""
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\x02\x02"
