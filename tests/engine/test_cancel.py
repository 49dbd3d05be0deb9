"""Canceling: in each state, twice, too late, and at moments when the task is between two hands. It never costs a worker, a machine or
another task."""

from __future__ import annotations

import pytest

from malbox_tui.engine import clock
from malbox_tui.model.commands import CancelTasks, PausePool, RetryTasks
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import TaskCanceled, TaskCompleted
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.world import Program
from malbox_tui.store.requests import Changing, Claiming
from tests.support.rig import LINUX, BreakableStore, EngineRig, ScriptedRunner, spec, states, with_engine
from tests.support.scripted import ScriptedQuarantine, SlowAtBothEnds
from tests.support.virtual_time import settle_loop

T = TaskState


async def check_nothing_was_lost(rig: EngineRig) -> None:
    """Both machines and all four workers take tasks, and every task ends."""
    await rig.add("a", "b", requires=LINUX)
    await rig.add("c", "d")
    tasks = await rig.all_final()
    assert states(tasks)[-4:] == [T.COMPLETED] * 4
    for name in ("m1", "m2"):
        assert (await rig.until_machine(name, MachineState.READY)).failures == 0


WHERE = {
    T.INITIALIZING: "initializing: its sample was being laid out",
    T.PREPARING_RESOURCES: "preparing: its machine m1 was being brought up",
    T.RUNNING: "running: the sample was being brought into its guest",
}


@pytest.mark.parametrize("state", WHERE)
def test_a_task_in_work_can_be_canceled_in_each_of_its_states_and_says_where_it_was(state: TaskState) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m2", MachineState.READY)
        await rig.pass_time(200.0)
        await rig.add("one", "other", requires=LINUX)
        await rig.until_state(1, state)
        assert (await rig.do(CancelTasks(task_ids=(1,)))).message == "Task 1 was asked to stop."
        again = await rig.do(CancelTasks(task_ids=(1,)))
        done_with = ("Task 1 was asked to stop.", "Task 1 is ending already, as canceled.")
        assert again.message in done_with, "asking twice does nothing more"
        await rig.until_state(1, T.CANCELED, within_s=5.0)
        task = await rig.task(1)
        assert (task.ended_by, task.reason) == (EndedBy.USER, f"Canceled by ana while {WHERE[state]}.")
        assert (await rig.all_final())[2].state is T.COMPLETED
        await check_nothing_was_lost(rig)

    rig = with_engine(test, machines=[spec("m1"), spec("m2")], runner=SlowAtBothEnds(), sample=Program(seconds=20.0))
    assert len(rig.bodies(TaskCanceled)) == 1


def test_a_task_that_is_stopping_keeps_its_outcome() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.STOPPING)
        outcome = await rig.do(CancelTasks(task_ids=(1,)))
        assert (outcome.done, outcome.message) == (False, "Task 1 is ending already, as completed.")
        assert (await rig.all_final())[1].state is T.COMPLETED
        await check_nothing_was_lost(rig)

    with_engine(test, machines=[spec("m1"), spec("m2")], runner=SlowAtBothEnds())


@pytest.mark.parametrize("final", [T.COMPLETED, T.FAILED, T.TIMED_OUT, T.CANCELED])
def test_a_task_that_ended_a_moment_ago_is_left_alone_whatever_it_ended_as(final: TaskState) -> None:
    async def test(rig: EngineRig) -> None:
        if final is T.FAILED:
            rig.runner.raises.append(StoreError("no room"))
        if final is T.TIMED_OUT:
            rig.runner.seconds = 1e6
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.order))
        if final is T.CANCELED:
            await rig.do(CancelTasks(task_ids=(1,)))
        before = (await rig.all_final())[1]
        assert before.state is final
        outcome = await rig.do(CancelTasks(task_ids=(1,)))
        assert (outcome.done, outcome.message) == (False, f"Task 1 is already {final}.")
        assert await rig.task(1) == before

    with_engine(test, timeout_s=20.0)


def test_the_same_task_twice_in_one_command_is_canceled_once() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one", "two")
        outcome = await rig.do(CancelTasks(task_ids=(1, 1, 2)))
        assert [target.done for target in outcome.targets] == [True, False, True]
        assert outcome.message == "2 of 3 tasks canceled."

    assert len(with_engine(test).bodies(TaskCanceled)) == 2


