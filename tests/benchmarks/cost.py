"""What one task costs while many others stand pending behind it."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from malbox_tui.engine.engine import Engine
from malbox_tui.model.commands import Action, Command, PausePool, ResumePool
from malbox_tui.model.events import TaskCompleted
from malbox_tui.model.submission import SubmissionOptions
from tests.benchmarks.figures import Figure, median
from tests.benchmarks.filled_store import fill
from tests.benchmarks.fresh_process import in_a_fresh_process
from tests.benchmarks.no_op import Ends, offers, running_engine
from tests.benchmarks.workload import PRODUCERS, WORKERS, processor_s

PENDING = (1_000, 10_000, 100_000, 1_000_000)
TASKS = 1_000
RUNS = 3
IN_FRONT = SubmissionOptions(priority=1)


def measure() -> Iterator[Figure]:
    """Wall and processor time of a task that does nothing, from its submission to its stored end, for each number in `PENDING`."""
    for pending in PENDING:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store.sqlite3"
            fill(store, pending)
            wall, processor = zip(*in_a_fresh_process(costs_us, store, pending, TASKS, RUNS), strict=True)
        yield median("task_cost_us", wall, "µs", tasks=TASKS, pending=pending)
        yield median("task_cost_processor_us", processor, "µs", tasks=TASKS, pending=pending)


def costs_us(store: Path, pending: int, tasks: int, runs: int) -> list[tuple[float, float]]:
    """Of each run: wall and processor time for one of its `tasks`, in microseconds, on a store with `pending` others."""
    return asyncio.run(_costs_us(store, pending, tasks, runs))


async def _costs_us(store: Path, pending: int, tasks: int, runs: int) -> list[tuple[float, float]]:
    costs = []
    async with running_engine(store, WORKERS) as engine, asyncio.TaskGroup() as group:
        await _do(engine, PausePool())
        ends = Ends(engine, TaskCompleted, above=pending)
        follower = group.create_task(ends.follow())
        for number in range(runs):
            before, start = processor_s(), time.perf_counter()
            await _all_taken_in(engine, range(number * tasks, (number + 1) * tasks))
            await _do(engine, ResumePool())
            await ends.reach((number + 1) * tasks)
            costs.append(((time.perf_counter() - start) / tasks * 1e6, (processor_s() - before) / tasks * 1e6))
            await _do(engine, PausePool())
        follower.cancel()
    return costs


async def _all_taken_in(engine: Engine, numbers: range) -> None:
    """The pool is paused meanwhile: workers that find nothing in front would take from those behind."""
    async with asyncio.TaskGroup() as producers:
        for producer in range(PRODUCERS):
            producers.create_task(engine.submit(offers(numbers[producer::PRODUCERS]), IN_FRONT))


async def _do(engine: Engine, action: Action) -> None:
    outcome = await engine.do(Command(action=action, actor="benchmark"))
    assert outcome.done, outcome.message
