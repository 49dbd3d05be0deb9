"""Tasks are collected for a batch until it is full or was waited for long enough: in the queue, where no worker is kept busy by it."""

from __future__ import annotations

from malbox_tui.model.commands import CancelTasks, PausePool, ResizeGroup, ResumePool, SetPriority, ShutdownMode
from malbox_tui.model.events import WorkerStarted
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import RequirementClass, TaskState
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, batching, spec, states, with_engine
from tests.support.virtual_time import settle_loop

T = TaskState
ARCHIVE = RequirementClass("archive")


async def states_now(rig: EngineRig) -> list[TaskState]:
    await settle_loop()
    return states(await rig.tasks())


async def busy(rig: EngineRig) -> dict[str, int]:
    await settle_loop()
    return {view.name: view.busy for view in (await rig.engine.overview()).groups}


def test_a_full_batch_is_run_at_once_and_together() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        assert await states_now(rig) == [T.PENDING] * 3
        await rig.add("four")
        assert await states_now(rig) == [T.RUNNING] * 4
        assert await busy(rig) == {"default": 0, "batch": 1}
        await rig.all_final()

    assert with_engine(test, groups=[batching(size=4)]).runner.batches == [[1, 2, 3, 4]]


def test_a_batch_that_does_not_fill_is_run_as_it_is_after_the_wait() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.pass_time(100.0)
        await rig.add("one")
        await rig.pass_time(1.0)
        await rig.add("two")
        await rig.pass_time(0.9)
        assert await states_now(rig) == [T.PENDING] * 2
        await rig.pass_time(0.2)
        assert await states_now(rig) == [T.RUNNING] * 2
        await rig.all_final()

    assert with_engine(test, groups=[batching(wait_s=2.0)]).runner.batches == [[1, 2]]


def test_what_is_left_over_is_the_beginning_of_another_batch() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        await rig.pass_time(1.5)
        await rig.add("four", "five", "six")
        assert await states_now(rig) == [T.RUNNING] * 4 + [T.PENDING] * 2
        await rig.pass_time(1.9)
        assert (await states_now(rig))[4:] == [T.PENDING] * 2
        await rig.pass_time(0.2)
        assert (await states_now(rig))[4:] == [T.RUNNING] * 2
        await rig.all_final()

    rig = with_engine(test, groups=[batching(wait_s=2.0)], runner=ScriptedRunner(seconds=10.0))
    assert rig.runner.batches == [[1, 2, 3, 4], [5, 6]]


def test_tasks_that_waited_for_a_worker_long_enough_wait_for_no_others_then() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.pass_time(1.0)
        await rig.add("three")
        await rig.until_state(2, T.COMPLETED)
        assert await states_now(rig) == [T.COMPLETED, T.COMPLETED, T.RUNNING]
        await rig.all_final()

    rig = with_engine(
        test,
        groups=[batching(size=2, wait_s=5.0, max_workers=1)],
        max_workers=0,
        min_workers=0,
        runner=ScriptedRunner(seconds=10.0),
    )
    assert rig.runner.batches == [[1, 2], [3]]


def test_tasks_that_are_canceled_meanwhile_leave_nothing_of_their_wait_to_those_that_come_after_them() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.pass_time(1.0)
        await rig.do(CancelTasks(task_ids=(1, 2)))
        await rig.pass_time(0.5)
        await rig.add("three")
        await rig.pass_time(1.9)
        assert await states_now(rig) == [T.CANCELED, T.CANCELED, T.PENDING]
        await rig.pass_time(0.2)
        assert await states_now(rig) == [T.CANCELED, T.CANCELED, T.RUNNING]
        await rig.all_final()

    assert with_engine(test, groups=[batching(wait_s=2.0)]).runner.batches == [[3]]


def test_a_collecting_task_says_so() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        assert (await rig.waiting(1)).reason == "batch collects a batch: 2 of 4, for 2 s at most"
        await rig.do(PausePool())
        assert (await rig.waiting(1)).reason == "paused by ana"

    with_engine(test, groups=[batching()])


def test_no_other_group_takes_what_a_preferred_one_collects() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        assert await busy(rig) == {"default": 0, "batch": 0}
        await rig.pass_time(2.1)
        assert await busy(rig) == {"default": 0, "batch": 1}
        await rig.all_final()

    with_engine(test, groups=[batching()], runner=ScriptedRunner(seconds=10.0))


def test_a_group_of_lower_priority_collects_what_the_others_have_no_room_for() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four", "five")
        assert await busy(rig) == {"default": 1, "batch": 1}
        assert await states_now(rig) == [T.RUNNING] * 5
        await rig.all_final()

    rig = with_engine(test, max_workers=1, groups=[batching(priority=1)], runner=ScriptedRunner(seconds=10.0, together=True))
    assert rig.runner.batches == [[2, 3, 4, 5]]


def test_a_worker_that_becomes_free_takes_what_a_group_of_lower_priority_collects() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        await rig.until_state(1, T.COMPLETED, within_s=2.0)
        assert await states_now(rig) == [T.COMPLETED, T.RUNNING, T.PENDING]
        await rig.all_final()

    with_engine(test, max_workers=1, groups=[batching(priority=1, wait_s=60.0)])


