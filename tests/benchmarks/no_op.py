"""Durable tasks that do nothing: what the engine and its store cost by themselves, every state stored, every commit synced."""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.engine import Adapters, Engine
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.events import Event, TaskCompleted
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.report import ResultRef
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.ports import Findings, PluginBench, PluginInfo, PluginJob, ResultWriter, StopSignal, StoredContent
from malbox_tui.store.sqlite import SqliteStore
from tests.benchmarks.figures import Figure, median

TASKS = 10_000
PRODUCERS = 16
WORKERS = 16
RUNS = 3


def measure() -> Iterator[Figure]:
    """Tasks a second from submission to the stored final state, and the processor time of one."""
    rates, costs = zip(*(_run() for _ in range(RUNS)), strict=True)
    name = f"engine: durable no-op tasks, {PRODUCERS} producers, {WORKERS} workers"
    yield median(name, rates, "1/s")
    yield median("engine: processor time of a no-op task", costs, "µs")


def _run() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measure(Path(folder)))


async def _measure(folder: Path) -> tuple[float, float]:
    general = GeneralSettings(min_workers=WORKERS, max_workers=WORKERS)
    store = SqliteStore(folder / "store.sqlite3", TaskTracker().spawn)
    engine = Engine(Settings(general=general), Adapters(store, _Nowhere(), _NoResults(), _NoPlugins(), SystemClock()))
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run(ready.set))
        await ready.wait()
        completed = group.create_task(_all_completed(engine))
        before, start = _processor_s(), time.perf_counter()
        async with asyncio.TaskGroup() as producers:
            for producer in range(PRODUCERS):
                producers.create_task(engine.submit(_offers(producer), SubmissionOptions()))
        await completed
        seconds, processor_s = time.perf_counter() - start, _processor_s() - before
        engine.stop(ShutdownMode.GIVE_BACK)
    return TASKS / seconds, processor_s / TASKS * 1e6


async def _all_completed(engine: Engine) -> None:
    completed = 0
    async for item in engine.events(None):
        completed += isinstance(item, Event) and isinstance(item.body, TaskCompleted)
        if completed == TASKS:
            return


async def _offers(producer: int) -> AsyncIterator[Offer]:
    for number in range(producer, TASKS, PRODUCERS):
        yield Offer(SampleName(b"%d" % number), _content(b"%064x" % number))


async def _content(text: bytes) -> AsyncIterator[bytes]:
    yield text


def _processor_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class _Nowhere:
    async def open(self) -> None: ...

    async def store(self, content: AsyncIterator[bytes], max_bytes: int) -> StoredContent:
        async for chunk in content:
            return StoredContent(chunk.decode(), len(chunk))
        raise AssertionError("no content")

    async def extract(self, sha256: str, target: Path) -> int:
        return 0

    async def close(self) -> None: ...


class _NoResults:
    async def open(self) -> None: ...

    def begin(self, task_id: int, token: str, plugin: str, name: str, format: str) -> ResultWriter:
        raise AssertionError("no plugin runs")

    async def settle(self, task_id: int, token: str) -> None: ...

    async def discard(self, task_id: int, token: str) -> None: ...

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        return b""

    async def close(self) -> None: ...


class _NoPlugins:
    isolation = "nothing runs"
    inbox = Path("/nowhere")

    async def open(self) -> Sequence[PluginInfo]:
        return []

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        return self

    async def release(self, bench: PluginBench) -> None: ...

    async def trim(self, benches: int) -> None: ...

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        return Findings(())

    async def close(self) -> None: ...
