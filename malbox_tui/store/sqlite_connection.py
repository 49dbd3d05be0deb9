"""Connections to SQLite whose thread can take several statements in one step.

aiosqlite crosses to its thread and back for each statement; a transaction of eight would cross sixteen times, and between two of
them a cancelled caller could leave it open. `Connection.run` crosses once, so a transaction is one call that nothing interrupts.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import aiosqlite

from malbox_tui.store.read_only import read_only

T = TypeVar("T")

BUSY_TIMEOUT_MS = 5000


class Connection(aiosqlite.Connection):
    """As aiosqlite's, with `run`. One that is not closed keeps the process from exiting."""

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` returns or raises in the connection's thread. Cancelled: it goes on, and its result is dropped."""
        result: T = await self._execute(work, self._conn)  # type: ignore[no-untyped-call]
        return result


async def connect_to_write(path: Path) -> Connection:
    """A connection that reads and writes; the file is made if there is none."""
    return await _connected(lambda: sqlite3.connect(path, isolation_level=None))


async def connect_to_read(path: Path) -> Connection:
    """A connection that can't write."""
    return await _connected(lambda: read_only(path))


async def _connected(connector: Callable[[], sqlite3.Connection]) -> Connection:
    connection = Connection(connector, iter_chunk_size=64)
    try:
        await connection
    except BaseException:
        # Its thread answers once more, to a loop that may have closed by then.
        await asyncio.to_thread(connection._thread.join)
        raise
    return connection
