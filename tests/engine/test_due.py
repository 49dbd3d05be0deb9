"""What is due next is told of each task at work, the same on the task and on its worker, in every stage."""

from __future__ import annotations

import pytest

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.model.commands import CancelTasks, PausePool
from malbox_tui.model.due import TimeLimit
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import TaskState
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, spec, with_engine
from tests.support.scripted import SlowAtBothEnds

T = TaskState
ANALYSIS = AnalysisSettings(
    timeout_s=30.0,
    critical_timeout_s=500.0,
    initializing_timeout_s=70.0,
    preparing_timeout_s=80.0,
    stopping_timeout_s=90.0,
)
SECONDS = {
    T.INITIALIZING: (TimeLimit.INITIALIZING, 70.0),
    T.PREPARING_RESOURCES: (TimeLimit.PREPARING, 80.0),
    T.RUNNING: (TimeLimit.ANALYSIS, 30.0),
    T.STOPPING: (TimeLimit.STOPPING, 90.0),
}


def test_each_stage_tells_its_own_limit_from_its_begin_on() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.pass_time(200.0)
        await rig.add("one", requires=LINUX)
        for state, (limit, seconds) in SECONDS.items():
            task = await rig.until_state(1, state)
            due = await rig.due(1)
            assert due is not None
            assert (due.limit, due.seconds, due.stands) == (limit, seconds, False)
            assert due.at == pytest.approx(task.stage_since + seconds), state
        await rig.all_final()

    with_engine(test, machines=[spec("m1")], runner=SlowAtBothEnds(), analysis=ANALYSIS)


def test_nothing_is_due_for_a_task_that_waits_or_has_ended() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one")
        assert await rig.due(1) is None
        rig.engine._pool.lift("operator")
        await rig.all_final()
        assert await rig.due(1) is None

    with_engine(test)


def test_the_critical_limit_is_told_when_it_comes_before_that_of_the_stage() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        task = await rig.until_state(1, T.RUNNING)
        due = await rig.due(1)
        assert due is not None
        assert (due.limit, due.seconds) == (TimeLimit.CRITICAL, 30.5)
        assert due.at == pytest.approx(task.stage_since - 1.0 + 30.5)
        await rig.all_final()

    analysis = AnalysisSettings(timeout_s=30.0, critical_timeout_s=30.5)
    with_engine(test, runner=SlowAtBothEnds(seconds=5.0), analysis=analysis)


@pytest.mark.parametrize("jump_s", [90_000.0, -90_000.0], ids=["forward", "back"])
def test_a_jump_of_the_wall_clock_leaves_as_much_time_as_there_was(jump_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(10.0)
        before = await rig.due(1)
        assert before is not None
        rig.wall.jumped_s = jump_s
        after = await rig.due(1)
        assert after is not None
        assert after.at - before.at == pytest.approx(jump_s)
        await rig.pass_time(after.at - rig.wall.now() + 0.1)
        assert (await rig.task(1)).reason == "Finished. Its machine was watched for the whole 30 s."

    with_engine(test, machines=[spec("m1")], analysis=ANALYSIS, sample=Program(seconds=1.0))


def test_each_task_of_a_worker_has_its_own() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", timeout_s=20.0)
        await rig.pass_time(5.0)
        await rig.add("two", timeout_s=40.0)
        await rig.pass_time(1.0)
        dues = [await rig.due(task_id) for task_id in (1, 2)]
        assert [due.at - rig.wall.now() for due in dues if due is not None] == pytest.approx([14.0, 39.0])

    with_engine(test, runner=ScriptedRunner(seconds=50.0), analysis=ANALYSIS)


def test_what_a_plugin_that_was_asked_to_end_has_left_is_told_by_why_it_is_to_end() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("canceled", "late")
        await rig.until(lambda: len(rig.runner.running) == 2)
        at = rig.wall.now()
        await rig.do(CancelTasks(task_ids=(1,)))
        due = await rig.due(1)
        assert due is not None
        assert (due.limit, due.seconds, due.stands) == (TimeLimit.ENDING, 7.0, False)
        assert due.at == pytest.approx(at + 7.0)
        await rig.pass_time(31.0)
        due = await rig.due(2)
        assert due is not None
        assert (due.limit, due.seconds) == (TimeLimit.ENDING, 20.0)

    times = AnalysisSettings(timeout_s=30.0, critical_timeout_s=500.0, cancel_grace_s=7.0, flush_grace_s=20.0)
    with_engine(test, runner=ScriptedRunner(seconds=45.0, deaf=True), analysis=times)
