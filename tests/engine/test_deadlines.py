"""Time limits: each ends an attempt by itself, says which it was and how long it allowed, and takes nothing with it that was found."""

from __future__ import annotations

import pytest

from malbox_tui.config.settings import AnalysisSettings, MachinerySettings
from malbox_tui.engine import clock
from malbox_tui.model.commands import CancelTasks
from malbox_tui.model.due import TimeLimit
from malbox_tui.model.errors import StoreFull
from malbox_tui.model.events import TaskGivenBack
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import EndedBy, Task, TaskState
from malbox_tui.ports import PluginBench
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Program
from malbox_tui.store.requests import Noting
from tests.support.rig import LINUX, BreakableStore, EngineRig, ScriptedRunner, spec, with_engine

T = TaskState


def told(task: Task) -> tuple[TaskState, EndedBy | None, str]:
    return task.state, task.ended_by, task.reason or ""


class SlowBench(ScriptedRunner):
    """Takes its time to give a bench, and to take one back."""

    acquire_s = 0.0
    release_s = 0.0

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        await clock.sleep(self.acquire_s)
        return await super().acquire(limits)

    async def release(self, bench: PluginBench) -> None:
        await clock.sleep(self.release_s)
        await super().release(bench)


def slow(**fields: float) -> SlowBench:
    runner = SlowBench()
    for name, value in fields.items():
        setattr(runner, name, value)
    return runner


def test_a_sample_that_is_not_laid_out_in_time_ends_its_task() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        tasks = await rig.all_final()
        why = "It was still initializing after 5 s, which is as long as that may take."
        assert [told(task) for task in tasks.values()] == [(T.TIMED_OUT, EndedBy.STAGE_TIMEOUT, why)] * 2
        assert tasks[1].stages["initializing"] == pytest.approx(5.0)
        assert sorted(rig.results.settled) == [1, 2]

    rig = with_engine(test, runner=slow(acquire_s=1e6), analysis=AnalysisSettings(initializing_timeout_s=5.0))
    assert rig.runner.order == []


def test_the_analysis_timeout_keeps_what_the_plugins_have() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        task = (await rig.all_final())[1]
        why = "The analysis timeout of 20 s ended it during scripted."
        assert told(task) == (T.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT, why)
        assert [run.results != () for run in task.plugins] == [True]
        assert task.stages["running"] == pytest.approx(20.0)
        assert rig.results.settled == [1]

    with_engine(test, timeout_s=20.0, runner=ScriptedRunner(seconds=1e6))


@pytest.mark.parametrize(("acquire_s", "ended_after_s"), [(1e6, 40.0), (30.0, 40.0)], ids=["initializing", "running"])
def test_the_critical_timeout_is_over_the_whole_attempt_on_this_host(acquire_s: float, ended_after_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        task = (await rig.all_final())[1]
        assert task.state is T.TIMED_OUT
        assert task.ended_by is EndedBy.CRITICAL_TIMEOUT
        during = "" if acquire_s > 40.0 else " during scripted"
        assert task.reason == f"The critical timeout of 40 s for the whole attempt ended it{during}."
        assert sum(task.stages.values()) - task.stages["pending"] == pytest.approx(ended_after_s)

    analysis = AnalysisSettings(timeout_s=39.0, critical_timeout_s=40.0)
    runner = slow(acquire_s=acquire_s)
    runner.seconds = 1e6
    with_engine(test, runner=runner, analysis=analysis)


@pytest.mark.parametrize("stage", [T.PREPARING_RESOURCES, T.RUNNING])
def test_the_critical_timeout_ends_a_task_with_a_machine_in_each_stage_and_gives_the_machine_back(stage: TaskState) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.pass_time(200.0)
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.STOPPING)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.TIMED_OUT, EndedBy.CRITICAL_TIMEOUT)
        assert list(task.stages)[-2] == stage
        assert sum(task.stages.values()) - task.stages["pending"] - task.stages["stopping"] == pytest.approx(critical_s, abs=1.0)
        machine = await rig.until_machine("m1", MachineState.READY)
        assert machine.failures == 0

    critical_s = 2.0 if stage is T.PREPARING_RESOURCES else 6.0
    analysis = AnalysisSettings(timeout_s=critical_s - 0.5, critical_timeout_s=critical_s)
    with_engine(test, machines=[spec("m1")], analysis=analysis, sample=Program(seconds=1e6), runner=slow(release_s=0.2))