def test_a_cancel_in_each_turn_of_a_tasks_life_on_a_machine_is_kept_or_refused() -> None:
    for turns in range(0, 120, 3):

        async def test(rig: EngineRig, turns: int = turns) -> None:
            await rig.until_machine("m1", MachineState.READY)
            await rig.add("sample", requires=LINUX)
            await settle_loop(turns % 30)
            await rig.pass_time(0.25 * (turns // 30))
            outcome = await rig.do(CancelTasks(task_ids=(1,)))
            task = (await rig.all_final())[1]
            assert task.state is (T.CANCELED if outcome.done else T.COMPLETED), turns
            await rig.until_machine("m1", MachineState.READY)

        rig = with_engine(test, machines=[spec("m1")], runner=ScriptedRunner(seconds=0), sample=Program(seconds=0.1))
        assert len(rig.bodies(TaskCanceled)) + len(rig.bodies(TaskCompleted)) == 1


def test_a_task_canceled_while_it_goes_back_for_another_machine_is_not_tried_again() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.pass_time(200.0)
        rig.world.faults.inject(Fault.REVERT_FAILS, "m1")
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.PREPARING_RESOURCES)
        rig.store.broken[Changing] = StoreError("I/O error")
        await rig.pass_time(10.0)
        assert (await rig.do(CancelTasks(task_ids=(1,)))).done
        rig.store.broken.clear()
        task = (await rig.all_final())[1]
        assert (task.state, task.reason) == (T.CANCELED, "Canceled by ana before it was tried again.")

    rig = with_engine(test, machines=[spec("m1")], store=BreakableStore(), runner=ScriptedRunner(seconds=0))
    assert rig.runner.order == []


def test_a_task_canceled_while_the_store_does_not_take_its_claim_is_canceled_when_it_does() -> None:
    async def test(rig: EngineRig) -> None:
        rig.store.broken[Claiming] = StoreError("I/O error")
        await rig.do(PausePool())
        await rig.add("one")
        rig.engine._pool.lift("operator")
        while 1 not in rig.engine._tokens:
            await settle_loop(1)
        assert (await rig.do(CancelTasks(task_ids=(1,)))).done
        await rig.pass_time(5.0)
        rig.store.broken.clear()
        assert (await rig.all_final())[1].state is T.CANCELED

    assert with_engine(test, store=BreakableStore()).runner.order == []


def test_a_task_canceled_while_its_attempt_breaks_is_canceled() -> None:
    class BreaksWhenAsked(ScriptedRunner):
        async def work(self, job, stop):  # type: ignore[no-untyped-def]
            self.order.append(job.task_id)
            await stop.wait()
            raise RuntimeError("a bug")

    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.order))
        assert (await rig.do(CancelTasks(task_ids=(1,)))).done
        task = (await rig.all_final())[1]
        assert (task.state, task.reason) == (T.CANCELED, "Canceled by ana.")

    assert with_engine(test, runner=BreaksWhenAsked()).runner.order == [1]


def test_a_task_canceled_while_its_sample_cannot_be_laid_out_is_canceled() -> None:
    class NeverThere(ScriptedQuarantine):
        async def extract(self, sha256: str, target: object) -> int:
            await clock.sleep(1e6)
            return 0

    async def test(rig: EngineRig) -> None:
        rig.engine._driver._executor._stores.quarantine.extract = NeverThere().extract  # type: ignore[method-assign]
        await rig.add("one")
        await rig.until_state(1, T.INITIALIZING)
        await rig.do(CancelTasks(task_ids=(1,)))
        await rig.until_state(1, T.CANCELED, within_s=1.0)

    with_engine(test)


def test_a_canceled_task_can_be_retried_and_stays_canceled_itself() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one")
        await rig.do(CancelTasks(task_ids=(1,)))
        rig.engine._pool.lift("operator")
        assert (await rig.do(RetryTasks(task_ids=(1,)))).done
        assert states(await rig.all_final()) == [T.CANCELED, T.COMPLETED]

    with_engine(test)


def test_a_task_that_another_engine_holds_is_not_promised_to_be_canceled() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one")
        from msgspec.structs import replace

        owned = replace(rig.store._tasks[1], state=T.RUNNING, token="theirs", worker="w", lease_until=1e12)
        rig.store._put(owned)
        outcome = await rig.do(CancelTasks(task_ids=(1,)))
        assert not outcome.done
        assert "no worker here holds it" in outcome.message
        rig.store._put(replace(owned, lease_until=0.0))
        await rig.pass_time(20.0)
        assert (await rig.task(1)).state is T.PENDING, "its lease ran out"

    with_engine(test)


def test_when_the_store_fails_at_one_of_several_the_others_are_accounted_for() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one", "two")
        rig.store.broken[Changing] = StoreError("I/O error")
        outcome = await rig.do(CancelTasks(task_ids=(1, 77, 2)))
        assert [target.message for target in outcome.targets] == [
            "Task 1 was left alone: I/O error",
            "There is no task 77. `malbox-tui tasks` lists those there are.",
            "Task 2 was left alone: I/O error",
        ]
        assert states(await rig.tasks()) == [T.PENDING] * 2
        rig.store.broken.clear()
        assert (await rig.do(CancelTasks(task_ids=(1, 2)))).message == "2 of 2 tasks canceled."

    with_engine(test, store=BreakableStore())


def test_machines_that_fail_for_ever_keep_no_cancel_waiting() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.pass_time(30.0)
        assert (await rig.do(CancelTasks(task_ids=(1,)))).message == "Task 1 is canceled."

    with_engine(test, machines=[spec("m1")], prepare=lambda rig: rig.world.faults.inject(Fault.REVERT_HANGS, "m1", ALWAYS))
