"""Worker groups: who gets which task, how many at once, for how long they stay, and with which plugins."""

from __future__ import annotations

import pytest

from malbox_tui.config.workers import PluginRestrictions, ResourceLimitSettings, WorkerSettings
from malbox_tui.model.commands import PausePool, ResizeGroup, ResumePool, SaveLimits
from malbox_tui.model.errors import ConfigError, StoreError
from malbox_tui.model.events import TaskGivenBack, WorkerStarted, WorkerStopped
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.machine import MachineState
from malbox_tui.model.report import PluginStatus
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.model.worker import WorkerKind, WorkerState
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Program
from tests.support.rig import EngineRig, ScriptedRunner, spec, states, with_engine
from tests.support.virtual_time import settle_loop

DYNAMIC = RequirementClass(task_type="dynamic")
WINDOWS = RequirementClass(task_type="dynamic", platform="windows")


def group(name: str, **fields: object) -> WorkerSettings:
    return WorkerSettings(**{"name": name, "max_workers": 2, **fields})  # type: ignore[arg-type]


async def busy(rig: EngineRig) -> dict[str, int]:
    await settle_loop()
    return {view.name: view.busy for view in (await rig.engine.overview()).groups}


def test_a_task_goes_to_the_group_of_the_highest_priority_and_to_the_next_when_that_is_full() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four", "five", "six")
        assert await busy(rig) == {"default": 1, "low": 0, "high": 2}
        await rig.do(ResizeGroup(group="low", max_workers=1))
        assert await busy(rig) == {"default": 1, "low": 1, "high": 2}
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 6

    with_engine(test, max_workers=1, groups=[group("low", priority=1, max_workers=0), group("high", priority=9)])


def test_of_two_groups_of_the_same_priority_the_first_in_the_configuration_is_preferred() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        assert await busy(rig) == {"default": 0, "first": 1, "second": 0}

    with_engine(test, groups=[group("first", priority=7), group("second", priority=7)])


def test_a_group_that_cannot_take_a_task_is_never_woken_for_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        await rig.all_final()

    rig = with_engine(test, max_workers=1, groups=[group("guests", priority=9, compatible_tasks=("dynamic",))])
    assert {body.group for body in rig.bodies(WorkerStarted)} <= {"default"}  # type: ignore[attr-defined]
    assert rig.runner.most_at_once == 1


def test_each_group_takes_its_own_types_and_platforms() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("static")
        await rig.add("on linux", requires=RequirementClass(task_type="dynamic", platform="linux"))
        await rig.add("on windows", requires=WINDOWS)
        await rig.pass_time(20.0)
        workers = {worker.group: worker.tasks_done + len(worker.task_ids) for worker in (await rig.engine.overview()).workers}
        assert workers == {"hosts": 1, "tux": 1, "win": 1}
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 3

    groups = [
        group("hosts", compatible_tasks=("static",), min_workers=1),
        group("tux", compatible_tasks=("dynamic",), compatible_platforms=("linux",), min_workers=1),
        group("win", compatible_tasks=("dynamic",), compatible_platforms=("windows",), min_workers=1),
    ]
    with_engine(test, min_workers=0, max_workers=0, groups=groups, machines=[spec("l1"), spec("w1", platform="windows")])


def test_a_group_for_one_platform_gives_a_task_without_one_a_machine_of_its_own() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("anywhere", requires=DYNAMIC)
        assert (await rig.all_final())[1].machine == "w1"

    groups = [group("win", compatible_platforms=("windows",))]
    with_engine(test, min_workers=0, max_workers=0, groups=groups, machines=[spec("l1"), spec("w1", platform="windows")])


LINUX_FIRST = [group("tux", priority=9, compatible_platforms=("linux",))]
BOTH = [spec("l1"), spec("w1", platform="windows")]


