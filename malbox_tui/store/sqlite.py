"""The store on disk: one SQLite file, written by one coroutine and read beside it.

`synchronous=FULL` in WAL mode makes a commit survive a power cut; a normal one only survives a crash of the process
(https://www.sqlite.org/pragma.html#pragma_synchronous).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import Event, EventBody
from malbox_tui.model.intake import IntakeEntry, IntakePage, IntakeView, LineQuery
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import Identification
from malbox_tui.model.task import Task
from malbox_tui.ports import Added, Change, ClaimRequest, NewTask, PendingEntry, StoreIdentity
from malbox_tui.store import rules
from malbox_tui.store.answers import Answer
from malbox_tui.store.failures import store_error
from malbox_tui.store.migrations import migrate
from malbox_tui.store.requests import Adding, Changing, Claiming, Entering, Identifying, Noting, Renewing, Request
from malbox_tui.store.sqlite_connection import BUSY_TIMEOUT_MS, Connection, connect_to_write
from malbox_tui.store.sqlite_reader import SqliteReader
from malbox_tui.store.sqlite_writer import SqliteWriter
from malbox_tui.store.statements import migrations, statement
from malbox_tui.store.whereabouts import Whereabouts

log = logging.getLogger(__name__)

KEPT_EVENTS = 200_000

OLDEST_SQLITE = (3, 37, 0)
"""The first with STRICT tables (https://www.sqlite.org/stricttables.html)."""

_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    f"busy_timeout = {BUSY_TIMEOUT_MS}",
    "foreign_keys = ON",
    f"journal_size_limit = {64 << 20}",
)


class Spawn(Protocol):
    """Starts a coroutine as an asyncio task that someone owns."""

    def __call__(self, work: Coroutine[Any, Any, None], /, *, name: str) -> asyncio.Task[None]: ...


