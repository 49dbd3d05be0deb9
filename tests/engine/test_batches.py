"""A batch: tasks that share a bench and a run, and nothing else. Each has a state, a clock, a cancel and an outcome of its own."""

from __future__ import annotations

import pytest

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.engine import clock
from malbox_tui.model.commands import CancelTasks
from malbox_tui.model.errors import SampleChanged, SampleMissing, StoreError
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.ports import PluginBench
from tests.support.rig import EngineRig, ScriptedRunner, batching, states, with_engine
from tests.support.virtual_time import settle_loop

T = TaskState
BATCH = batching(size=4, max_workers=1)


def test_a_batch_shares_one_bench_and_each_sample_has_a_name_of_its_own() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.until(lambda: bool(rig.runner.running))
        assert rig.runner.benches_out == 1
        assert len(rig.engine._driver.attempts) == 4
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED] * 4
        assert len({task.token for task in tasks.values()} | {task.worker for task in tasks.values()}) <= 2

    rig = with_engine(test, groups=[BATCH])
    assert [job.sample_name for job in rig.runner.jobs] == ["sample-1", "sample-2", "sample-3", "sample-4"]
    assert len({job.token for job in rig.runner.jobs}) == 4
    assert len(rig.runner.limits) == 1, "one bench was asked for"
    assert rig.runner.order == [1, 2, 3, 4]
    assert rig.results.settled == [1, 2, 3, 4]


def test_each_task_ends_as_soon_as_its_findings_are_there() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.pass_time(5.0)
        await rig.until_state(1, T.COMPLETED)
        assert states(await rig.tasks()) == [T.COMPLETED, T.RUNNING, T.RUNNING, T.RUNNING]
        (worker,) = (await rig.engine.overview()).workers
        assert (worker.task_ids, worker.tasks_done) == ((2, 3, 4), 1)
        await rig.all_final()

    with_engine(test, min_workers=0, groups=[BATCH], runner=ScriptedRunner(seconds=10.0))


def test_a_worker_takes_its_next_batch_when_it_is_through_with_the_one_before() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(*[f"sample {n}" for n in range(10)])
        assert states(await rig.all_final()) == [T.COMPLETED] * 10

    rig = with_engine(test, min_workers=0, max_workers=0, groups=[BATCH])
    assert rig.runner.batches == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert rig.runner.most_at_once == 1


def test_tasks_that_wait_for_their_turn_grow_no_older_by_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.until_state(2, T.COMPLETED)
        due = await rig.due(4)
        assert due is not None
        assert due.stands
        assert due.at - rig.wall.now() == pytest.approx(30.0)
        running = await rig.due(3)
        assert running is not None
        assert not running.stands
        assert states(await rig.all_final()) == [T.COMPLETED] * 4

    analysis = AnalysisSettings(timeout_s=30.0, critical_timeout_s=35.0)
    with_engine(test, groups=[BATCH], runner=ScriptedRunner(seconds=25.0), analysis=analysis)


def test_a_task_that_takes_too_long_is_timed_out_alone() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED, T.TIMED_OUT, T.COMPLETED, T.COMPLETED]
        assert tasks[2].reason == "The analysis timeout of 30 s ended it during scripted."
        assert tasks[2].plugins[0].results

    with_engine(test, groups=[BATCH], runner=ScriptedRunner(seconds_of={2: 1e6}), timeout_s=30.0)


def test_tasks_that_run_together_have_each_its_own_time() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("brief", "brief too", timeout_s=5.0)
        await rig.add("long", "long too", timeout_s=50.0)
        tasks = await rig.all_final()
        assert states(tasks) == [T.TIMED_OUT, T.TIMED_OUT, T.COMPLETED, T.COMPLETED]
        assert [task.stages["running"] for task in tasks.values()] == pytest.approx([5.0, 5.0, 20.0, 20.0], abs=0.1)

    with_engine(test, groups=[BATCH], runner=ScriptedRunner(seconds=20.0, together=True))