async def fail_on_l1(rig: EngineRig, *, w1_is_busy: bool = False) -> None:
    await rig.until_machine("l1", MachineState.READY)
    await rig.until_machine("w1", MachineState.READY)
    await rig.pass_time(200.0)
    if w1_is_busy:
        await rig.add("holds w1", requires=WINDOWS)
    rig.world.faults.inject(Fault.REVERT_FAILS, "l1")
    await rig.add("anywhere", requires=DYNAMIC)
    await rig.until(lambda: bool(rig.bodies(TaskGivenBack)))


def test_a_machine_that_failed_a_task_is_not_used_again_while_another_group_has_one_in_service() -> None:
    async def test(rig: EngineRig) -> None:
        await fail_on_l1(rig, w1_is_busy=True)
        await rig.until_machine("l1", MachineState.READY)
        assert (await rig.waiting(2)).reason.startswith("waiting for a machine")
        await rig.all_final()
        assert (await rig.task(2)).machine == "w1"

    with_engine(test, groups=LINUX_FIRST, machines=BOTH, sample=Program(seconds=290.0))


def test_a_machine_that_failed_a_task_is_used_again_when_no_group_that_may_work_has_another() -> None:
    async def test(rig: EngineRig) -> None:
        await fail_on_l1(rig)
        tasks = await rig.all_final()
        assert (tasks[1].state, tasks[1].machine) == (TaskState.COMPLETED, "l1")

    with_engine(test, min_workers=0, max_workers=0, groups=LINUX_FIRST, machines=BOTH)


def test_a_worker_with_slots_runs_so_many_tasks_at_once_and_no_more() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(*[f"sample {n}" for n in range(7)])
        worker = (await rig.engine.overview()).workers[0]
        assert (worker.slots, len(worker.task_ids)) == (3, 3)
        assert (await rig.group("wide")).busy == 1
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 7

    wide = group("wide", priority=9, max_workers=1, max_concurrent_tasks=3)
    rig = with_engine(test, min_workers=0, max_workers=0, groups=[wide])
    assert rig.runner.most_at_once == 3


def test_a_surplus_worker_with_slots_finishes_all_that_it_holds() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(*[f"sample {n}" for n in range(6)])
        await rig.pass_time(0.5)
        await rig.do(ResizeGroup(group="wide", max_workers=1))
        workers = (await rig.engine.overview()).workers
        assert sorted((worker.state, len(worker.task_ids)) for worker in workers) == [
            (WorkerState.BUSY, 3),
            (WorkerState.LEAVING, 3),
        ]
        assert states(await rig.all_final()) == [TaskState.COMPLETED] * 6

    rig = with_engine(test, min_workers=0, max_workers=0, groups=[group("wide", max_concurrent_tasks=3)])
    assert rig.runner.order == [1, 2, 3, 4, 5, 6]


def test_each_group_has_its_own_idle_timeout() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.all_final()
        await rig.pass_time(2.5)
        assert [worker.group for worker in (await rig.engine.overview()).workers] == ["default"]
        await rig.pass_time(10.0)
        assert (await rig.engine.overview()).workers == ()

    brisk = group("brisk", priority=9, max_workers=1, idle_timeout_ms=2000)
    with_engine(test, min_workers=0, max_workers=1, idle_s=10.0, groups=[brisk])


def test_plugins_that_a_group_keeps_out_are_skipped_with_the_reason() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert task.state is TaskState.COMPLETED
        skipped = {run.name: run.reason for run in task.plugins if run.status is PluginStatus.SKIPPED}
        assert skipped == {
            "yara": "The worker group picky denies it.",
            "strings": "The worker group picky allows magic, yara only.",
        }

    picky = group("picky", priority=9, plugin_restrictions=PluginRestrictions(allow=("magic", "yara"), deny=("yara",)))
    with_engine(test, groups=[picky], runner=ScriptedRunner(plugins=("magic", "yara", "strings")))


