"""What it costs to write through aiosqlite: the rows of tasks that do nothing, committed in groups by two prototypes of a writer.

One crosses to aiosqlite's thread once a transaction and is woken by a future of its own; the other is a thread with a queue, which
answers all callers of a transaction in one step of the loop. Rows, statements and grouping are the same; neither is an engine.
"""

from __future__ import annotations

import asyncio
import importlib.util
import queue
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from malbox_tui.engine.tracker import TaskTracker
from tests.benchmarks.figures import Comparison, Figure, median
from tests.benchmarks.filled_store import add_first
from tests.benchmarks.fresh_process import in_a_fresh_process
from tests.benchmarks.workload import WORKERS, processor_s

TASKS = 5_000
RUNS = 3
BATCH_LIMIT = 512
PEER = "sqlite3 in a thread of its own"

Write = list[tuple[str, tuple[Any, ...]]]
"""The statements of one durable step, each with its row."""


class Writer(Protocol):
    """Makes writes durable, many in one transaction."""

    def hand_over(self, write: Write) -> asyncio.Future[None]:
        """Done when it is committed."""
        ...

    async def close(self) -> None:
        """After all answers."""
        ...


def measure() -> Iterator[Figure]:
    """Wall and processor time for the three durable steps of a task, through aiosqlite, with the ratio to the thread."""
    if importlib.util.find_spec("aiosqlite") is None:
        yield Figure("aiosqlite_task_us", None, "µs", 0, missing="aiosqlite is not installed")
        return
    through, beside = [], []
    for _ in range(RUNS):
        through.append(in_a_fresh_process(task_us, AiosqliteWriter, TASKS))
        beside.append(in_a_fresh_process(task_us, ThreadWriter, TASKS))
    for place, name in enumerate(("aiosqlite_task_us", "aiosqlite_task_processor_us")):
        ours = median(name, [run[place] for run in through], "µs", tasks=TASKS)
        peer = median(name, [run[place] for run in beside], "µs", tasks=TASKS)
        assert ours.value is not None
        assert peer.value is not None
        yield ours
        compared = Comparison(peer=PEER, embedded=True, ratio=peer.value / ours.value)
        yield median(name, [run[place] for run in beside], "µs", compared=compared, tasks=TASKS)


def task_us(writer: Callable[[Path], Writer], tasks: int) -> tuple[float, float]:
    """Wall and processor microseconds for each of `tasks`, several of which are under way at once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite3"
        asyncio.run(add_first(path))
        return asyncio.run(_task_us(path, writer, tasks))


async def _task_us(path: Path, make: Callable[[Path], Writer], tasks: int) -> tuple[float, float]:
    steps, writer, numbers = Steps(path), make(path), iter(range(tasks))

    async def drive() -> None:
        for number in numbers:
            for write in steps.of_task(number):
                await writer.hand_over(write)

    before, start = processor_s(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(drive())
    wall, processor = time.perf_counter() - start, processor_s() - before
    await writer.close()
    return wall / tasks * 1e6, processor / tasks * 1e6


class Steps:
    """Makes the rows of a task's adding, claiming and end after those that the store itself made for its first task."""

    def __init__(self, path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.row_factory = sqlite3.Row
        self._rows = {
            table: dict(connection.execute(f"SELECT * FROM {table} LIMIT 1").fetchone())
            for table in ("sample", "sample_name", "task", "event")
        }
        connection.close()

    def of_task(self, number: int) -> Iterator[Write]:
        content, task = f"{number:064x}", number + 2
        names = {"id": task, "sha256": content}
        add = [self._insert("sample", sha256=content), self._insert("sample_name", **names), self._insert("task", **names)]
        yield [*add, self._insert("event", seq=None)]
        token = f"{number:032x}"
        yield [_move(task, "pending", "initializing", token, 1.0), self._insert("event", seq=None)]
        yield [_move(task, "initializing", "completed", None, None), self._insert("event", seq=None)]

    def _insert(self, table: str, **changed: object) -> tuple[str, tuple[Any, ...]]:
        row = self._rows[table] | changed
        return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())


def _move(task: int, before: str, after: str, token: str | None, lease_until: float | None) -> tuple[str, tuple[Any, ...]]:
    stages = '{"initializing":1.0,"running":1.0,"stopping":1.0}'
    return (
        "UPDATE task SET state = ?, worker = ?, token = ?, lease_until = ?, stages = ?, stage_since = ? WHERE id = ? AND state = ?",
        (after, "worker", token, lease_until, stages, 1.0, task, before),
    )


def _commit(connection: sqlite3.Connection, batch: Sequence[Write]) -> None:
    """All in one transaction, a statement's rows together."""
    grouped: dict[str, list[tuple[Any, ...]]] = {}
    for write in batch:
        for statement, row in write:
            grouped.setdefault(statement, []).append(row)
    connection.execute("BEGIN IMMEDIATE")
    for statement, rows in grouped.items():
        connection.executemany(statement, rows)
    connection.execute("COMMIT")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _answer(futures: Sequence[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)


class AiosqliteWriter:
    """A coroutine that gathers what comes while a transaction is under way, and a connection of aiosqlite."""

    def __init__(self, path: Path) -> None:
        self._waiting: list[tuple[Write, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._running = TaskTracker().spawn(self._run(path), name="writer")

    def hand_over(self, write: Write) -> asyncio.Future[None]:
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append((write, answer))
        self._wake.set()
        return answer

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.wait({self._running})

    async def _run(self, path: Path) -> None:
        import aiosqlite

        async with aiosqlite.Connection(lambda: _connect(path), iter_chunk_size=64) as connection:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while batch := self._waiting[:BATCH_LIMIT]:
                    del self._waiting[:BATCH_LIMIT]
                    writes = [write for write, _ in batch]
                    await connection._execute(_commit, connection._conn, writes)  # type: ignore[no-untyped-call]
                    _answer([answer for _, answer in batch])


class ThreadWriter:
    """A thread that waits on a queue."""

    def __init__(self, path: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: queue.SimpleQueue[tuple[Write, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(path,), daemon=True)
        self._thread.start()

    def hand_over(self, write: Write) -> asyncio.Future[None]:
        answer = self._loop.create_future()
        self._waiting.put((write, answer))
        return answer

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self, path: Path) -> None:
        connection = _connect(path)
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while len(batch) < BATCH_LIMIT and not self._waiting.empty() and (another := self._waiting.get()) is not None:
                batch.append(another)
            _commit(connection, [write for write, _ in batch])
            self._loop.call_soon_threadsafe(_answer, [answer for _, answer in batch])
        connection.close()