def test_when_the_group_that_collects_is_full_another_takes_what_it_collected_at_once() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.add("one", "two")
        assert await busy(rig) == {"default": 0, "batch": 0}
        await rig.add("three", requires=LINUX)
        assert await busy(rig) == {"default": 1, "batch": 1}
        assert (await states_now(rig))[:2] == [T.RUNNING, T.PENDING]
        assert (await rig.waiting(2)).reason == "all workers of default and batch are busy (2 of 2)"
        await rig.all_final()

    with_engine(test, max_workers=1, groups=[batching(max_workers=1, wait_s=60.0)], machines=[spec("m1")])


def test_what_a_full_group_collected_goes_before_what_stands_behind_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.until_machine("m2", MachineState.READY)
        await rig.do(PausePool())
        await rig.add("one")
        await rig.add("two", "three", requires=LINUX)
        await rig.do(ResumePool())
        assert (await states_now(rig))[::2] == [T.RUNNING, T.PENDING]
        await rig.all_final()

    with_engine(test, max_workers=1, groups=[batching(max_workers=1, wait_s=60.0)], machines=[spec("m1"), spec("m2")])


def test_a_group_that_collects_goes_on_with_what_a_full_one_collected() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.add("one", "two")
        await rig.pass_time(1.0)
        await rig.add("three", requires=LINUX)
        assert (await rig.waiting(1)).reason == "second collects a batch: 2 of 4, for 2 s at most"
        await rig.pass_time(0.9)
        assert await busy(rig) == {"default": 0, "batch": 1, "second": 0}
        await rig.pass_time(0.2)
        assert await busy(rig) == {"default": 0, "batch": 1, "second": 1}
        await rig.all_final()

    groups = [batching(max_workers=1, wait_s=60.0), batching(name="second", priority=8, wait_s=2.0)]
    assert with_engine(test, groups=groups, machines=[spec("m1")]).runner.batches == [[1, 2]]


def test_tasks_that_need_a_machine_are_run_each_by_itself() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", requires=LINUX)
        await rig.all_final()

    rig = with_engine(test, groups=[batching(wait_s=1000.0)], machines=[spec("m1"), spec("m2")])
    assert (sorted(rig.runner.order), rig.runner.batches) == ([1, 2], [])


def test_a_batch_holds_tasks_of_one_class() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.add("three", requires=ARCHIVE)
        await rig.pass_time(1.0)
        await rig.add("four")
        await rig.add("five", requires=ARCHIVE)
        assert await states_now(rig) == [T.PENDING] * 5
        await rig.all_final()

    rig = with_engine(test, groups=[batching(size=4, compatible_tasks=("static", "archive"))])
    assert sorted(rig.runner.batches) == [[1, 2, 4], [3, 5]]


def test_whoever_stands_first_is_in_the_first_batch() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one", "two", "three", "four")
        await rig.do(SetPriority(task_ids=(3,), priority=9))
        await rig.do(SetPriority(task_ids=(4,), priority=7))
        await rig.do(ResumePool())
        await rig.all_final()

    rig = with_engine(test, max_workers=0, min_workers=0, groups=[batching(size=2, max_workers=1)])
    assert rig.runner.batches == [[3, 4], [1, 2]]


def test_a_task_that_is_reordered_begins_no_new_wait_for_the_others() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.pass_time(1.5)
        await rig.do(SetPriority(task_ids=(2,), priority=9))
        await rig.pass_time(0.6)
        assert await states_now(rig) == [T.RUNNING] * 2
        await rig.all_final()

    assert with_engine(test, groups=[batching(wait_s=2.0)]).runner.batches == [[2, 1]]


def test_a_lone_task_that_is_reordered_waits_no_longer() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.pass_time(1.5)
        await rig.do(SetPriority(task_ids=(1,), priority=9))
        await rig.add("two")
        await rig.pass_time(0.6)
        assert await states_now(rig) == [T.RUNNING] * 2
        await rig.all_final()

    with_engine(test, groups=[batching(wait_s=2.0)])


def test_no_worker_is_started_before_there_is_a_batch_for_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.pass_time(1.0)
        assert rig.bodies(WorkerStarted) == []
        await rig.add("three", "four", "five", "six", "seven", "eight")
        await settle_loop()
        assert len(rig.bodies(WorkerStarted)) == 2, "one for each full batch"
        await rig.all_final()

    rig = with_engine(test, min_workers=0, groups=[batching(size=4)])
    assert rig.runner.batches == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_a_pause_keeps_a_batch_from_being_run_until_it_ends() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.do(PausePool())
        await rig.pass_time(50.0)
        assert await states_now(rig) == [T.PENDING] * 2
        await rig.do(ResumePool())
        assert await states_now(rig) == [T.RUNNING] * 2
        await rig.all_final()

    with_engine(test, groups=[batching()])


def test_a_group_that_may_have_no_worker_any_more_collects_nothing() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.do(ResizeGroup(group="batch", max_workers=0))
        assert await busy(rig) == {"default": 2, "batch": 0}
        await rig.all_final()

    assert with_engine(test, groups=[batching(wait_s=1000.0)]).runner.batches == []


def test_tasks_that_are_collected_when_the_engine_stops_stay_pending() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        rig.engine.stop(ShutdownMode.DRAIN)
        assert (await rig.waiting(1)).reason == "the engine is stopping; the next start goes on with it"

    rig = with_engine(test, groups=[batching()], stop=None)
    assert [task.state for task in rig.store._tasks.values()] == [T.PENDING] * 2
