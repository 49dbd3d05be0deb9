"""Reading a SQLite store, from the engine's process or any other, while an engine may be writing it.

Each read is one statement and so sees one moment. The connection is read-only: it can't begin a write, migrate or checkpoint.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import Event
from malbox_tui.model.intake import IntakePage, IntakeView, LineQuery
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.task import Task, TaskState
from malbox_tui.ports import PendingEntry
from malbox_tui.store.failures import store_error
from malbox_tui.store.intake_rows import intake_of, page_of_lines
from malbox_tui.store.migrations import store_version
from malbox_tui.store.rows import Row, action_of, event_of, json_text, pending_entries, record_of, task_of
from malbox_tui.store.sqlite_connection import BUSY_TIMEOUT_MS, Connection, connect_to_read
from malbox_tui.store.statements import migrations, statement

T = TypeVar("T")

_CONDITIONS: Mapping[str, str] = {
    "task_ids": "task.id IN (SELECT value FROM json_each(:task_ids))",
    "states": "task.state IN (SELECT value FROM json_each(:states))",
    "sha256_prefix": "task.sha256 >= :sha256_prefix AND task.sha256 < :sha256_prefix || 'g'",
    "name_contains": "task.sha256 IN (SELECT sha256 FROM sample_name WHERE instr(name, :name_contains) > 0)",
    "sha256s": "task.sha256 IN (SELECT value FROM json_each(:sha256s))",
    "archive": "task.sha256 IN (SELECT sha256 FROM sample_name WHERE archive = :archive AND archive <> '')",
    "owner": "task.owner = :owner AND task.owner <> ''",
    "nobody": "task.owner = ''",
}
"""A field of `TaskFilter` → its condition; `nobody` is an empty `owner`. 'g' sorts after every hexadecimal digit, and `<> ''` is
what the index of owners is made for."""

_ORDERS: Mapping[TaskSort, str] = {
    TaskSort.NEWEST: "task.id DESC",
    TaskSort.OLDEST: "task.id",
    TaskSort.QUEUE: "task.priority DESC, task.id",
    TaskSort.ENDED: "task.finished_at IS NULL, task.finished_at, task.id",
}


_AFTER_ALL = 2**63 - 1
"""A number that no event reaches."""


class SqliteReader:
    """Read-only access to the store at `path`. Every read raises `StoreError` when the file can't be read, or before `open`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: Connection | None = None

    async def open(self) -> None:
        """Make it usable; nothing happens when it is already.

        Raises `StoreTooNew`, and `StoreError` when there is no store yet or an engine must migrate it first.
        """
        if self._connection is not None:
            return
        if not self._path.exists():
            raise self._no_store()
        try:
            self._connection = await connect_to_read(self._path)
            version = await self._connection.run(self._version)
        except sqlite3.Error as exc:
            await self.close()
            raise store_error(exc, str(self._path)) from exc
        except BaseException:
            await self.close()
            raise
        if version < migrations()[-1].number:
            await self.close()
            raise self._no_store() if version == 0 else self._older()

    async def close(self) -> None:
        """Let go of the file. A second call does nothing. Cancelled: it is let go of all the same."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def tasks(self, query: TaskQuery, clock: float) -> TaskPage:
        """The window of tasks that `query` asks for, at most `MAX_ROWS` rows."""
        asked = _asked(query.where)
        where, order = " AND ".join(_CONDITIONS[name] for name in asked) or "true", _ORDERS[query.sort]
        offset = ":offset" if query.around is None else statement("offset_around").format(where=where, order=order)
        sql = statement("tasks").format(where=where, order=order, offset=offset)
        window = {"limit": max(0, min(query.limit, MAX_ROWS)), "offset": max(0, query.offset), "around": query.around}
        total, first, records = await self._read(sql, asked | window, _page_of)
        return TaskPage(rows=records, total=total, offset=first, clock=clock)

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """At most `limit` stored events with a `seq` above `after`, in order."""
        return await self._read(statement("events"), (after, max(0, limit)), lambda rows: [event_of(row) for row in rows])

    async def latest_events(self, limit: int) -> Sequence[Event]:
        """At most `limit` stored events, the last of all, in order."""
        return await self._read(
            statement("latest_events"), (max(0, limit),), lambda rows: [event_of(row) for row in reversed(rows)]
        )

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """As `ActionBook.actions`."""
        window = (_AFTER_ALL if before is None else before, max(0, limit))
        return await self._read(statement("actions"), window, lambda rows: [action_of(row) for row in rows])

    async def rows(self, sql: str, parameters: Row, make: Callable[[Row], T]) -> list[T]:
        """What `make` makes of each row of a statement."""
        return await self._read(sql, parameters, lambda rows: [make(row) for row in rows])

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """As `IntakeBook.intakes`."""
        window = (_AFTER_ALL if before is None else before, max(0, limit))
        return await self._read(statement("intakes"), window, lambda rows: [intake_of(row) for row in rows])

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """As `IntakeBook.intake_lines`."""
        limit = max(0, min(query.limit, MAX_ROWS))
        fates = None if query.fates is None else json_text(sorted(query.fates))
        asked = {"intake": query.intake, "after": query.after, "fates": fates, "limit": limit + 1}
        return await self._read(statement("intake_lines"), asked, lambda rows: page_of_lines(query.intake, rows, limit))

    async def counts(self) -> dict[TaskState, int]:
        """How many tasks are in each state; every state is there."""
        stored = await self._read(statement("counts"), (), lambda rows: {TaskState(state): count for state, count in rows})
        return {state: stored.get(state, 0) for state in TaskState}

    async def pending(self) -> Sequence[PendingEntry]:
        """All pending tasks, in no order."""
        return await self._read(statement("pending"), (), lambda rows: list(pending_entries(rows)))

    async def owned(self) -> Sequence[Task]:
        """All tasks that an attempt owns, by id."""
        return await self._read(statement("owned"), (), lambda rows: [task_of(row) for row in rows])

    def _version(self, connection: sqlite3.Connection) -> int:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        return store_version(connection, self._path, migrations()[-1].number)

    async def _read(self, sql: str, parameters: Any, make: Callable[[list[Row]], T]) -> T:
        """What `make` makes of the rows; it works in the connection's thread, so that a large answer doesn't hold the loop up."""
        if self._connection is None:
            raise StoreError(f"{self._path} is closed.")
        try:
            return await self._connection.run(lambda connection: make(connection.execute(sql, parameters).fetchall()))
        except (sqlite3.Error, ValueError, OverflowError) as exc:
            raise store_error(exc, str(self._path)) from exc

    def _older(self) -> StoreError:
        return StoreError(f"{self._path} is of an older version. Start malbox-tui once to bring it up to date.")

    def _no_store(self) -> StoreError:
        return StoreError(f"There is no store at {self._path} yet. `malbox-tui analyze PATH` begins one.")


def _page_of(rows: list[Row]) -> tuple[int, int, tuple[TaskRecord, ...]]:
    total, first = rows[0][:2]
    return total, first, tuple(record_of(row[2:]) for row in rows if row[2] is not None)


def _asked(where: TaskFilter) -> dict[str, Any]:
    """The conditions that a filter sets, with their parameters."""
    parameters: dict[str, Any] = {}
    if where.task_ids is not None:
        parameters["task_ids"] = json_text(where.task_ids)
    if where.states is not None:
        parameters["states"] = json_text(sorted(where.states))
    if where.sha256_prefix is not None:
        parameters["sha256_prefix"] = where.sha256_prefix.lower()
    if where.name_contains is not None:
        parameters["name_contains"] = where.name_contains
    if where.sha256s is not None:
        parameters["sha256s"] = json_text([sha256.lower() for sha256 in where.sha256s])
    if where.archive is not None:
        parameters["archive"] = where.archive.lower()
    if where.owner is not None:
        parameters["owner" if where.owner else "nobody"] = where.owner
    return parameters
