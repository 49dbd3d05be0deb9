"""What an engine finds that ended without warning: every task is final, pending or queued again, nothing is lost or done twice."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from malbox_tui.engine import clock
from malbox_tui.engine.attempt import Attempt
from malbox_tui.model.commands import CancelTasks
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import EngineStarted, TaskGivenBack, TaskStarting, WorkerStopped
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.ports import PendingEntry, PluginBench
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Program
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, spec, states, survivor, with_engine
from tests.support.scripted import SlowAtBothEnds


def test_tasks_that_a_killed_engine_left_running_are_taken_up_again_to_a_cap() -> None:
    killed: list[MemoryStore] = []

    async def submit_and_be_killed(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        await be_killed(rig)

    async def be_killed(rig: EngineRig) -> None:
        await rig.until(lambda: len(rig.runner.running) == 3)
        killed.append(survivor(rig.store))

    async def look(rig: EngineRig) -> None:
        tasks = await rig.tasks()
        assert [task.state for task in tasks.values()] == [TaskState.FAILED] * 3
        assert {task.ended_by for task in tasks.values()} == {EndedBy.ATTEMPTS_EXHAUSTED}
        assert "3 times in a row" in tasks[1].reason

    endless = {"min_workers": 3, "max_workers": 3}
    with_engine(submit_and_be_killed, runner=ScriptedRunner(seconds=1e6), **endless)
    for _ in range(2):
        with_engine(be_killed, store=killed[-1], runner=ScriptedRunner(seconds=1e6), **endless)
    with_engine(look, store=killed[-1])


def test_a_task_killed_while_stopping_gets_the_outcome_that_was_decided() -> None:
    killed: list[MemoryStore] = []

    async def be_killed_while_stopping(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.until(lambda: any(task.state is TaskState.STOPPING for task in rig.store._tasks.values()))
        killed.append(survivor(rig.store))

    async def look(rig: EngineRig) -> None:
        task = await rig.task(1)
        assert (task.state, task.ended_by, task.attempts) == (TaskState.COMPLETED, EndedBy.FINISHED, 1)
        assert rig.runner.order == []

    class SlowToLeave(ScriptedRunner):
        async def release(self, bench: PluginBench) -> None:
            await clock.sleep(1.0)
            await super().release(bench)

    with_engine(be_killed_while_stopping, runner=SlowToLeave())
    with_engine(look, store=killed[-1])


def test_an_attempt_that_another_engine_took_over_records_nothing() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.until(lambda: bool(rig.runner.running))
        owned = rig.store._tasks[1]
        rig.store._put(msgspec.structs.replace(owned, token="another", lease_until=1e12))
        await rig.pass_time(15.0)
        assert rig.runner.running == set(), "it is told at the next renewal, and stops"
        await rig.pass_time(100.0)
        task = await rig.task(1)
        assert (task.state, task.token) == (TaskState.RUNNING, "another")
        rig.store._put(msgspec.structs.replace(task, lease_until=0.0))
        assert (await rig.all_final())[1].state is TaskState.COMPLETED

    with_engine(test, runner=ScriptedRunner(seconds=60))


def test_a_clock_that_jumps_forward_takes_nothing_from_a_live_attempt() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.until(lambda: bool(rig.runner.running))
        rig.store._put(msgspec.structs.replace(rig.store._tasks[1], lease_until=0.0))
        tasks = await rig.all_final()
        assert (tasks[1].state, tasks[1].crashes) == (TaskState.COMPLETED, 0)
        assert rig.runner.order == [1]

    with_engine(test, runner=ScriptedRunner(seconds=100))


@pytest.mark.parametrize("state", [TaskState.INITIALIZING, TaskState.PREPARING_RESOURCES, TaskState.RUNNING, TaskState.STOPPING])
def test_killed_in_any_state_with_a_machine_the_next_start_finishes_the_task_once(state: TaskState) -> None:
    killed: list[MemoryStore] = []

    async def be_killed(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.pass_time(200.0)
        await rig.add("one", "two", requires=LINUX)
        await rig.until_state(1, state)
        killed.append(survivor(rig.store))

    async def finish(rig: EngineRig) -> None:
        tasks = await rig.all_final()
        assert states(tasks) == [TaskState.COMPLETED] * 2
        assert [task.attempts for task in tasks.values()] == [1, 1]

    with_engine(be_killed, machines=[spec("m1")], runner=SlowAtBothEnds(), sample=Program(seconds=20.0))
    rig = with_engine(finish, store=killed[0], machines=[spec("m1")])
    assert rig.runner.order == ([2] if state is TaskState.STOPPING else [1, 2])
    started = [event.body for event in rig.store._events if isinstance(event.body, EngineStarted)]
    assert [body.recovered for body in started] == [0, 1]


def test_a_machine_serves_only_after_a_revert_however_the_last_engine_ended() -> None:
    dirty: list[object] = []

    def used(rig: EngineRig) -> None:
        body = rig.world.machines["m1"]
        body.revert(0.0)
        body.touch("something of an earlier epoch")
        dirty.append(body)

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        assert states(await rig.all_final()) == [TaskState.COMPLETED]

    with_engine(test, machines=[spec("m1")], prepare=used)


def test_recovered_tasks_are_taken_in_the_order_of_their_priorities_when_all_are_put_right() -> None:
    killed: list[MemoryStore] = []

    async def be_killed(rig: EngineRig) -> None:
        await rig.add("low 1", "low 2")
        await rig.add("high", priority=9)
        await rig.until(lambda: len(rig.runner.running) == 3)
        killed.append(survivor(rig.store))

    async def finish(rig: EngineRig) -> None:
        await rig.all_final()

    with_engine(be_killed, runner=ScriptedRunner(seconds=1e4), timeout_s=1e5)
    rig = with_engine(finish, store=killed[0], max_workers=1)
    assert rig.runner.order == [3, 1, 2]
    bodies = [event.body for event in rig.store._events if event.position.epoch == 2]
    last_back = max(n for n, body in enumerate(bodies) if isinstance(body, TaskGivenBack))
    first_taken = min(n for n, body in enumerate(bodies) if isinstance(body, TaskStarting))
    assert last_back < first_taken


def test_a_result_store_that_fails_at_start_is_waited_for() -> None:
    killed: list[MemoryStore] = []

    async def be_killed(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        killed.append(survivor(rig.store))

    async def finish(rig: EngineRig) -> None:
        assert states(await rig.all_final()) == [TaskState.COMPLETED]

    with_engine(be_killed)
    with_engine(finish, store=killed[0], prepare=lambda rig: rig.results.raises.extend([StoreError("I/O error")] * 3))


def test_a_bench_that_breaks_while_it_is_given_back_costs_a_task_neither_its_outcome_nor_its_worker() -> None:
    class BreaksAtTheEnd(ScriptedRunner):
        async def release(self, bench: PluginBench) -> None:
            await super().release(bench)
            raise StoreError("the inbox could not be emptied")

    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        assert states(await rig.all_final(within_s=20.0)) == [TaskState.COMPLETED] * 2
        assert (await rig.group()).active == 1

    with_engine(test, runner=BreaksAtTheEnd(), max_workers=1)


def breaks_when_its_end_is_stored(rig: EngineRig) -> None:
    """Each attempt ends with an error after all that it had to do."""
    run = rig.engine._executor.run

    async def run_and_break(attempt: Attempt) -> PendingEntry | None:
        await run(attempt)
        raise StoreError("the inbox could not be emptied")

    rig.engine._executor.run = run_and_break  # type: ignore[method-assign]


def test_an_attempt_that_breaks_when_its_outcome_is_stored_keeps_it_with_its_results() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.until(lambda: len(rig.runner.running) == 2)
        await rig.do(CancelTasks(task_ids=(2,)))
        tasks = await rig.all_final(within_s=20.0)
        assert states(tasks) == [TaskState.COMPLETED, TaskState.CANCELED]
        assert [task.attempts for task in tasks.values()] == [1, 1]
        assert (sorted(rig.results.settled), rig.results.discarded) == ([1, 2], [])
        assert rig.bodies(WorkerStopped) == []

    with_engine(test, prepare=breaks_when_its_end_is_stored, min_workers=2, max_workers=2)


def test_an_attempt_that_breaks_when_its_task_is_given_back_leaves_it_in_the_queue_and_counts_no_crash() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.until_machine("m2", MachineState.READY)
        await rig.pass_time(200.0)
        rig.world.faults.inject(Fault.REVERT_FAILS, "m1")
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.machine, task.requires.avoid) == (TaskState.COMPLETED, "m2", ("m1",))
        assert (task.attempts, [body.crashes for body in rig.bodies(TaskGivenBack)]) == (1, [0])
        assert rig.results.discarded == [1], "once, when it was given back"

    machines = [spec("m1"), spec("m2", tags=("spare",))]
    with_engine(test, prepare=breaks_when_its_end_is_stored, machines=machines)


def test_an_adapter_that_gives_a_call_up_by_itself_breaks_the_attempt_and_nothing_else() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        tasks = await rig.all_final(within_s=20.0)
        assert (tasks[1].state, tasks[1].crashes) == (TaskState.COMPLETED, 0)

    rig = with_engine(test, runner=ScriptedRunner(raises=[asyncio.CancelledError()]))
    assert rig.runner.order == [1, 1]


def test_interrupted_by_stops_a_task_never_runs_out_of_attempts() -> None:
    store = MemoryStore()

    async def interrupt(rig: EngineRig) -> None:
        if not rig.store._tasks:
            await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))

    for _ in range(6):
        with_engine(interrupt, store=store, runner=ScriptedRunner(seconds=1e4), timeout_s=1e5)
    task = store._tasks[1]
    assert (task.state, task.attempts, task.crashes) == (TaskState.PENDING, 0, 0)