def test_plugins_run_under_the_limits_of_the_group_whose_worker_took_the_task() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("first", "second")
        await rig.all_final()
        assert rig.runner.limits == [ResourceLimits(memory_mb=512, cpu_cores=0.5), ResourceLimits()]

    tight = group("tight", priority=9, max_workers=1, resource_limits=ResourceLimitSettings(memory_mb=512, cpu_cores=0.5))
    with_engine(test, groups=[tight])


def test_a_task_whose_plugins_are_all_kept_out_says_so() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert task.state is TaskState.COMPLETED
        assert task.reason.startswith("Finished with no results: no plugin took part. scripted: The worker group none denies it.")

    none = group("none", priority=9, plugin_restrictions=PluginRestrictions(deny=("scripted",)))
    with_engine(test, groups=[none])


@pytest.mark.parametrize("key", ["allow", "deny"])
def test_a_plugin_list_that_names_an_unknown_plugin_is_refused_at_start(key: str) -> None:
    async def test(rig: EngineRig) -> None:
        raise AssertionError("it started")

    odd = group("odd", plugin_restrictions=PluginRestrictions(**{key: ("scriptd",)}))
    with pytest.raises(ConfigError, match=rf"workers \(odd\): plugin_restrictions.{key}: .*'scriptd'.* scripted"):
        with_engine(test, groups=[odd])


def test_the_limits_of_each_group_change_live_and_outlive_a_restart_only_when_saved() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(ResizeGroup(group="other", min_workers=2, max_workers=3))
        await settle_loop()
        other = await rig.group("other")
        assert (other.active, other.min_workers, other.max_workers, other.saved) == (2, 2, 3, False)
        assert (await rig.group()).saved, "the other group is as it was"
        rig.limits.raises.append(StoreError("The disk is full."))
        assert not (await rig.do(SaveLimits())).done
        assert not (await rig.group("other")).saved
        assert (await rig.do(SaveLimits())).done
        assert rig.limits.saved == {"default": (1, 4), "other": (2, 3)}
        assert (await rig.group("other")).saved
        await rig.do(ResizeGroup(group="other", max_workers=9))
        assert not (await rig.group("other")).saved

    rig = with_engine(test, groups=[group("other")])
    assert [body.kind for body in rig.bodies(WorkerStarted) if body.group == "other"] == [WorkerKind.BASELINE] * 2  # type: ignore[attr-defined]


def test_idle_workers_say_what_they_could_take() -> None:
    async def notes(rig: EngineRig) -> list[str]:
        return [worker.note for worker in (await rig.engine.overview()).workers]

    async def test(rig: EngineRig) -> None:
        assert await notes(rig) == ["could take any task", "could take dynamic tasks on windows"]
        await rig.do(PausePool())
        assert await notes(rig) == ["paused by ana"] * 2
        await rig.do(ResumePool())
        await rig.add("sample")
        await rig.pass_time(0.5)
        assert await notes(rig) == ["", "could take dynamic tasks on windows"]

    picky = group("picky", min_workers=1, compatible_tasks=("dynamic",), compatible_platforms=("windows",))
    with_engine(test, groups=[picky])


def test_hundreds_of_workers_come_and_go_in_many_steps_and_none_is_lost() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(ResizeGroup(min_workers=256, max_workers=256))
        await settle_loop(100)
        assert (await rig.group()).active == 256
        await rig.add(*[f"sample {n}" for n in range(256)])
        await settle_loop(100)
        assert (await rig.group()).busy == 256
        await rig.do(ResizeGroup(min_workers=1, max_workers=256))
        await settle_loop(100)
        kinds = [worker.kind for worker in (await rig.engine.overview()).workers]
        assert kinds.count(WorkerKind.BASELINE) == 1
        await rig.do(ResizeGroup(max_workers=2))
        await rig.pass_time(2.0)
        assert (await rig.group()).active == 2

    rig = with_engine(test)
    assert len(rig.runner.order) == len(set(rig.runner.order)) == 256
    assert len(rig.bodies(WorkerStopped)) == 256
