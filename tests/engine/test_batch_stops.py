"""A batch under way while the engine stops, its group is resized or the engine is killed: nothing is lost, nothing ends twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.engine import clock
from malbox_tui.model.commands import ResizeGroup, ShutdownMode
from malbox_tui.model.events import TaskCompleted, WorkerStopped
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.task import TaskState
from malbox_tui.model.worker import StopReason, WorkerState
from malbox_tui.ports import BatchMember, PluginBench
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import EngineRig, ScriptedRunner, batching, states, survivor, with_engine

T = TaskState
BATCH = batching(size=4, wait_s=2.0, max_workers=1)
MOMENTS = pytest.mark.parametrize("moment_s", [0.0, 0.5, 1.0, 2.0, 4.5, 8.0, 12.9, 13.5], ids=lambda moment: f"after {moment} s")
"""Its bench is being made until 1.0, its four tasks take 3 s each in turn, and then its bench is taken back until 14.0."""


class SlowEnds(ScriptedRunner):
    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        await clock.sleep(1.0)
        return await super().acquire(limits)

    async def release(self, bench: PluginBench) -> None:
        await clock.sleep(1.0)
        await super().release(bench)


def runner(*, together: bool = False) -> SlowEnds:
    return SlowEnds(seconds=3.0, together=together)


async def finish(rig: EngineRig) -> None:
    """The next start finishes what was left."""
    await rig.all_final()


def completed(rig: EngineRig) -> list[int]:
    """Each task as often as its store was told that it is completed, in all epochs."""
    return sorted(event.body.task_id for event in rig.store._events if isinstance(event.body, TaskCompleted))


@MOMENTS
@pytest.mark.parametrize("together", [False, True], ids=["in turn", "together"])
def test_given_back_what_had_not_ended_is_finished_at_the_next_start(moment_s: float, *, together: bool) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.pass_time(moment_s)
        rig.engine.stop(ShutdownMode.GIVE_BACK)

    first = with_engine(test, groups=[BATCH], runner=runner(together=together), stop=None)
    assert {task.state for task in first.store._tasks.values()} <= {T.PENDING, T.COMPLETED}
    assert {task.crashes for task in first.store._tasks.values()} == {0}
    with_engine(finish, groups=[BATCH], store=first.store)
    assert completed(first) == [1, 2, 3, 4]


@MOMENTS
def test_drained_all_of_them_end(moment_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.pass_time(moment_s)
        rig.engine.stop(ShutdownMode.DRAIN)

    rig = with_engine(test, groups=[BATCH], runner=runner(), stop=None)
    assert [task.state for task in rig.store._tasks.values()] == [T.COMPLETED] * 4
    assert completed(rig) == [1, 2, 3, 4]


@MOMENTS
@pytest.mark.parametrize("together", [False, True], ids=["in turn", "together"])
def test_canceled_none_of_them_comes_back(moment_s: float, *, together: bool) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.pass_time(moment_s)
        rig.engine.stop(ShutdownMode.CANCEL)

    rig = with_engine(test, groups=[BATCH], runner=runner(together=together), stop=None)
    assert {task.state for task in rig.store._tasks.values()} <= {T.CANCELED, T.COMPLETED}


@MOMENTS
@pytest.mark.parametrize("together", [False, True], ids=["in turn", "together"])
def test_after_the_engine_is_killed_each_of_them_ends_once(moment_s: float, *, together: bool) -> None:
    killed: list[MemoryStore] = []

    async def be_killed(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.pass_time(moment_s)
        killed.append(survivor(rig.store))

    async def finish_what_was_left(rig: EngineRig) -> None:
        assert states(await rig.all_final()) == [T.COMPLETED] * 4

    with_engine(be_killed, groups=[BATCH], runner=runner(together=together))
    assert completed(with_engine(finish_what_was_left, groups=[BATCH], store=killed[0])) == [1, 2, 3, 4]


@MOMENTS
def test_a_surplus_worker_ends_its_batch_before_it_leaves(moment_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.pass_time(moment_s)
        await rig.do(ResizeGroup(group="batch", min_workers=0, max_workers=0))
        (worker,) = [worker for worker in (await rig.engine.overview()).workers if worker.group == "batch"]
        assert worker.state is WorkerState.LEAVING
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED] * 4
        assert len({task.worker for task in tasks.values()}) == 1
        assert (await rig.group("batch")).active == 0

    rig = with_engine(test, min_workers=0, max_workers=0, groups=[BATCH], runner=runner())
    assert rig.runner.batches == [[1, 2, 3, 4]]
    assert [body.reason for body in rig.bodies(WorkerStopped)] == [StopReason.SURPLUS]  # type: ignore[attr-defined]


def test_a_demand_worker_idles_out_only_after_the_last_of_its_batch() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.until_state(3, T.COMPLETED)
        assert (await rig.group("batch")).active == 1, "it idles for half a second at most"
        await rig.until_state(4, T.COMPLETED)
        await rig.pass_time(1.0)
        assert (await rig.group("batch")).active == 0

    with_engine(test, min_workers=0, max_workers=0, groups=[BATCH], runner=runner())


def test_a_stop_that_hardens_while_a_batch_drains_gives_the_rest_back() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        rig.engine.stop(ShutdownMode.DRAIN, within_s=5.0)

    rig = with_engine(test, groups=[BATCH], runner=runner(), stop=None)
    assert [task.state for task in rig.store._tasks.values()] == [T.COMPLETED, T.PENDING, T.PENDING, T.PENDING]


class EndsLate(ScriptedRunner):
    """Is still at it for some time when it has told what it found, also when it is cut."""

    given_back_early = False

    async def work_on_all(self, members: Sequence[BatchMember]) -> None:
        await super().work_on_all(members)
        try:
            await clock.sleep(1e6)
        except asyncio.CancelledError:
            await clock.sleep(5.0)
            self.given_back_early = self.benches_out == 0
            raise


def test_the_end_of_the_engine_gives_each_bench_back_and_none_while_something_runs_on_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        rig.engine.stop(ShutdownMode.DRAIN)

    plugins = EndsLate()
    rig = with_engine(test, groups=[BATCH], runner=plugins, analysis=AnalysisSettings(stopping_timeout_s=2.0), stop=None)
    assert [task.state for task in rig.store._tasks.values()] == [T.COMPLETED] * 4
    assert (plugins.batches, plugins.given_back_early) == ([[1, 2, 3, 4]], False)
