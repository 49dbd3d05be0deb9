"""Machines that serve: reserved before the claim, started for a task, given back at once, clean before they serve again."""

from __future__ import annotations

import msgspec
import pytest

from malbox_tui.config.settings import MachinerySettings
from malbox_tui.model.commands import CancelTasks, PausePool, ResumePool, SetPriority
from malbox_tui.model.events import MachineChanged, TaskGivenBack, TaskStageChanged
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.machine import MachineState
from malbox_tui.model.report import PluginStatus
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from malbox_tui.ports import ClaimRequest, PluginBench
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Program
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, spec, states, with_engine
from tests.support.virtual_time import settle_loop

M, T = MachineState, TaskState


def moves(rig: EngineRig, name: str) -> list[MachineState]:
    return [body.state for body in rig.bodies(MachineChanged) if body.machine == name]  # type: ignore[attr-defined]


def test_a_task_runs_on_a_machine_and_the_machine_is_reverted_before_the_next() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", requires=LINUX)
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED] * 2
        assert [task.machine for task in tasks.values()] == ["m1", "m1"]
        assert [run.name for run in tasks[1].plugins] == ["guest-run", "scripted"]
        assert set(tasks[1].stages) == {"pending", "initializing", "preparing_resources", "running", "stopping"}
        for task_id in (1, 2):
            ran = msgspec.json.decode(rig.results.kept_of(task_id)["run"])
            assert (ran["end"], ran["exit_code"], ran["output"]) == ("exited", 0, "hello")
        await rig.until_machine("m1", M.READY)

    rig = with_engine(test, machines=[spec("m1")])
    one_task = [M.LEASED, M.STARTING, M.LEASED, M.REVERTING, M.READY]
    assert moves(rig, "m1") == [M.READY, *one_task, *one_task], "it began as reverting"
    assert rig.runner.most_at_once == 1


def test_completed_does_not_wait_for_the_revert() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.COMPLETED)
        assert (await rig.machine("m1")).state is M.REVERTING

    with_engine(test, machines=[spec("m1")])


def test_a_machine_is_reserved_before_the_claim_and_a_lost_claim_gives_it_back_untouched() -> None:
    class Stolen(MemoryStore):
        async def claim(self, request: ClaimRequest) -> None:
            held.append(engine.machine("m1"))
            return

    held: list[object] = []
    engine: EngineRig

    async def test(rig: EngineRig) -> None:
        nonlocal engine
        engine = rig
        await rig.until_machine("m1", M.READY)
        await rig.add("one", requires=LINUX)
        await settle_loop()
        first = await held[0]  # type: ignore[misc]
        assert first.state is M.READY, "it is free again"
        assert (await rig.group()).busy == 0

    rig = with_engine(test, machines=[spec("m1")], store=Stolen())
    assert moves(rig, "m1") == [M.READY, M.LEASED, M.READY]


def test_two_tasks_never_share_a_machine_and_no_worker_waits_for_one() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        await rig.add("one", "two", "three", requires=LINUX)
        await settle_loop()
        assert (await rig.group()).busy == 1, "busy means working"
        assert (await rig.waiting(2)).reason == "waiting for a machine: linux (1 busy)"
        await rig.all_final()

    assert with_engine(test, machines=[spec("m1")]).runner.most_at_once == 1


