"""A start with 100,000 pending tasks, and their memory: the engine keeps id, priority and requirement class of each, and no rows."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from malbox_tui.ports import Findings, PluginJob, StopSignal
from tests.benchmarks.figures import Figure, median
from tests.benchmarks.filled_store import fill
from tests.benchmarks.fresh_process import in_a_fresh_process
from tests.benchmarks.no_op import running_engine
from tests.benchmarks.process_memory import own_pss_mb

TASKS = 100_000
RUNS = 3
WORKERS = 4
"""As many as a configuration that says nothing has."""


def measure() -> Iterator[Figure]:
    """How long it takes until the first of them runs, and PSS of the engine's process for each of them."""
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Path(folder) / "empty.sqlite3", Path(folder) / "full.sqlite3"
        fill(full, TASKS)
        seconds = [in_a_fresh_process(first_run_s, full) for _ in range(RUNS)]
        yield median("pending_100k_start_s", seconds, "s", pending=TASKS)
        more_mb = [in_a_fresh_process(held_mb, full) - in_a_fresh_process(held_mb, empty) for _ in range(RUNS)]
        yield median("bytes_per_pending_task", [mb * 1e6 / TASKS for mb in more_mb], "bytes", pending=TASKS)


def first_run_s(store: Path) -> float:
    """Seconds from an engine's start until the plugins of its first task are run. Nothing is completed."""
    return asyncio.run(_first_run_s(store))


async def _first_run_s(store: Path) -> float:
    entered = asyncio.Event()

    async def run(_job: PluginJob, stop: StopSignal) -> Findings:
        entered.set()
        await stop.wait()
        return Findings(())

    start = time.perf_counter()
    async with running_engine(store, WORKERS, run):
        await entered.wait()
        return time.perf_counter() - start


def held_mb(store: Path) -> float:
    """PSS of this process, in MB, while an engine without workers holds the store."""
    return asyncio.run(_held_mb(store))


async def _held_mb(store: Path) -> float:
    async with running_engine(store, 0):
        gc.collect()
        return own_pss_mb()
