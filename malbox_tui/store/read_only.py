"""A connection to a store that can't write, whoever may write beside it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

WAIT_S = 5.0


def read_only(path: Path, wait_s: float = WAIT_S) -> sqlite3.Connection:
    """To the store at `path`, which must exist; a lock is waited for so long. Raises sqlite3.Error.

    SQLite makes files beside a store to read it, for those who write it meanwhile. In a folder where nobody can (a disk that is mounted
    read-only, a copy of a store that is kept) it is told that none does: https://www.sqlite.org/wal.html#read_only_databases
    """
    options = "mode=ro&immutable=1" if _stands_still(path) else "mode=ro"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, isolation_level=None, timeout=wait_s)


def _stands_still(path: Path) -> bool:
    """Nothing can be made beside it, and nothing lies there that isn't in it yet."""
    return not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