def test_a_task_whose_clean_up_takes_too_long_ends_without_it_and_the_clean_up_goes_on() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        task = (await rig.all_final())[1]
        assert told(task) == (T.COMPLETED, EndedBy.FINISHED, "Finished.")
        assert task.stages["stopping"] == pytest.approx(5.0)
        assert rig.runner.benches_out == 1
        await rig.add("two")
        await rig.until_state(2, T.RUNNING, within_s=1.0)
        await rig.pass_time(100.0)
        assert rig.runner.benches_out == 0

    with_engine(test, max_workers=1, runner=slow(release_s=60.0), analysis=AnalysisSettings(stopping_timeout_s=5.0))


def test_waiting_for_a_full_disk_takes_nothing_from_the_time_of_an_attempt() -> None:
    async def test(rig: EngineRig) -> None:
        rig.store.broken[Noting] = StoreFull("no space left on device")
        rig.quarantine.extract_raises.append(StoreFull("no space left on device"))
        await rig.add("one")
        await rig.until_state(1, T.INITIALIZING)
        await rig.pass_time(500.0)
        assert (await rig.task(1)).state is T.INITIALIZING
        due = await rig.due(1)
        assert due is not None
        assert due.stands
        assert due.at - rig.wall.now() == pytest.approx(10.0, abs=0.5)
        rig.store.broken.clear()
        task = (await rig.all_final())[1]
        assert (task.state, task.stages["running"]) == (T.COMPLETED, pytest.approx(25.0))

    analysis = AnalysisSettings(timeout_s=26.0, critical_timeout_s=27.0, initializing_timeout_s=10.0)
    with_engine(test, store=BreakableStore(), runner=ScriptedRunner(seconds=25.0), analysis=analysis)


def test_a_machine_that_is_not_there_in_time_is_left_for_another_and_not_blamed() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m2", MachineState.READY)
        await rig.pass_time(200.0)
        rig.world.faults.inject(Fault.GUEST_NEVER_UP, "m1")
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.machine, task.attempts, task.crashes) == (T.COMPLETED, "m2", 1, 0)
        assert (await rig.machine("m1")).failures == 0
        await rig.until_machine("m1", MachineState.READY)

    rig = with_engine(test, machines=[spec("m1"), spec("m2")], analysis=AnalysisSettings(preparing_timeout_s=10.0))
    (given_back,) = rig.bodies(TaskGivenBack)
    why = "Machine m1: it was not there for the task within 10 s. Another machine is to serve it."
    assert given_back.reason == why  # type: ignore[attr-defined]


def test_a_task_whose_machines_are_never_there_in_time_fails_at_the_cap() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m2", MachineState.READY)
        await rig.pass_time(200.0)
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.FAILED, EndedBy.GUEST_NEVER_UP)
        assert (task.reason or "").endswith("within 2 s. That was failure 2 of 2; it is not tried again.")
        assert [(await rig.machine(name)).failures for name in ("m1", "m2")] == [0, 0]

    machinery, analysis = MachinerySettings(max_attempts=2), AnalysisSettings(preparing_timeout_s=2.0)
    with_engine(test, machines=[spec("m1"), spec("m2")], machinery=machinery, analysis=analysis)


def test_the_clock_of_a_task_that_is_canceled_while_it_waits_for_a_full_disk_goes_on() -> None:
    async def test(rig: EngineRig) -> None:
        rig.store.broken[Noting] = StoreFull("no space left on device")
        rig.quarantine.extract_raises.append(StoreFull("no space left on device"))
        await rig.add("one")
        await rig.until_state(1, T.INITIALIZING)
        await rig.pass_time(100.0)
        await rig.do(CancelTasks(task_ids=(1,)))
        await rig.until_state(1, T.STOPPING)
        due = await rig.due(1)
        assert due is not None
        assert (due.limit, due.stands) == (TimeLimit.STOPPING, False)
        rig.store.broken.clear()
        await rig.all_final()

    with_engine(test, store=BreakableStore(), runner=slow(release_s=5.0))


@pytest.mark.parametrize("cancel_after_s", [19.0, 22.0], ids=["before the limit", "while plugins hand over what they have"])
def test_a_persons_cancel_goes_before_a_limit(cancel_after_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        await rig.pass_time(cancel_after_s)
        assert (await rig.do(CancelTasks(task_ids=(1,)))).done
        task = (await rig.all_final())[1]
        assert told(task) == (T.CANCELED, EndedBy.USER, "Canceled by ana while running: its plugins were at work.")

    with_engine(test, timeout_s=20.0, runner=ScriptedRunner(seconds=25.0, deaf=True))


def test_a_task_whose_time_was_over_before_the_engine_stopped_is_not_run_again() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        await rig.pass_time(22.0)

    rig = with_engine(test, timeout_s=20.0, runner=ScriptedRunner(seconds=25.0, deaf=True))
    task = rig.store._tasks[1]
    assert (task.state, task.ended_by) == (T.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT)
    assert task.plugins[0].results
