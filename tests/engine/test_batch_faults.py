"""What goes wrong in a batch: the task that it is of bears it alone, and no bench, worker or other task is lost with it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.engine import clock
from malbox_tui.model.commands import CancelTasks
from malbox_tui.model.due import TimeLimit
from malbox_tui.model.errors import PluginUnavailable, StoreError, StoreFull
from malbox_tui.model.events import TaskGivenBack
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.task import EndedBy, Task, TaskState
from malbox_tui.ports import BatchMember, ClaimRequest, PluginBench
from malbox_tui.store.memory import MemoryStore
from malbox_tui.store.requests import Changing, Claiming, Noting
from tests.support.rig import BreakableStore, EngineRig, ScriptedRunner, batching, states, with_engine

T = TaskState
BATCH = batching(size=4, max_workers=1)
CUT = "Another task of its batch did not end in time, and the batch was cut; the attempt was not counted."


def run(runner: ScriptedRunner, *, store: MemoryStore | None = None, analysis: AnalysisSettings | None = None) -> EngineRig:
    """One batch of four to its end, and a task after it, which shows that its worker is there."""

    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.all_final()
        await rig.add("five")
        await rig.all_final()

    return with_engine(test, min_workers=0, max_workers=0, groups=[BATCH], runner=runner, store=store, analysis=analysis)


def tasks_of(rig: EngineRig) -> dict[int, Task]:
    return dict(sorted(rig.store._tasks.items()))


@pytest.mark.parametrize("together", [False, True], ids=["in turn", "together"])
def test_one_whose_plugins_never_end_is_cut_and_the_others_are_tried_again(*, together: bool) -> None:
    rig = run(ScriptedRunner(hangs={2}, seconds=60.0, together=together))
    tasks = tasks_of(rig)
    assert states(tasks) == [T.COMPLETED, T.TIMED_OUT, T.COMPLETED, T.COMPLETED, T.COMPLETED]
    assert tasks[2].stages["running"] == pytest.approx(320.0 if together else 380.0)
    assert {task.crashes for task in tasks.values()} == {0}
    given_back = [] if together else [3, 4]
    assert sorted((body.task_id, body.reason) for body in rig.bodies(TaskGivenBack)) == [(n, CUT) for n in given_back]  # type: ignore[attr-defined]


def test_several_whose_plugins_never_end_keep_the_others_from_nothing() -> None:
    rig = run(ScriptedRunner(hangs={1, 2, 4}))
    assert states(tasks_of(rig)) == [T.TIMED_OUT, T.TIMED_OUT, T.COMPLETED, T.TIMED_OUT, T.COMPLETED]


def test_one_that_is_canceled_and_does_not_end_is_cut_and_the_others_are_tried_again() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.until(lambda: rig.runner.running == {1})
        await rig.do(CancelTasks(task_ids=(1,)))
        assert states(await rig.all_final(within_s=30.0)) == [T.CANCELED] + [T.COMPLETED] * 3

    with_engine(test, min_workers=0, max_workers=0, groups=[BATCH], runner=ScriptedRunner(hangs={1}))


def test_a_batch_that_breaks_with_an_error_of_ours_fails_its_tasks_with_it() -> None:
    tasks = tasks_of(run(ScriptedRunner(batch_raises=[StoreError("the inbox is gone")])))
    assert states(tasks) == [T.FAILED] * 4 + [T.COMPLETED]
    assert {(task.ended_by, task.reason) for task in tasks.values() if task.id < 5} == {
        (EndedBy.PLUGIN_ERROR, "the inbox is gone")
    }


def test_a_batch_that_breaks_with_a_bug_is_tried_again() -> None:
    rig = run(ScriptedRunner(batch_raises=[RuntimeError("a bug")]))
    assert states(tasks_of(rig)) == [T.COMPLETED] * 5
    assert len(rig.bodies(TaskGivenBack)) == 4


def test_one_of_whose_findings_nobody_is_told_is_tried_again_up_to_the_cap() -> None:
    tasks = tasks_of(run(ScriptedRunner(silent={2})))
    assert states(tasks) == [T.COMPLETED, T.FAILED, T.COMPLETED, T.COMPLETED, T.COMPLETED]
    assert tasks[2].ended_by is EndedBy.ATTEMPTS_EXHAUSTED


class Stuck(ScriptedRunner):
    """Never begins with its first batch."""

    async def work_on_all(self, members: Sequence[BatchMember]) -> None:
        if not self.batches:
            self.batches.append([])
            await clock.sleep(1e9)
        await super().work_on_all(members)


def test_a_batch_with_which_no_plugin_begins_is_cut_and_tried_again() -> None:
    rig = run(Stuck())
    assert states(tasks_of(rig)) == [T.COMPLETED] * 5
    assert len(rig.bodies(TaskGivenBack)) == 4


class BadBench(ScriptedRunner):
    """What happens when the first bench is acquired and when it is released; None: nothing."""

    on_acquire: Exception | None = None
    on_release: Exception | float | None = None

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        error, self.on_acquire = self.on_acquire, None
        await clock.sleep(1.0)
        if error is not None:
            raise error
        return await super().acquire(limits)

    async def release(self, bench: PluginBench) -> None:
        fault, self.on_release = self.on_release, None
        if isinstance(fault, float):
            await clock.sleep(fault)
        await super().release(bench)
        if isinstance(fault, Exception):
            raise fault


def bad(on_acquire: Exception | None = None, on_release: Exception | float | None = None) -> BadBench:
    runner = BadBench()
    runner.on_acquire, runner.on_release = on_acquire, on_release
    return runner


def test_without_a_bench_each_of_them_fails_with_the_reason() -> None:
    tasks = tasks_of(run(bad(on_acquire=PluginUnavailable("host", "no space left on device"))))
    assert states(tasks) == [T.FAILED] * 4 + [T.COMPLETED]
    assert {task.ended_by for task in tasks.values() if task.id < 5} == {EndedBy.PLUGIN_ERROR}


def test_a_bug_in_giving_a_bench_is_no_fault_of_theirs() -> None:
    assert states(tasks_of(run(bad(on_acquire=RuntimeError("a bug"))))) == [T.COMPLETED] * 5


@pytest.mark.parametrize("error", [StoreError("the inbox could not be emptied"), RuntimeError("a bug")])
def test_a_bench_that_cannot_be_given_back_takes_nothing_from_its_tasks(error: Exception) -> None:
    rig = run(bad(on_release=error))
    assert states(tasks_of(rig)) == [T.COMPLETED] * 5
    assert not rig.bodies(TaskGivenBack)


def test_only_the_last_one_waits_for_the_bench_and_no_longer_than_a_stage_may_take() -> None:
    tasks = tasks_of(run(bad(on_release=9.0), analysis=AnalysisSettings(stopping_timeout_s=7.0)))
    assert states(tasks) == [T.COMPLETED] * 5
    assert [task.stages["stopping"] for task in tasks.values()][:4] == pytest.approx([0.0, 0.0, 0.0, 7.0])


class OneClaim(BreakableStore):
    """The claim of task 2 is lost, or takes its time."""

    lost = False
    takes_s = 0.0

    async def claim(self, request: ClaimRequest) -> Task | None:
        if request.task_id == 2:
            await clock.sleep(self.takes_s)
            if self.lost:
                return None
        return await super().claim(request)


def test_the_others_run_without_one_whose_claim_is_lost() -> None:
    store = OneClaim()
    store.lost = True

    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.until_state(4, T.COMPLETED)
        assert states(await rig.tasks()) == [T.COMPLETED, T.PENDING, T.COMPLETED, T.COMPLETED]

    assert with_engine(test, groups=[BATCH], store=store).runner.batches == [[1, 3, 4]]


def test_whoever_waits_for_the_others_grows_no_older_by_it() -> None:
    store = OneClaim()
    store.takes_s = 500.0
    analysis = AnalysisSettings(timeout_s=20.0, critical_timeout_s=25.0, initializing_timeout_s=10.0)
    assert states(tasks_of(run(ScriptedRunner(), store=store, analysis=analysis))) == [T.COMPLETED] * 5


def test_the_clock_of_one_that_is_canceled_while_it_waits_for_the_others_goes_on() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.pass_time(10.0)
        rig.store.broken[Noting] = StoreFull("no space left on device")
        rig.results.raises.append(StoreFull("no space left on device"))
        await rig.do(CancelTasks(task_ids=(1,)))
        await rig.pass_time(5.0)
        due = await rig.due(1)
        assert due is not None
        assert (due.limit, due.stands) == (TimeLimit.STOPPING, False)
        rig.store.broken.clear()
        assert states(await rig.all_final()) == [T.CANCELED, T.COMPLETED]

    store = OneClaim()
    store.takes_s = 500.0
    with_engine(test, groups=[BATCH], store=store)


@pytest.mark.parametrize("broken", [Claiming, Changing, None])
@pytest.mark.parametrize("from_s", [0.0, 0.5, 2.5, 4.5])
def test_a_store_that_fails_meanwhile_costs_no_task(broken: type | None, from_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        if from_s == 0.0:
            rig.store.broken[broken] = StoreError("I/O error")
        await rig.pass_time(1.0)
        rig.store.broken[broken] = StoreError("I/O error")
        await rig.pass_time(from_s + 30.0)
        rig.store.broken.clear()
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED] * 3
        assert {(task.attempts, task.crashes) for task in tasks.values()} == {(1, 0)}

    with_engine(test, groups=[batching(size=3, wait_s=from_s)], store=BreakableStore(), runner=ScriptedRunner(seconds=1.5))


def test_a_batch_that_waits_for_plugins_of_other_tasks_is_not_stuck_however_long_that_takes() -> None:
    class Waiting(ScriptedRunner):
        async def work_on_all(self, members: Sequence[BatchMember]) -> None:
            for member in members:
                member.job.on_wait(True)
            await clock.sleep(1000.0)
            for member in members:
                member.job.on_wait(False)
            await super().work_on_all(members)

    rig = run(Waiting())
    assert states(tasks_of(rig)) == [T.COMPLETED] * 5
    assert {task.crashes for task in tasks_of(rig).values()} == {0}
