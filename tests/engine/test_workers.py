"""Who works, and when: backpressure, idle timeouts, resizing, pausing. Time is turned."""

from __future__ import annotations

import asyncio

import pytest

from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.lifecycle import OwnedTask
from malbox_tui.model.commands import PausePool, ResizeGroup, ResumePool, SetPriority
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import GroupResized, WorkerChanged, WorkerStarted, WorkerStopped
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from malbox_tui.model.worker import StopReason, WorkerKind
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import EngineRig, ScriptedRunner, states, with_engine
from tests.support.virtual_time import settle_loop

TEN = [f"sample {n}" for n in range(10)]


def test_ten_tasks_at_once_use_every_worker_and_all_end_without_another_submission() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(*TEN)
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 10

    rig = with_engine(test)
    assert rig.runner.most_at_once == 4


def test_ten_pending_tasks_of_an_earlier_start_use_every_worker_too() -> None:
    store = MemoryStore()

    async def leave_ten(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add(*TEN)

    async def finish(rig: EngineRig) -> None:
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 10

    with_engine(leave_ten, store=store)
    rig = with_engine(finish, store=store)
    assert rig.runner.most_at_once == 4


def test_a_baseline_worker_takes_a_single_task_without_another_one_starting() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.all_final()

    rig = with_engine(test)
    assert len(rig.bodies(WorkerStopped)) == 1, "the baseline worker, at the end"


def test_demand_workers_leave_after_the_idle_timeout_and_baseline_ones_stay() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(*TEN)
        await rig.all_final()
        await rig.pass_time(58.0)
        assert (await rig.engine.overview()).groups[0].active == 4
        await rig.pass_time(4.0)
        workers = (await rig.engine.overview()).workers
        assert [worker.kind for worker in workers] == [WorkerKind.BASELINE]

    rig = with_engine(test)
    reasons = [body.reason for body in rig.bodies(WorkerStopped)]  # type: ignore[attr-defined]
    assert reasons == [StopReason.IDLE] * 3 + [StopReason.REQUESTED]


def test_a_task_that_comes_in_the_step_of_the_idle_timeout_is_taken() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("first")
        await rig.all_final()
        for worker in (await rig.engine.overview()).workers:
            assert worker.kind is WorkerKind.DEMAND
        loop = asyncio.get_running_loop()
        pool = rig.engine._pool
        idle_since = next(iter(pool.groups["default"].workers.values()))._idle_since
        arrived = loop.create_future()
        loop.call_at(idle_since + 60.0, lambda: arrived.set_result(None))
        await arrived
        await rig.add("second")
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 2

    with_engine(test, min_workers=0, max_workers=1)


def test_without_baseline_workers_a_task_starts_one() -> None:
    async def test(rig: EngineRig) -> None:
        assert (await rig.engine.overview()).workers == ()
        await rig.add("one", "two")
        await rig.all_final()

    assert with_engine(test, min_workers=0, max_workers=2).runner.most_at_once == 2


def test_with_room_for_no_worker_tasks_wait() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.pass_time(1000.0)
        assert (await rig.task(1)).state is TaskState.PENDING
        await rig.do(ResizeGroup(max_workers=1))
        await rig.all_final()

    with_engine(test, min_workers=0, max_workers=0)


def test_resizing_up_and_down_with_tasks_running_loses_nothing() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(*[f"sample {n}" for n in range(40)])
        for size in (8, 2, 4):
            outcome = await rig.do(ResizeGroup(max_workers=size))
            assert outcome.done
            await rig.pass_time(1.5)
            assert (await rig.engine.overview()).groups[0].active == size
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 40

    rig = with_engine(test)
    assert rig.runner.most_at_once == 8
    assert len(rig.bodies(GroupResized)) == 3
    assert StopReason.SURPLUS in {body.reason for body in rig.bodies(WorkerStopped)}  # type: ignore[attr-defined]


def test_a_surplus_worker_finishes_what_it_holds() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four")
        await rig.until(lambda: len(rig.runner.running) == 4)
        await rig.do(ResizeGroup(max_workers=1))
        await rig.pass_time(0.5)
        assert len(rig.runner.running) == 4
        await rig.all_final()
        await settle_loop()
        group = (await rig.engine.overview()).groups[0]
        assert (group.active, group.max_workers) == (1, 1)

    with_engine(test)


def test_raising_min_promotes_or_starts_and_lowering_it_demotes() -> None:
    async def kinds(rig: EngineRig) -> list[WorkerKind]:
        await settle_loop()
        return sorted(worker.kind for worker in (await rig.engine.overview()).workers)

    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.all_final()
        assert await kinds(rig) == [WorkerKind.BASELINE, WorkerKind.DEMAND]
        await rig.do(ResizeGroup(min_workers=3))
        assert await kinds(rig) == [WorkerKind.BASELINE] * 3
        await rig.do(ResizeGroup(min_workers=1))
        assert await kinds(rig) == [WorkerKind.BASELINE, WorkerKind.DEMAND, WorkerKind.DEMAND]
        await rig.pass_time(61.0)
        assert await kinds(rig) == [WorkerKind.BASELINE]

    rig = with_engine(test)
    assert len(rig.bodies(WorkerChanged)) == 3


def test_whoever_leaves_as_surplus_min_workers_are_baseline_afterwards() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(*TEN[:4])
        await rig.until(lambda: len(rig.runner.running) == 4)
        await rig.do(ResizeGroup(min_workers=2, max_workers=2))
        await rig.all_final()
        await settle_loop()
        assert [worker.kind for worker in (await rig.engine.overview()).workers] == [WorkerKind.BASELINE] * 2

    with_engine(test)


@pytest.mark.parametrize(
    ("low", "high"), [(5, 4), (-1, None), (None, -1), (None, 0), (None, 1025), (1025, 1025)], ids=lambda value: str(value)
)
def test_limits_that_make_no_sense_are_refused_and_change_nothing(low: int | None, high: int | None) -> None:
    async def test(rig: EngineRig) -> None:
        outcome = await rig.do(ResizeGroup(min_workers=low, max_workers=high))
        assert not outcome.done
        assert "nothing was changed" in outcome.message.lower()
        group = (await rig.engine.overview()).groups[0]
        assert (group.min_workers, group.max_workers) == (1, 4)

    with_engine(test)


def test_an_unknown_group_is_refused_by_name() -> None:
    async def test(rig: EngineRig) -> None:
        outcome = await rig.do(ResizeGroup(group="gpu", max_workers=1))
        assert not outcome.done
        assert "'gpu'" in outcome.message

    with_engine(test)


def test_a_paused_pool_takes_nothing_finishes_what_runs_and_goes_on_when_resumed() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("running")
        await rig.until(lambda: bool(rig.runner.running))
        await rig.do(PausePool())
        await rig.add("waiting 1", "waiting 2")
        await rig.pass_time(100.0)
        assert states(await rig.tasks()) == [TaskState.COMPLETED, TaskState.PENDING, TaskState.PENDING]
        assert (await rig.engine.overview()).paused == "paused by ana"
        await rig.do(ResumePool())
        await rig.all_final()

    assert with_engine(test).runner.most_at_once == 2


def test_higher_priority_goes_first_and_equals_in_order() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("low 1", "low 2")
        await rig.add("high", priority=5)
        await rig.do(SetPriority(task_ids=(2,), priority=9))
        await rig.do(ResumePool())
        await rig.all_final()

    assert with_engine(test, max_workers=1).runner.order == [2, 3, 1]


def test_one_high_behind_ten_low_goes_first_when_a_busy_worker_becomes_free() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("running 1", "running 2")
        await rig.until(lambda: len(rig.runner.running) == 2)
        await rig.add(*TEN)
        await rig.add("high", priority=5)
        await rig.all_final()

    assert with_engine(test, max_workers=2).runner.order == [1, 2, 13, *range(3, 13)]


def test_a_task_of_a_kind_that_nobody_serves_waits_and_holds_nobody_up() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("windows", priority=99, hold=True, requires=RequirementClass(task_type="dynamic", platform="windows"))
        await rig.add(*TEN[:5])
        await rig.pass_time(100.0)
        assert states(await rig.tasks()) == [TaskState.PENDING] + [TaskState.COMPLETED] * 5

    with_engine(test)


def test_a_broken_attempt_costs_no_worker_and_the_task_is_tried_again_to_a_cap() -> None:
    runner = ScriptedRunner(raises=[RuntimeError("a bug")] * 3)

    async def test(rig: EngineRig) -> None:
        await rig.add("poison", "other")
        tasks = await rig.all_final()
        assert states(tasks) == [TaskState.FAILED, TaskState.COMPLETED]
        assert tasks[1].ended_by is EndedBy.ATTEMPTS_EXHAUSTED
        assert (await rig.engine.overview()).groups[0].active == 1

    rig = with_engine(test, runner=runner, max_workers=1)
    assert rig.runner.order == [1, 1, 1, 2]
    assert len(rig.bodies(WorkerStarted)) == 0, "none was started after the first"


def test_a_worker_that_breaks_says_why_and_another_takes_its_place_and_its_task() -> None:
    async def test(rig: EngineRig) -> None:
        rig.engine._driver._recovery = UnusableRecovery()  # type: ignore[assignment]
        await rig.add("one", "two")
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 2
        workers = (await rig.engine.overview()).workers
        assert [worker.kind for worker in workers] == [WorkerKind.BASELINE]

    rig = with_engine(test, runner=ScriptedRunner(raises=[RuntimeError("a bug")]), max_workers=1)
    first, second = rig.bodies(WorkerStopped)
    assert (first.reason, first.detail) == (StopReason.ERROR, "StoreError: the disk is gone")  # type: ignore[attr-defined]
    assert (second.reason, second.detail) == (StopReason.REQUESTED, "")  # type: ignore[attr-defined]
    assert len(rig.bodies(WorkerStarted)) == 1
    assert rig.runner.order == [1, 2, 1]


class UnusableRecovery:
    """Fails to put right what an attempt broke, as when the store can't be read; the lease of the task runs out instead."""

    async def after_break(self, _owned: OwnedTask, _token: CancelToken) -> None:
        raise StoreError("the disk is gone")
