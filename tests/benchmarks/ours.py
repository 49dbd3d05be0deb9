"""Our own run of a workload: the real engine on the real store, all states of each task stored, adds, claims and ends synced."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from malbox_tui.engine import clock
from malbox_tui.engine.engine import Engine
from malbox_tui.model.commands import CancelTasks, Command
from malbox_tui.model.events import TaskCanceled, TaskCompleted
from malbox_tui.model.submission import Accepted, SubmissionOptions
from malbox_tui.ports import Findings, PluginJob, StopSignal
from tests.benchmarks.no_op import Ends, nothing, offers, running_engine
from tests.benchmarks.workload import PAUSE_S, PRODUCERS, WORKERS, Measured, Workload, processor_s

START = SubmissionOptions()


def run(load: Workload) -> Measured:
    """All of it on one engine with a new store."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_run(Path(folder), load))


async def _run(folder: Path, load: Workload) -> Measured:
    body = _Body()
    async with running_engine(folder / "store.sqlite3", WORKERS, body.run) as engine, asyncio.TaskGroup() as group:
        completed, canceled = Ends(engine, TaskCompleted), Ends(engine, TaskCanceled)
        followers = [group.create_task(ends.follow()) for ends in (completed, canceled)]
        tasks_per_s, processor_us = await _throughput(engine, completed, load.tasks)
        dispatch_ms = [await _dispatch(engine, body, completed, load.tasks + number) for number in range(load.dispatches)]
        first = load.tasks + load.dispatches
        cancels = [await _cancel(engine, body, canceled, first + number, number + 1) for number in range(load.cancels)]
        for follower in followers:
            follower.cancel()
    return Measured(
        tasks_per_s, processor_us, dispatch_ms, [to_stop for to_stop, _ in cancels], [to_final for _, to_final in cancels]
    )


async def _throughput(engine: Engine, completed: Ends, tasks: int) -> tuple[float, float]:
    before, start = processor_s(), time.perf_counter()
    async with asyncio.TaskGroup() as producers:
        for producer in range(PRODUCERS):
            producers.create_task(engine.submit(offers(range(producer, tasks, PRODUCERS)), START))
    await completed.reach(tasks)
    return tasks / (time.perf_counter() - start), (processor_s() - before) / tasks * 1e6


async def _dispatch(engine: Engine, body: _Body, completed: Ends, number: int) -> float:
    """Milliseconds from the call of submit to the run of the task's plugins. All tasks before `number` are completed."""
    await clock.sleep(PAUSE_S)
    body.watch()
    start = time.perf_counter()
    await engine.submit(offers([number]), START)
    entered = await body.entered
    await completed.reach(number + 1)
    return (entered - start) * 1e3


async def _cancel(engine: Engine, body: _Body, canceled: Ends, number: int, count: int) -> tuple[float, float]:
    """Milliseconds from the command to the stop signal of the running plugins, and to the stored end. It is the `count`-th cancel."""
    body.watch(until_stopped=True)
    (receipt,) = (await engine.submit(offers([number]), START)).receipts
    assert isinstance(receipt, Accepted)
    await body.entered
    await clock.sleep(PAUSE_S)
    start = time.perf_counter()
    await engine.do(Command(action=CancelTasks(task_ids=(receipt.task_id,)), actor="benchmark"))
    stopped = await body.stopped
    await canceled.reach(count)
    return (stopped - start) * 1e3, (time.perf_counter() - start) * 1e3


class _Body:
    """What stands for a task's plugins. `entered` and `stopped` are when the watched run was entered, and told to stop."""

    entered: asyncio.Future[float]
    stopped: asyncio.Future[float]

    def __init__(self) -> None:
        self._watched = self._until_stopped = False

    def watch(self, *, until_stopped: bool = False) -> None:
        """Tell of the next run, which ends at once, or goes on until it is told to stop."""
        loop = asyncio.get_running_loop()
        self.entered, self.stopped = loop.create_future(), loop.create_future()
        self._watched, self._until_stopped = True, until_stopped

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        if self._watched:
            self._watched = False
            self.entered.set_result(time.perf_counter())
            if self._until_stopped:
                await stop.wait()
                self.stopped.set_result(time.perf_counter())
        return await nothing(job, stop)
