"""Memory with many pending tasks: the engine keeps ids, priority and requirement class of each, and no rows."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.engine import Adapters, Engine
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import NewTask
from malbox_tui.store.sqlite import SqliteStore
from tests.benchmarks.figures import Figure
from tests.benchmarks.no_op import _NoPlugins, _NoResults, _Nowhere
from tests.benchmarks.process_memory import own_pss_mb

TASKS = 100_000


def measure() -> Iterator[Figure]:
    """PSS of an engine's process with and without the tasks, and how long it takes to be ready with them."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.sqlite3"
        empty, _ = _in_a_fresh_process(store)
        asyncio.run(_fill(store))
        full, seconds = _in_a_fresh_process(store)
    yield Figure(f"engine: memory for {TASKS:,} pending tasks", full - empty, "MB", 1)
    yield Figure(f"engine: ready with {TASKS:,} pending tasks after", seconds * 1000, "ms", 1)


async def _fill(path: Path) -> None:
    store = SqliteStore(path, TaskTracker().spawn)
    await store.open(lambda _events: None)
    for start in range(0, TASKS, 1000):
        async with asyncio.TaskGroup() as group:
            for number in range(start, start + 1000):
                group.create_task(store.add(NewTask(f"{number:064x}", 1, None, 0.0, number % 7, 300.0, RequirementClass())))
    await store.close()


def _in_a_fresh_process(store: Path) -> tuple[float, float]:
    output = subprocess.run([sys.executable, "-m", __name__, str(store)], check=True, capture_output=True, text=True).stdout
    memory, seconds = output.split()
    return float(memory), float(seconds)


async def _hold(path: Path) -> None:
    nobody = Settings(general=GeneralSettings(min_workers=0, max_workers=0))
    store = SqliteStore(path, TaskTracker().spawn)
    engine = Engine(nobody, Adapters(store, _Nowhere(), _NoResults(), _NoPlugins(), SystemClock()))
    ready = asyncio.Event()
    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run(ready.set))
        await ready.wait()
        seconds = time.perf_counter() - start
        gc.collect()
        print(own_pss_mb(), seconds)  # noqa: T201 - read by the measuring process
        engine.stop(ShutdownMode.GIVE_BACK)


if __name__ == "__main__":
    asyncio.run(_hold(Path(sys.argv[1])))
