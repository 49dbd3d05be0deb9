"""A wall clock that jumps: leases, idle times, deadlines and stages go on as if nothing had happened."""

from __future__ import annotations

import pytest

from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import TaskState
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, spec, states, survivor, with_engine

T = TaskState
DAY_AND_AN_HOUR = 25 * 3600.0
JUMPS = pytest.mark.parametrize("jump_s", [DAY_AND_AN_HOUR, -DAY_AND_AN_HOUR], ids=["forward", "back"])


@JUMPS
def test_a_running_task_goes_on_and_ends_once(jump_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("host")
        await rig.add("guest", requires=LINUX)
        await rig.until_state(2, T.RUNNING)
        rig.wall.jumped_s = jump_s
        await rig.pass_time(90.0)
        assert states(await rig.tasks()) == [T.RUNNING] * 2, "three leases later"
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED] * 2
        for task in tasks.values():
            assert (task.attempts, task.crashes) == (1, 0)
            assert min(task.stages.values()) >= 0.0

    rig = with_engine(test, machines=[spec("m1")], runner=ScriptedRunner(seconds=200.0), sample=Program(seconds=200.0))
    assert sorted(rig.runner.order) == [1, 2]


@JUMPS
def test_idle_times_and_deadlines_are_as_long_as_they_were(jump_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        rig.wall.jumped_s = jump_s
        await rig.pass_time(28.0)
        assert (await rig.task(1)).state is T.RUNNING
        await rig.pass_time(3.0)
        assert (await rig.task(1)).state is T.TIMED_OUT
        await rig.pass_time(50.0)
        assert (await rig.group()).active == 1
        await rig.pass_time(12.0)
        assert (await rig.group()).active == 0

    with_engine(test, min_workers=0, idle_s=60.0, timeout_s=30.0, runner=ScriptedRunner(seconds=1e6))


@JUMPS
def test_machines_are_reverted_probed_and_reserved_as_before(jump_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        rig.wall.jumped_s = jump_s
        await rig.add("one", "two", requires=LINUX)
        assert states(await rig.all_final(within_s=60.0)) == [T.COMPLETED] * 2

    with_engine(test, machines=[spec("m1")])


@JUMPS
def test_a_waiting_task_has_waited_no_less_than_nothing(jump_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("first", "waits")
        await rig.until(lambda: bool(rig.runner.running))
        rig.wall.jumped_s = jump_s
        tasks = await rig.all_final()
        assert tasks[2].stages["pending"] >= 0.0
        assert tasks[1].stages["running"] == pytest.approx(max(0.0, 10.0 + jump_s), abs=0.5)

    with_engine(test, max_workers=1, runner=ScriptedRunner(seconds=10.0))


@JUMPS
def test_what_a_killed_engine_left_is_recovered_whatever_the_time_is_then(jump_s: float) -> None:
    killed = []

    async def be_killed(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        killed.append(survivor(rig.store))

    async def finish(rig: EngineRig) -> None:
        tasks = await rig.all_final()
        assert (tasks[1].state, tasks[1].crashes) == (T.COMPLETED, 0)
        assert min(tasks[1].stages.values()) >= 0.0

    def late(rig: EngineRig) -> None:
        rig.wall.jumped_s = jump_s

    with_engine(be_killed, runner=ScriptedRunner(seconds=100.0))
    with_engine(finish, store=killed[0], prepare=late)
