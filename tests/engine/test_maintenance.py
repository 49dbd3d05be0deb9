"""Machines that an operator takes out and brings back, and what a task that needs one is told."""

from __future__ import annotations

from malbox_tui.config.settings import MachinerySettings
from malbox_tui.model.commands import DisableMachines, EnableMachines
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, spec, states, with_engine
from tests.support.virtual_time import settle_loop

M, T = MachineState, TaskState


def test_a_ready_machine_is_switched_off_and_out_and_comes_back_clean() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        outcome = await rig.do(DisableMachines(machines=("m1",)))
        assert outcome.message == "Machine m1 goes out as soon as it is switched off."
        machine = await rig.until_machine("m1", M.DISABLED, within_s=1.0)
        assert (machine.reason, rig.world.machines["m1"].running) == ("maintenance, by ana", False)
        await rig.add("one", requires=LINUX)
        await rig.pass_time(1000.0)
        assert (await rig.machine("m1")).state is M.DISABLED, "nothing but the operator brings it back"
        assert (await rig.do(EnableMachines(machines=("m1",)))).done
        assert states(await rig.all_final()) == [T.COMPLETED]

    with_engine(test, machines=[spec("m1")])


def test_a_machine_at_work_finishes_its_task_and_then_goes_out() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        outcome = await rig.do(DisableMachines(machines=("m1",)))
        assert outcome.message == "Machine m1 goes out when task 1 is done with it."
        assert (await rig.machine("m1")).leaving
        again = await rig.do(DisableMachines(machines=("m1",)))
        assert again.message == "Machine m1 is out for maintenance already."
        await rig.until_machine("m1", M.DISABLED)
        assert states(await rig.tasks()) == [T.COMPLETED, T.PENDING]

    with_engine(test, machines=[spec("m1")])


def test_a_machine_at_work_that_is_wanted_back_in_time_stays() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.do(DisableMachines(machines=("m1",)))
        assert (await rig.do(EnableMachines(machines=("m1",)))).message == "Machine m1 stays in service."
        assert states(await rig.all_final()) == [T.COMPLETED] * 2

    with_engine(test, machines=[spec("m1")])


def test_a_machine_that_is_reverted_goes_out_when_that_has_ended() -> None:
    async def test(rig: EngineRig) -> None:
        outcome = await rig.do(DisableMachines(machines=("m1",)))
        assert outcome.message == "Machine m1 goes out as soon as its revert has ended."
        await rig.until_machine("m1", M.DISABLED, within_s=10.0)
        assert not rig.world.machines["m1"].running

    with_engine(test, machines=[spec("m1")])


def test_a_quarantined_machine_goes_out_at_once_and_is_not_probed() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.QUARANTINED)
        assert (await rig.do(DisableMachines(machines=("m1",)))).message == "Machine m1 is out for maintenance."
        await rig.pass_time(1000.0)
        assert (await rig.machine("m1")).state is M.DISABLED

    with_engine(
        test,
        machines=[spec("m1", max_failures=1)],
        prepare=lambda rig: rig.world.faults.inject(Fault.REVERT_FAILS, "m1", ALWAYS),
    )


def test_an_unknown_machine_among_several_is_refused_and_none_is_touched() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        outcome = await rig.do(DisableMachines(machines=("m1", "m11")))
        assert (outcome.done, outcome.message) == (
            False,
            "There is no machine 'm11'; did you mean m1? Nothing was changed.",
        )
        assert (await rig.machine("m1")).state is M.READY
        assert not (await rig.do(EnableMachines(machines=("nowhere",)))).done
        assert (await rig.do(EnableMachines(machines=("m1",)))).message == "Machine m1 is in service already (ready)."
        assert not (await rig.do(EnableMachines(machines=()))).done

    with_engine(test, machines=[spec("m1")])


def test_a_machine_out_for_maintenance_is_left_to_whoever_works_on_it_when_the_engine_ends() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m2", M.READY)
        await rig.do(DisableMachines(machines=("m1",)))
        await rig.until_machine("m1", M.DISABLED)
        rig.world.machines["m1"].running = True

    rig = with_engine(test, machines=[spec("m1"), spec("m2")], machinery=MachinerySettings(max_starting=9))
    assert {name: body.running for name, body in rig.world.machines.items()} == {"m1": True, "m2": False}


def test_a_task_pinned_to_a_machine_in_maintenance_says_so() -> None:
    pinned = RequirementClass(task_type="dynamic", pin="m1")

    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        await rig.do(DisableMachines(machines=("m1",)))
        await rig.until_machine("m1", M.DISABLED)
        await rig.add("one", requires=pinned)
        assert (await rig.waiting(1)).reason == "waiting for machine m1: it is disabled (maintenance, by ana)"
        await rig.do(EnableMachines(machines=("m1",)))
        assert (await rig.waiting(1)).reason == "waiting for machine m1: it is reverting"
        await rig.until_state(1, T.RUNNING)
        await rig.add("two", requires=pinned)
        await settle_loop()
        assert (await rig.waiting(2)).reason == "waiting for machine m1: it is busy with task 1"
        await rig.all_final()

    with_engine(test, machines=[spec("m1"), spec("m2")])


def test_a_task_that_waits_for_a_machine_is_told_what_they_are_at() -> None:
    office = RequirementClass(task_type="dynamic", platform="linux", arch="x64", tags=("office",))

    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m3", M.QUARANTINED)
        await rig.until_machine("m2", M.READY)
        await rig.add("one", "two", "three", requires=office)
        await rig.until_state(2, T.RUNNING)
        waiting = await rig.waiting(3)
        assert waiting.reason == "waiting for a machine: linux/x64, tag office (2 busy, 1 quarantined)"
        assert (waiting.position, waiting.pending) == (1, 1)
        rig.world.faults.calm()

    with_engine(
        test,
        machines=[spec(name, tags=("office",), max_failures=1) for name in ("m1", "m2", "m3")],
        prepare=lambda rig: rig.world.faults.inject(Fault.REVERT_FAILS, "m3", ALWAYS),
        sample=Program(seconds=100.0),
    )
