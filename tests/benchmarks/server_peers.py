"""Peers that keep their tasks in a server, each as its own documentation has it, client and workers in one process.

`address` is what `servers` yields for the server. Their processor time leaves out the server's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from malbox_tui.engine import clock
from malbox_tui.engine.tracker import TaskTracker
from tests.benchmarks.workload import PAUSE_S, WORKERS, Measured, Workload, processor_s, produce

STARTED_S = 0.7
"""Until a worker that was started listens."""
LOOK_S = 0.02


class _Bodies:
    """What the watched tasks tell, by number: when they were entered, and when they were told to stop."""

    def __init__(self) -> None:
        self.entered: dict[int, asyncio.Future[float]] = {}
        self.stopped: dict[int, asyncio.Future[float]] = {}

    def expect(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        self.entered[number], self.stopped[number] = loop.create_future(), loop.create_future()

    def enter(self, number: int) -> None:
        self.entered[number].set_result(time.perf_counter())

    async def until_stopped(self, number: int) -> None:
        self.enter(number)
        try:
            await clock.sleep(60)
        except asyncio.CancelledError:
            self.stopped[number].set_result(time.perf_counter())
            raise

    async def dispatch_ms(self, count: int, enqueue: Callable[[int], Awaitable[object]]) -> list[float]:
        """Of `count` tasks, one at a time on the idle workers."""
        measured = []
        for number in range(count):
            await clock.sleep(2 * PAUSE_S)
            self.expect(number)
            start = time.perf_counter()
            await enqueue(number)
            measured.append((await self.entered[number] - start) * 1e3)
        return measured

    async def cancel_ms(
        self, count: int, enqueue: Callable[[int], Awaitable[Any]], cancel: Callable[[Any], Awaitable[object]]
    ) -> list[float]:
        """Of `count` running tasks, one at a time; `cancel` gets what `enqueue` returned."""
        measured = []
        for number in range(count):
            self.expect(number)
            job = await enqueue(number)
            await self.entered[number]
            await clock.sleep(2 * PAUSE_S)
            start = time.perf_counter()
            await cancel(job)
            measured.append((await self.stopped[number] - start) * 1e3)
        return measured


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    """How tasks get to a peer: one that does nothing, one that tells when it is entered, one that runs until it is canceled.

    Each is given its number; what `long` returns is what `cancel` takes. `completed` says whether so many have ended well.
    """

    no_op: Callable[[int], Awaitable[object]]
    watched: Callable[[int], Awaitable[object]]
    long: Callable[[int], Awaitable[Any]]
    cancel: Callable[[Any], Awaitable[object]]
    completed: Callable[[int], Awaitable[bool]]


async def _measured(load: Workload, client: _Client, bodies: _Bodies) -> Measured:
    await clock.sleep(STARTED_S)
    before, start = processor_s(), time.perf_counter()
    await produce(load.tasks, client.no_op)
    while not await client.completed(load.tasks):
        await clock.sleep(LOOK_S)
    tasks_per_s, processor_us = load.tasks / (time.perf_counter() - start), (processor_s() - before) / load.tasks * 1e6
    dispatch_ms = await bodies.dispatch_ms(load.dispatches, client.watched)
    return Measured(tasks_per_s, processor_us, dispatch_ms, await bodies.cancel_ms(load.cancels, client.long, client.cancel))


def _run(measuring: Awaitable[Measured]) -> Measured:
    """What is left of the client when it has been measured goes with the process."""
    return asyncio.new_event_loop().run_until_complete(measuring)


async def _beside(worker: Coroutine[Any, Any, None], measuring: Coroutine[Any, Any, Measured]) -> Measured:
    """What was measured while the worker ran. Raises what the worker died of."""
    tracker = TaskTracker()
    working, measured = tracker.spawn(worker, name="worker"), tracker.spawn(measuring, name="measuring")
    first: set[asyncio.Future[Any]] = {working, measured}
    await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    if not measured.done():
        await working
        raise RuntimeError("its worker left")
    return await measured


def saq(address: str, load: Workload) -> Measured:
    """SAQ on Redis."""
    return _run(_saq(address, load))


async def _saq(address: str, load: Workload) -> Measured:
    from saq import Worker
    from saq.queue.redis import RedisQueue

    queue, bodies, processed = RedisQueue.from_url(address), _Bodies(), 0
    await queue.connect()

    async def no_op(_context: Any) -> None: ...

    async def watched(_context: Any, *, number: int) -> None:
        bodies.enter(number)

    async def long(_context: Any, *, number: int) -> None:
        await bodies.until_stopped(number)

    async def count(_context: Any) -> None:
        nonlocal processed
        processed += 1

    async def completed(tasks: int) -> bool:
        return processed >= tasks

    worker = Worker[Any](
        queue, [("no_op", no_op), ("watched", watched), ("long", long)], concurrency=WORKERS, after_process=count
    )
    client = _Client(
        completed=completed,
        no_op=lambda _number: queue.enqueue("no_op"),
        watched=lambda number: queue.enqueue("watched", number=number),
        long=lambda number: queue.enqueue("long", number=number, timeout=0),
        cancel=lambda job: queue.abort(job, "benchmark"),
    )
    return await _beside(worker.start(), _measured(load, client, bodies))


def procrastinate(address: str, load: Workload) -> Measured:
    """procrastinate on PostgreSQL."""
    return _run(_procrastinate(address, load))


async def _procrastinate(address: str, load: Workload) -> Measured:
    from procrastinate import App, PsycopgConnector

    connector = PsycopgConnector(conninfo=f"host={address} user=postgres dbname=procrastinate", min_size=8, max_size=24)
    app, bodies = App(connector=connector), _Bodies()

    @app.task(name="no_op")
    async def no_op(number: int) -> None: ...

    @app.task(name="watched")
    async def watched(number: int) -> None:
        bodies.enter(number)

    @app.task(name="long")
    async def long(number: int) -> None:
        await bodies.until_stopped(number)

    await app.open_async()
    there = await connector.execute_query_one_async("SELECT to_regclass('procrastinate_jobs') AS jobs")
    if there["jobs"] is None:
        await app.schema_manager.apply_schema_async()
    await connector.execute_query_async("TRUNCATE procrastinate_jobs CASCADE")

    async def completed(tasks: int) -> bool:
        row = await connector.execute_query_one_async(
            "SELECT count(*) AS jobs FROM procrastinate_jobs WHERE status = 'succeeded'"
        )
        return bool(row["jobs"] >= tasks)

    client = _Client(
        completed=completed,
        no_op=lambda number: no_op.defer_async(number=number),
        watched=lambda number: watched.defer_async(number=number),
        long=lambda number: long.defer_async(number=number),
        cancel=lambda job_id: app.job_manager.cancel_job_by_id_async(job_id, abort=True),
    )
    return await _beside(
        app.run_worker_async(concurrency=WORKERS, install_signal_handlers=False), _measured(load, client, bodies)
    )


def pgqueuer(address: str, load: Workload) -> Measured:
    """pgqueuer on PostgreSQL."""
    return _run(_pgqueuer(address, load))


async def _pgqueuer(address: str, load: Workload) -> Measured:
    import asyncpg  # type: ignore[import-untyped]
    from pgqueuer import AsyncpgPoolDriver, Job, PgQueuer, Queries
    from pgqueuer.models import Context

    connections = await asyncpg.create_pool(f"postgresql://postgres@/pgqueuer?host={address}", min_size=8, max_size=24)
    driver = AsyncpgPoolDriver(connections)
    queries, queuer, bodies = Queries(driver), PgQueuer(driver), _Bodies()
    if not await queries.schema_is_installed():
        await queries.install()
    await queries.clear_queue()
    await queries.clear_queue_log()

    @queuer.entrypoint("no_op")
    async def no_op(_job: Job) -> None: ...

    @queuer.entrypoint("watched")
    async def watched(job: Job) -> None:
        bodies.enter(int(job.payload or b""))

    @queuer.entrypoint("long", accepts_context=True)
    async def long(job: Job, context: Context) -> None:
        with context.cancellation:
            await bodies.until_stopped(int(job.payload or b""))

    async def enqueue(entrypoint: str, number: int) -> list[Any]:
        return list(await queries.enqueue([entrypoint], [b"%d" % number], [0]))

    async def completed(tasks: int) -> bool:
        ended = await connections.fetchval("SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'")
        return bool(ended >= tasks)

    client = _Client(
        completed=completed,
        no_op=lambda number: enqueue("no_op", number),
        watched=lambda number: enqueue("watched", number),
        long=lambda number: enqueue("long", number),
        cancel=queries.mark_job_as_cancelled,
    )
    worker = queuer.run(batch_size=WORKERS // 2, max_concurrent_tasks=WORKERS, dequeue_timeout=timedelta(seconds=5))
    return await _beside(worker, _measured(load, client, bodies))