def test_a_top_priority_task_that_no_free_machine_can_take_holds_nobody_up() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("taken", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.add("first", priority=99, requires=LINUX)
        await rig.add(*[f"ordinary {n}" for n in range(5)])
        await rig.pass_time(3.0)
        assert [task.state for task in (await rig.tasks()).values()] == [T.RUNNING, T.PENDING] + [T.COMPLETED] * 5
        await rig.all_final()

    with_engine(test, machines=[spec("m1")], max_workers=6, sample=Program(seconds=30.0))


def test_an_x86_task_runs_on_a_free_x64_machine_when_the_x86_one_is_busy() -> None:
    x86 = RequirementClass(task_type="dynamic", arch="x86")

    async def test(rig: EngineRig) -> None:
        await rig.until_machine("old", M.READY)
        await rig.add("one", requires=x86)
        await rig.until_state(1, T.RUNNING)
        await rig.add("two", requires=x86)
        await rig.until_state(2, T.RUNNING)
        assert [task.machine for task in (await rig.tasks()).values()] == ["old", "new"]

    with_engine(test, machines=[spec("new"), spec("old", arch="x86")], sample=Program(seconds=100.0))


def test_an_x64_task_never_runs_on_an_x86_machine() -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("one", requires=RequirementClass(task_type="dynamic", arch="x64"))
        assert account.refused[0].refusal.reason == "No machine could serve x64: the closest, old, lacks arch x64."

    with_engine(test, machines=[spec("old", arch="x86")])


def test_the_machine_with_the_fewest_tags_that_are_not_asked_for_is_taken() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("plain", M.READY)
        await rig.add("one", requires=LINUX)
        await rig.add("two", requires=RequirementClass(task_type="dynamic", tags=("office",)))
        tasks = await rig.all_final()
        assert [task.machine for task in tasks.values()] == ["plain", "rich"]

    with_engine(test, machines=[spec("rich", tags=("office", "net")), spec("plain")], machinery=MachinerySettings(max_starting=9))


def test_a_sample_that_switches_its_machine_off_is_a_normal_end() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.COMPLETED, EndedBy.FINISHED)
        assert task.plugins[0].reason == "The sample switched its machine off."
        assert (await rig.until_machine("m1", M.READY)).failures == 0

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=3.0, code=None))


def test_a_guest_lost_while_the_sample_runs_fails_the_task_and_keeps_what_there_is() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.GUEST_LOST_IN_EXECUTE, "m1")
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.FAILED, EndedBy.GUEST_LOST)
        assert [(run.name, run.status) for run in task.plugins] == [
            ("guest-run", PluginStatus.FAILED),
            ("scripted", PluginStatus.COMPLETED),
        ]
        assert task.plugins[1].results

    rig = with_engine(test, machines=[spec("m1")])
    assert not rig.bodies(TaskGivenBack), "the sample ran: that is not tried again"


def test_the_analysis_timeout_ends_what_runs_in_the_guest() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT)
        assert task.reason == "The analysis timeout of 30 s ended it during guest-run."
        assert task.plugins[1].status is PluginStatus.COMPLETED
        assert task.stages["running"] == pytest.approx(30.0, abs=1.0), "what there is was collected"

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=1e6), timeout_s=30.0)


def test_a_task_canceled_while_its_machine_starts_ends_at_once_and_the_machine_is_reverted() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        await rig.pass_time(200.0)
        await rig.add("one", "two", requires=LINUX)
        await rig.until_state(1, T.PREPARING_RESOURCES)
        assert (await rig.machine("m1")).state is M.STARTING
        assert (await rig.do(CancelTasks(task_ids=(1,)))).done
        await rig.until_state(1, T.CANCELED, within_s=1.0)
        machine = await rig.machine("m1")
        assert (machine.state, machine.task_id) == (M.REVERTING, None)
        assert (await rig.all_final())[2].state is T.COMPLETED

    with_engine(test, machines=[spec("m1")])


def test_a_result_of_the_guest_that_cannot_be_kept_fails_its_own_run_only() -> None:
    async def test(rig: EngineRig) -> None:
        from malbox_tui.model.errors import StoreFull

        rig.results.raises += [StoreFull("no space left on device")] * 20
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert task.state is T.COMPLETED
        assert task.reason.startswith(
            "Finished; 1 of 2 plugins failed: guest-run: What it did could not be kept: no space left on device; could not "
        )

    with_engine(test, machines=[spec("m1")])


def test_a_bench_that_cannot_be_had_gives_the_machine_back_untouched() -> None:
    class NoBench(ScriptedRunner):
        async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
            from malbox_tui.model.errors import PluginUnavailable

            raise PluginUnavailable("host", "no space left on device")

    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        await rig.add("one", requires=LINUX)
        assert (await rig.all_final())[1].ended_by is EndedBy.PLUGIN_ERROR
        assert (await rig.machine("m1")).state is M.READY

    rig = with_engine(test, machines=[spec("m1")], runner=NoBench())
    assert moves(rig, "m1") == [M.READY, M.LEASED, M.READY]


def test_a_priority_changed_while_tasks_wait_for_a_machine_decides_who_gets_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one", "two", "three", requires=LINUX)
        await rig.do(SetPriority(task_ids=(3,), priority=9))
        await rig.do(ResumePool())
        await rig.all_final()

    rig = with_engine(test, machines=[spec("m1")])
    assert rig.runner.order == [3, 1, 2]
    assert len(rig.bodies(TaskStageChanged)) == 9
