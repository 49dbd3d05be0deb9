"""How a run in a guest ends: its sample, its time, a machine that is switched off, a guest that starts anew or is lost."""

from __future__ import annotations

import math

import pytest

from malbox_tui.model.machine import Downfall, MachineState
from malbox_tui.model.report import Identification, PluginStatus
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, spec, states, with_engine

T = TaskState
DROPS = (("loot.txt", b"stolen"),)


@pytest.mark.parametrize(
    ("code", "reason"),
    [(0, "Finished."), (7, "Finished. The sample ended with exit status 7.")],
)
def test_an_exit_status_is_told_if_it_says_something(code: int, reason: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by, task.reason) == (T.COMPLETED, EndedBy.FINISHED, reason)
        assert task.plugins[0].reason == f"The sample ended with exit status {code}."

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=1.0, code=code))


def test_a_sample_that_switches_its_machine_off_has_ended_and_what_the_hypervisor_has_is_kept() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.reason) == (T.COMPLETED, "Finished. The sample switched its machine off.")
        assert task.plugins[0].status is PluginStatus.COMPLETED
        assert {"network.pcap", "screenshot-001.png"} <= set(rig.results.kept_of(1))
        await rig.until_machine("m1", MachineState.READY)

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=8.0, code=None, drops=DROPS))


def test_a_guest_that_starts_anew_is_followed_and_collected_when_the_time_is_over() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.COMPLETED, EndedBy.FINISHED)
        assert task.reason == "Finished. The sample started its guest anew. Its machine was watched for the whole 60 s."
        assert rig.results.kept_of(1)["dropped-0001.txt"] == b"stolen"

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=5.0, reboots=True, drops=DROPS), timeout_s=60.0)


def test_a_guest_that_starts_anew_and_never_answers_again_is_lost() -> None:
    async def test(rig: EngineRig) -> None:
        body = rig.world.machines["m1"]
        body.reboot, reboot = (lambda _up_at: reboot(math.inf)), body.reboot  # type: ignore[method-assign]
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.FAILED, EndedBy.GUEST_LOST)
        assert "its guest started anew, and did not answer again within 60 s" in task.reason
        assert "network.pcap" in rig.results.kept_of(1), "what the hypervisor has is kept"

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=3.0, reboots=True), timeout_s=200.0)


def test_a_lost_guest_fails_its_task_and_keeps_what_there_is() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.GUEST_LOST_IN_EXECUTE, "m1")
        await rig.add("one", "two", requires=LINUX)
        tasks = await rig.all_final()
        assert states(tasks) == [T.FAILED, T.COMPLETED]
        assert tasks[1].ended_by is EndedBy.GUEST_LOST
        assert tasks[1].plugins[0].status is PluginStatus.FAILED
        assert {"network.pcap", "screenshot-001.png", "run", "report"} <= set(rig.results.kept_of(1))

    with_engine(test, machines=[spec("m1")])


@pytest.mark.parametrize(
    ("downfall", "state", "reason"),
    [
        (Downfall.SHUT_DOWN, T.COMPLETED, "Finished. The sample switched its machine off."),
        (Downfall.CRASHED, T.COMPLETED, "Finished. The system of its guest crashed."),
        (Downfall.SWITCHED_OFF, T.FAILED, "The guest was lost: somebody switched the machine off while the sample ran."),
        (Downfall.FAILED, T.FAILED, "The guest was lost: the hypervisor's process of the machine died while the sample ran."),
    ],
)
def test_the_hypervisor_says_how_a_machine_went_down(downfall: Downfall, state: TaskState, reason: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(5.0)
        rig.world.machines["m1"].switch_off(downfall)
        task = (await rig.all_final(within_s=60.0))[1]
        assert (task.state, task.reason) == (state, reason)
        assert task.ended_by is (EndedBy.FINISHED if state is T.COMPLETED else EndedBy.GUEST_LOST)
        await rig.until_machine("m1", MachineState.READY)

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=1e6))


@pytest.mark.parametrize(
    ("downfall", "what"),
    [
        (Downfall.SHUT_DOWN, "its guest switched the machine off"),
        (Downfall.CRASHED, "the system of its guest crashed"),
        (Downfall.SWITCHED_OFF, "somebody switched the machine off"),
        (Downfall.FAILED, "the hypervisor's process of the machine died"),
    ],
)
def test_the_hypervisor_says_how_a_machine_went_down_before_the_sample_was_started(downfall: Downfall, what: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        rig.world.machines["m1"].switch_off(downfall)
        task = (await rig.all_final(within_s=60.0))[1]
        assert (task.state, task.ended_by) == (T.FAILED, EndedBy.GUEST_LOST)
        assert task.reason == f"The guest was lost: {what} before the sample was started."
        await rig.until_machine("m1", MachineState.READY)

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=1e6))


def test_a_guest_that_is_lost_before_the_sample_was_started_on_a_machine_that_runs_is_told_as_it_was_found() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.GUEST_LOST_IN_PUT, "m1")
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final(within_s=60.0))[1]
        assert (task.state, task.ended_by) == (T.FAILED, EndedBy.GUEST_LOST)
        assert task.reason == "The guest was lost: its guest was gone while a file was copied."

    with_engine(test, machines=[spec("m1")])


def test_a_guest_that_is_lost_while_it_is_collected_costs_what_was_not_collected_yet_and_no_more() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(3.0)
        rig.world.faults.inject(Fault.GUEST_LOST_WHEN_ASKED, "m1")
        task = (await rig.all_final())[1]
        assert task.state is T.COMPLETED
        assert "not all of it was collected: its guest was gone while it was asked (look)" in task.reason
        assert "run" in rig.results.kept_of(1)

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=5.0, drops=DROPS))


def test_a_sample_that_the_platform_cannot_start_fails_with_the_reason_before_its_machine_is_used() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.FAILED, EndedBy.UNSERVICEABLE)
        assert task.reason == "The sample is of the kind pe for windows, which a linux machine can't start."
        assert not rig.world.machines["m1"].dirt.startswith("/nowhere")
        await rig.until_machine("m1", MachineState.READY)
        assert (await rig.machine("m1")).failures == 0

    with_engine(test, machines=[spec("m1")], runner=ScriptedRunner(identification=Identification("pe", None, "windows")))


def test_a_script_is_put_under_its_extension_and_started_by_its_interpreter() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        assert states(await rig.all_final()) == [T.COMPLETED]
        assert b'"started":"/bin/sh /tmp/sample.sh"' in rig.results.kept_of(1)["run"]

    identification = Identification("script", "text/x-shellscript", "linux")
    with_engine(test, machines=[spec("m1")], runner=ScriptedRunner(identification=identification))


def test_a_hypervisor_that_can_do_nothing_costs_no_task() -> None:
    async def test(rig: EngineRig) -> None:
        for fault in (Fault.SCREENSHOT_FAILS, Fault.CAPTURE_BREAKS, Fault.DUMP_FAILS, Fault.MACHINE_UNABLE):
            rig.world.faults.inject(fault, "m1", ALWAYS)
        await rig.add("one", requires=LINUX)
        assert states(await rig.all_final()) == [T.COMPLETED]

    with_engine(test, machines=[spec("m1")])