def test_a_task_whose_findings_cannot_be_kept_fails_alone() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED, T.FAILED, T.COMPLETED, T.COMPLETED]
        assert (tasks[2].ended_by, tasks[2].reason) == (EndedBy.PLUGIN_ERROR, "no room")

    with_engine(test, groups=[BATCH], runner=ScriptedRunner(breaks={2: StoreError("no room")}))


@pytest.mark.parametrize("error", [SampleMissing("c0ffee"), SampleChanged("c0ffee", "the sum differs")])
def test_a_sample_that_is_missing_or_damaged_fails_its_task_and_the_others_run(error: Exception) -> None:
    async def test(rig: EngineRig) -> None:
        rig.quarantine.extract_raises.append(error)
        await rig.add("one", "two", "three", "four")
        tasks = await rig.all_final()
        ends = [task.ended_by for task in tasks.values()]
        assert sorted(ends) == [EndedBy.FINISHED] * 3 + [EndedBy.SAMPLE_CHANGED]

    assert [len(batch) for batch in with_engine(test, groups=[BATCH]).runner.batches] == [3]


def test_a_lone_task_is_a_batch_too() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.all_final()

    assert with_engine(test, groups=[BATCH]).runner.batches == [[1]]


# --- canceling one of them -----------------------------------------------------------------------------------------------------------


class SlowEnds(ScriptedRunner):
    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        await clock.sleep(2.0)
        return await super().acquire(limits)

    async def release(self, bench: PluginBench) -> None:
        await clock.sleep(2.0)
        await super().release(bench)


@pytest.mark.parametrize("together", [False, True], ids=["in turn", "together"])
def test_a_cancel_at_any_moment_takes_one_task_out_and_leaves_the_others_alone(*, together: bool) -> None:
    for halves in range(32):

        async def test(rig: EngineRig, after_s: float = halves / 2) -> None:
            await rig.add("one", "two")
            await rig.pass_time(1.0)
            await rig.add("three")
            await rig.pass_time(after_s)
            outcome = await rig.do(CancelTasks(task_ids=(2,)))
            tasks = await rig.all_final()
            assert states(tasks) == [T.COMPLETED, T.CANCELED if outcome.done else T.COMPLETED, T.COMPLETED], after_s
            assert all(task.crashes == 0 for task in tasks.values())
            await rig.add("four")
            assert (await rig.all_final())[4].state is T.COMPLETED, "its worker is there"

        with_engine(test, min_workers=0, max_workers=0, groups=[BATCH], runner=SlowEnds(seconds=3.0, together=together))


def test_a_cancel_in_any_turn_between_hand_out_and_run_takes_one_task_out() -> None:
    for turns in range(0, 60, 2):

        async def test(rig: EngineRig, turns: int = turns) -> None:
            await rig.add("one", "two", "three")
            await settle_loop()
            await rig.add("four")
            await settle_loop(turns)
            outcome = await rig.do(CancelTasks(task_ids=(1, 3)))
            tasks = await rig.all_final()
            expected = [T.CANCELED if target.done else T.COMPLETED for target in outcome.targets]
            assert states(tasks) == [expected[0], T.COMPLETED, expected[1], T.COMPLETED], turns

        with_engine(test, min_workers=0, max_workers=0, groups=[BATCH])


def test_a_batch_of_which_all_are_canceled_gives_its_bench_back() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.pass_time(4.0)
        await rig.do(CancelTasks(task_ids=(1, 2, 3, 4)))
        assert states(await rig.all_final()) == [T.CANCELED] * 4
        await rig.pass_time(3.0)
        assert rig.runner.benches_out == 0

    with_engine(test, groups=[BATCH], runner=SlowEnds(seconds=100.0))


def test_a_batch_of_which_all_are_canceled_does_not_wait_for_its_bench() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.until_state(1, T.INITIALIZING)
        await rig.pass_time(1.0)
        await rig.do(CancelTasks(task_ids=(1, 2, 3, 4)))
        assert states(await rig.all_final(within_s=1.0)) == [T.CANCELED] * 4

    with_engine(test, groups=[BATCH], runner=NeverReady())


class NeverReady(ScriptedRunner):
    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        await clock.sleep(1e6)
        return await super().acquire(limits)
