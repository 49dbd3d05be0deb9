"""The one coroutine that writes to a SQLite store, and the rules it keeps.

1. Only it uses the read-write connection, so no transaction is ever shared; a transaction is one call in the connection's thread,
   so no cancellation reaches into one.
2. While one commit is under way, requests gather; the next transaction takes them all (at most `BATCH_LIMIT`), so the cost of a
   sync is shared by everyone who waits. While many ask, it also waits some turns of the loop for more of them.
3. Events are numbered inside the transaction and told after its commit, before the callers are answered.
4. No failure ends it: a failed transaction is answered to its callers, and the next one is tried.

The gathered requests are not bounded here: each caller that awaits its answers has one at a time, and an attempt hands over no more
changes than it has stages.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Callable, Generator, Sequence
from types import coroutine

from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import Event
from malbox_tui.store.failures import store_error
from malbox_tui.store.pending_tasks import PendingTasks
from malbox_tui.store.requests import Request
from malbox_tui.store.sqlite_batch import Counters, Effects, Ledger, SomeMovesLost, SqliteBatch
from malbox_tui.store.sqlite_connection import Connection
from malbox_tui.store.statements import statement
from malbox_tui.store.whereabouts import Whereabouts

log = logging.getLogger(__name__)

BATCH_LIMIT = 512
"""Requests in one transaction, so that its memory, and a caller's longest wait, stay small."""


QUIET_TURNS = 3
"""After how many turns of the loop that bring no request the writer stops gathering: whoever was answered last asks again within a
few. Measured with 16 producers and 16 workers: with 0, adds, claims and changes are a transaction each, and the commits of a no-op
task take 48 µs of processor time; with 3 they share one, and it is 26. More turns change nothing."""

GATHERING_TURNS = 16
"""After how many turns it stops in any case."""


class SqliteWriter:
    """Takes requests with `hand_over` and carries them out in `run`, which returns after `stop`."""

    def __init__(
        self,
        connection: Connection,
        where: Whereabouts,
        engine_id: str,
        epoch: int,
        on_commit: Callable[[Sequence[Event]], None],
    ) -> None:
        self._connection = connection
        self._where = where
        self._place = str(where.path)
        self._engine_id = engine_id
        self._epoch = epoch
        self._on_commit = on_commit
        self._counters: Counters | None = None
        self._pending = PendingTasks()
        self._waiting: deque[Request] = deque()
        self._wake = asyncio.Event()
        self._stopping = False
        self._last_size = 0

    def hand_over(self, request: Request) -> None:
        """Put a request into the next transaction. After `stop` it is answered with an error."""
        if self._stopping:
            request.answer.fail(StoreError(f"{self._place} is closed."))
            return
        self._waiting.append(request)
        self._wake.set()

    async def check(self) -> None:
        """Raises `StoreError` when nothing would be kept."""
        await self._connection.run(lambda _connection: self._where.check())

    def stop(self) -> None:
        """Let `run` return when everything that was handed over is answered."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Write until stopped. Cancelled: all that wait get a `StoreError`; the transaction under way may still be kept."""
        batch: list[Request] = []
        try:
            while self._waiting or not self._stopping:
                if not self._waiting:
                    await self._wake.wait()
                self._wake.clear()
                await self._gather()
                batch = [self._waiting.popleft() for _ in range(min(BATCH_LIMIT, len(self._waiting)))]
                if batch:
                    self._last_size = len(batch)
                    await self._serve(batch)
                batch.clear()
        finally:
            self._stopping = True
            for request in (*batch, *self._waiting):
                request.answer.fail(StoreError(f"The writer of {self._place} was stopped before this was known to be stored."))
            self._waiting.clear()

    async def _gather(self) -> None:
        """While many ask, let those who are about to come along. A lone request is not kept waiting."""
        waiting, quiet = len(self._waiting), 0
        if waiting == 1 and self._last_size <= 1:
            return
        for _ in range(GATHERING_TURNS):
            if self._stopping or waiting >= BATCH_LIMIT or quiet == QUIET_TURNS:
                return
            await _next_turn()
            quiet = quiet + 1 if len(self._waiting) == waiting else 0
            waiting = len(self._waiting)

    async def _serve(self, batch: Sequence[Request]) -> None:
        try:
            effects = await self._connection.run(lambda connection: self._store(connection, batch))
        except Exception as exc:  # noqa: BLE001 - whatever it is, callers are answered and the writer lives
            self._counters = None
            await self._give_up(batch, exc)
            return
        self._counters = effects.counters
        self._tell(effects.events)
        for answer, value in effects.answers:
            answer.give(value)
        for answer, error in effects.failures:
            answer.fail(error)
        # The connection's thread keeps its last call and result until the next; the answers must not live on with them.
        effects.answers.clear()
        effects.failures.clear()

    def _store(self, connection: sqlite3.Connection, batch: Sequence[Request]) -> Effects:
        """Runs in the connection's thread. Carries the batch out; when a move was lost, once more to find out which."""
        try:
            try:
                return self._transaction(connection, batch, careful=False)
            except SomeMovesLost:
                self._roll_back(connection)
                return self._transaction(connection, batch, careful=True)
        except BaseException:
            # SQLite has rolled back by itself on some errors, a full disk among them; then this does nothing
            # (https://www.sqlite.org/lang_transaction.html).
            self._roll_back(connection)
            raise

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        self._pending.clear()
        connection.rollback()

    def _transaction(self, connection: sqlite3.Connection, batch: Sequence[Request], *, careful: bool) -> Effects:
        self._where.check()
        connection.execute("BEGIN IMMEDIATE")
        counters = self._counters or Counters(*connection.execute(statement("counters")).fetchone())
        ledger = Ledger(self._engine_id, self._epoch, counters, self._pending)
        effects = SqliteBatch(connection, ledger, careful=careful).run(batch)
        connection.execute("COMMIT")
        return effects

    async def _give_up(self, batch: Sequence[Request], exc: Exception) -> None:
        """Answer with the failure. Where the fault may lie in one request's values, the others are tried without it."""
        if isinstance(exc, StoreError):
            for request in batch:
                request.answer.fail(StoreError(str(exc)))
            return
        if len(batch) > 1 and not isinstance(exc, sqlite3.OperationalError):
            for request in batch:
                await self._serve([request])
            return
        if not isinstance(exc, sqlite3.Error):
            log.error("a request to %s could not be carried out", self._place, exc_info=exc)
        for request in batch:
            request.answer.fail(store_error(exc, self._place))

    def _tell(self, events: Sequence[Event]) -> None:
        if not events:
            return
        try:
            self._on_commit(events)
        except Exception:
            log.exception("the events of a commit could not be told")


@coroutine
def _next_turn() -> Generator[None, None, None]:
    """Returns when every callback that is due now has been called."""
    yield