class SqliteStore:
    """A `Store`, its `ActionBook` and its `IntakeBook`, in the file `path`, whose folder must exist.

    `spawn` starts its writer, which ends with `close`.
    At `open` the oldest events are dropped until `kept_events` (at least 1) are left.
    """

    def __init__(self, path: Path, spawn: Spawn, *, kept_events: int = KEPT_EVENTS) -> None:
        if kept_events < 1:
            raise ValueError("the last event is always kept: its number must not be given again")
        self._path = path
        self._spawn = spawn
        self._kept_events = kept_events
        self._reader = SqliteReader(path)
        self._connection: Connection | None = None
        self._writer: SqliteWriter | None = None
        self._running: asyncio.Task[None] | None = None

    async def open(self, on_commit: Callable[[Sequence[Event]], None]) -> StoreIdentity:
        """As `Store.open`; also raises `StoreError` when it is open already or the file is another program's."""
        if self._running is not None:
            raise StoreError(f"{self._path} is open already.")
        try:
            connection = await self._connect()
            engine_id, epoch, last_seq = await connection.run(self._prepare)
            await self._reader.open()
            counts = await self._reader.counts()
            where = await connection.run(lambda _connection: Whereabouts.of(self._path))
        except (sqlite3.Error, OSError) as exc:
            await self._release()
            raise store_error(exc, str(self._path)) from exc
        except BaseException:
            await self._release()
            raise
        self._writer = SqliteWriter(connection, where, engine_id, epoch, on_commit)
        self._running = self._spawn(self._run(self._writer), name="store-writer")
        return StoreIdentity(engine_id, epoch, last_seq, counts)

    async def close(self) -> None:
        """As `Store.close`. Cancelled: closing goes on without the caller."""
        if self._writer is not None and self._running is not None:
            self._writer.stop()
            await asyncio.wait({self._running})
        await self._release()
        self._writer = self._running = None

    async def add(self, new: NewTask) -> Added:
        """As `Store.add`."""
        request = Adding(new, Answer("a task for sample %s", new.sha256))
        self._hand_over(request)
        return await request.answer

    async def claim(self, request: ClaimRequest) -> Task | None:
        """As `Store.claim`."""
        claiming = Claiming(request, Answer("the claim of task %d", request.task_id))
        self._hand_over(claiming)
        return await claiming.answer

    def write(self, change: Change) -> Awaitable[None]:
        """As `Store.write`."""
        rules.check_change(change)
        request = Changing(change, Answer("task %d as %s", change.before.id, change.after.state))
        self._hand_over(request)
        return request.answer

    def note(self, at: float, news: EventBody) -> Awaitable[None]:
        """As `Store.note`."""
        request = Noting(at, news, Answer("the event %s", type(news).__name__))
        self._hand_over(request)
        return request.answer

    async def renew(self, tokens: Sequence[str], lease_until: float) -> frozenset[str]:
        """As `Store.renew`."""
        request = Renewing(tuple(tokens), lease_until, Answer("a renewal of leases"))
        self._hand_over(request)
        return await request.answer

    async def identify(self, sha256: str, identification: Identification) -> None:
        """As `Store.identify`."""
        request = Identifying(sha256, identification, Answer("the kind of sample %s", sha256))
        self._hand_over(request)
        await request.answer

    async def check(self) -> None:
        """As `Store.check`."""
        if self._writer is not None:
            await self._writer.check()

    async def pending(self) -> Sequence[PendingEntry]:
        """As `Store.pending`."""
        return await self._reader.pending()

    async def owned(self) -> Sequence[Task]:
        """As `Store.owned`."""
        return await self._reader.owned()

    async def tasks(self, query: TaskQuery, clock: float) -> TaskPage:
        """As `Store.tasks`."""
        return await self._reader.tasks(query, clock)

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """As `Store.events`."""
        return await self._reader.events(after, limit)

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """As `ActionBook.actions`."""
        return await self._reader.actions(before, limit)

    def enter(self, entry: IntakeEntry) -> Awaitable[None]:
        """As `IntakeBook.enter`."""
        request = Entering(entry, Answer("a line of the intake of %s", entry.head.actor))
        self._hand_over(request)
        return request.answer

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """As `IntakeBook.intakes`."""
        return await self._reader.intakes(before, limit)

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """As `IntakeBook.intake_lines`."""
        return await self._reader.intake_lines(query)

    def _hand_over(self, request: Request) -> None:
        if self._writer is None:
            request.answer.fail(StoreError(f"{self._path} is not open."))
        else:
            self._writer.hand_over(request)

    async def _connect(self) -> Connection:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            needed = ".".join(map(str, OLDEST_SQLITE))
            raise StoreError(f"SQLite {needed} or newer is needed; this Python has {sqlite3.sqlite_version}.")
        _create_private(self._path)
        self._connection = await connect_to_write(self._path)
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> tuple[str, int, int]:
        """Migrate, prune and begin an epoch; returns the store's id, the epoch and the last event's number."""
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        migrate(connection, self._path, migrations())
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(statement("prune_events"), (self._kept_events,))
        ((engine_id, epoch),) = connection.execute(statement("begin_epoch")).fetchall()
        ((_, last_seq),) = connection.execute(statement("counters")).fetchall()
        connection.execute("COMMIT")
        return engine_id, epoch, last_seq

    async def _run(self, writer: SqliteWriter) -> None:
        try:
            await writer.run()
        finally:
            await self._release()

    async def _release(self) -> None:
        """Empty the WAL into the store and close both connections: one left open keeps the process from exiting."""
        connection, self._connection = self._connection, None
        try:
            await self._reader.close()
            if connection is not None:
                await connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as exc:
            log.warning("the write-ahead log of %s is left for the next start: %s", self._path, exc)
        finally:
            if connection is not None:
                await connection.close()


def _create_private(path: Path) -> None:
    """SQLite gives its files the mode of the main one, so that one is made first."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
