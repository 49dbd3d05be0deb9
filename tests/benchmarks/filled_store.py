"""A store with many pending tasks, made in seconds: one task is added by the real store, and SQLite copies its rows."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.sample import SampleName
from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import NewTask
from malbox_tui.store.sqlite import SqliteStore

FIRST = NewTask("f" * 64, 64, SampleName(b"sample"), 0.0, 0, 300.0, RequirementClass())


def fill(path: Path, tasks: int) -> None:
    """Make the store `path` with `tasks` (at least 1) pending tasks of priority 0, each of a content of its own.

    Contents are spread as real ones are, but in the order of the ids: anything else takes four times as long. No events of the copies
    are stored.
    """
    asyncio.run(add_first(path))
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        content = f"printf('%015x%049x', number * {(2**60 - 1) // (tasks + 1)}, 0)"
        connection.execute("PRAGMA cache_size = -400000")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        _copy(connection, "sample", tasks, {"sha256": content})
        _copy(connection, "sample_name", tasks, {"id": "number", "sha256": content})
        _copy(connection, "task", tasks, {"id": "number", "sha256": content})
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


async def add_first(path: Path) -> None:
    """Make the store with one task, `FIRST`."""
    store = SqliteStore(path, TaskTracker().spawn)
    await store.open(lambda _events: None)
    await store.add(FIRST)
    await store.close()


def _copy(connection: sqlite3.Connection, table: str, up_to: int, changed: dict[str, str]) -> None:
    """Copies 2 … `up_to` of the one row of `table`; `changed` maps columns to expressions over `number`."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changed.get(column, column) for column in columns)
    connection.execute(
        "WITH RECURSIVE counted (number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM counted WHERE number < ?) "
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} "
        f"FROM counted CROSS JOIN (SELECT * FROM {table}) WHERE number <= ?",
        (up_to, up_to),
    )
