"""Machines that fail, hang, are missing, or are wanted for maintenance."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from malbox_tui.config.settings import MachinerySettings
from malbox_tui.engine import clock
from malbox_tui.engine.machine_care import FRESH_S
from malbox_tui.model.commands import DisableMachines, EnableMachines, ProbeMachines
from malbox_tui.model.errors import GuestUnreachable, MachineError
from malbox_tui.model.events import MachineChanged
from malbox_tui.model.machine import MachineSpec, MachineState
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from malbox_tui.ports import GuestSession
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, spec, states, with_engine
from tests.support.virtual_time import settle_loop

M, T = MachineState, TaskState
SLOW = MachinerySettings(start_timeout_s=20.0, probe_interval_s=300.0)


def break_after_ready(fault: Fault, *names: str):  # type: ignore[no-untyped-def]
    """Let the machines be proven clean once, and rest until they are reverted anew for a task; then `fault` always strikes."""

    async def prepare(rig: EngineRig) -> None:
        for name in names:
            await rig.until_machine(name, M.READY)
        await rig.pass_time(121.0)
        for name in names:
            rig.world.faults.inject(fault, name, ALWAYS)

    return prepare


def test_a_machine_that_fails_to_start_sends_its_task_to_another_one() -> None:
    async def test(rig: EngineRig) -> None:
        await break_after_ready(Fault.REVERT_FAILS, "m1")(rig)
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.machine, task.attempts) == (T.COMPLETED, "m2", 1)
        assert task.requires.avoid == ("m1",)

    with_engine(test, machines=[spec("m1"), spec("m2", tags=("spare",))], machinery=SLOW)


@pytest.mark.parametrize(
    ("fault", "ended_by"),
    [
        (Fault.REVERT_FAILS, EndedBy.MACHINE_FAILED),
        (Fault.MACHINE_MISSING, EndedBy.MACHINE_FAILED),
        (Fault.GUEST_NEVER_UP, EndedBy.GUEST_NEVER_UP),
        (Fault.GUEST_REFUSES, EndedBy.GUEST_NEVER_UP),
        (Fault.REVERT_HANGS, EndedBy.GUEST_NEVER_UP),
    ],
)
def test_after_so_many_machines_the_task_is_failed_in_words(fault: Fault, ended_by: EndedBy) -> None:
    async def test(rig: EngineRig) -> None:
        await break_after_ready(fault, "m1", "m2", "m3")(rig)
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.FAILED, ended_by)
        assert task.reason.endswith("That was failure 2 of 2; it is not tried again.")
        assert task.requires.avoid == ("m1",)
        assert task.machine == "m2"
        rig.world.faults.calm()

    machinery = MachinerySettings(max_attempts=2, start_timeout_s=20.0)
    with_engine(test, machines=[spec("m1"), spec("m2"), spec("m3")], machinery=machinery)


def test_a_task_that_its_only_machine_failed_gets_it_again_when_it_is_clean() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        await rig.pass_time(121.0)
        rig.world.faults.inject(Fault.REVERT_FAILS, "m1")
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.PREPARING_RESOURCES)
        await rig.until_state(1, T.PENDING)
        await settle_loop()
        assert (await rig.waiting(1)).reason == "waiting for a machine: linux (1 reverting, 1 failed it before)"
        assert (await rig.all_final())[1].state is T.COMPLETED

    with_engine(test, machines=[spec("m1")])


def test_a_task_may_use_a_machine_that_failed_it_as_soon_as_the_last_other_one_is_out() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        await rig.until_machine("m2", M.READY)
        await rig.pass_time(121.0)
        rig.world.faults.inject(Fault.REVERT_FAILS, "m1")
        await rig.add("busy", requires=RequirementClass(task_type="dynamic", pin="m2"))
        await rig.until_state(1, T.RUNNING)
        await rig.add("one", requires=LINUX)
        await rig.until_machine("m1", M.REVERTING)
        await rig.until_machine("m1", M.READY)
        await rig.pass_time(5.0)
        assert (await rig.task(2)).state is T.PENDING, "it waits for the other one"
        await rig.do(DisableMachines(machines=("m2",)))
        assert (await rig.all_final())[2].machine == "m1"

    with_engine(test, machines=[spec("m1"), spec("m2", tags=("spare",))], sample=Program(seconds=60.0))


def test_a_machine_that_cannot_be_proven_clean_is_quarantined_with_the_reason_and_comes_back_by_itself() -> None:
    async def test(rig: EngineRig) -> None:
        machine = await rig.until_machine("m1", M.QUARANTINED)
        assert (machine.reason, machine.failures) == ("its snapshot could not be loaded", 3)
        await rig.add("one", requires=LINUX)
        assert (await rig.waiting(1)).reason == "waiting for a machine: linux (1 quarantined)"
        rig.world.faults.calm()
        await rig.pass_time(290.0)
        assert (await rig.machine("m1")).state is M.QUARANTINED
        await rig.pass_time(20.0)
        assert (await rig.all_final())[1].state is T.COMPLETED
        assert (await rig.until_machine("m1", M.READY)).failures == 0

    with_engine(
        test,
        machines=[spec("m1", max_failures=3)],
        machinery=SLOW,
        prepare=lambda rig: rig.world.faults.inject(Fault.REVERT_FAILS, "m1", ALWAYS),
    )


def test_a_machine_that_fails_probes_for_ever_is_tried_once_each_time() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.QUARANTINED)
        for _ in range(3):
            await rig.until_machine("m1", M.REVERTING)
            await rig.until_machine("m1", M.QUARANTINED)
        assert len(rig.engine._tracker) == 1, "one worker, and nothing that sleeps until the next probe"

    rig = with_engine(
        test,
        machines=[spec("m1", max_failures=2)],
        machinery=SLOW,
        prepare=lambda rig: rig.world.faults.inject(Fault.GUEST_NEVER_UP, "m1", ALWAYS),
    )
    states_ = [body.state for body in rig.bodies(MachineChanged)]  # type: ignore[attr-defined]
    assert states_ == [M.QUARANTINED] + [M.REVERTING, M.QUARANTINED] * 3


@pytest.mark.parametrize("fault", [Fault.REVERT_FAILS, Fault.MACHINE_MISSING])
def test_an_operator_brings_a_machine_back_without_a_restart(fault: Fault) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.QUARANTINED, M.MISSING)
        rig.world.faults.calm()
        outcome = await rig.do(EnableMachines(machines=("m1",)))
        assert outcome.message == "Machine m1 is being reverted; it serves as soon as it is proven clean."
        await rig.until_machine("m1", M.READY, within_s=10.0)
        await rig.pass_time(1000.0)
        assert (await rig.machine("m1")).state is M.READY, "the probe that was planned is off"

    with_engine(test, machines=[spec("m1")], prepare=lambda rig: rig.world.faults.inject(fault, "m1", ALWAYS))


def test_a_machine_that_the_hypervisor_does_not_know_is_missing_and_tried_again() -> None:
    async def test(rig: EngineRig) -> None:
        machine = await rig.until_machine("m1", M.MISSING)
        assert machine.reason == "the hypervisor knows no machine of this name"
        rig.world.faults.calm()
        await rig.until_machine("m1", M.READY, within_s=310.0)

    with_engine(test, machines=[spec("m1")], prepare=lambda rig: rig.world.faults.inject(Fault.MACHINE_MISSING, "m1", ALWAYS))


@pytest.mark.parametrize("fault", [Fault.REVERT_HANGS, Fault.STOP_HANGS, Fault.GUEST_NEVER_UP, Fault.REVERT_LEAVES_OFF])
def test_a_call_that_hangs_holds_neither_the_machine_nor_the_others_for_ever(fault: Fault) -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(fault, "m1")
        await rig.until_machine("m2", M.READY, within_s=60.0)
        await rig.until_machine("m1", M.READY, within_s=120.0)
        rig.world.faults.calm()

    with_engine(
        test,
        machines=[spec("m1"), spec("m2")],
        machinery=MachinerySettings(max_starting=1, start_timeout_s=20.0),
        prepare=lambda rig: rig.world.faults.inject(fault, "m1"),
    )


def test_no_more_than_max_starting_machines_start_at_once() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.pass_time(3.5)
        assert sorted(machine.state for machine in (await rig.engine.overview()).machines) == [M.READY] * 2 + [M.REVERTING] * 2
        await rig.pass_time(3.5)
        assert {machine.state for machine in (await rig.engine.overview()).machines} == {M.READY}

    with_engine(test, machines=[spec(f"m{n}") for n in range(4)], machinery=MachinerySettings(max_starting=2))


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError(5, "I/O"), asyncio.CancelledError(), KeyError("m1")], ids=repr)
@pytest.mark.parametrize("call", ["check", "revert", "connect", "stop"])
def test_whatever_an_adapter_raises_the_machine_is_cared_for(call: str, error: BaseException) -> None:
    def broken(rig: EngineRig) -> None:
        machinery = rig.engine._adapters.machinery
        adapter = machinery.channels["simulated"] if call == "connect" else machinery.providers["simulated"]
        real, left = getattr(adapter, call), [1, 1, 1]

        async def breaks(machine: MachineSpec) -> object:
            if left:
                left.pop()
                raise error
            return await real(machine)

        setattr(adapter, call, breaks)

    async def test(rig: EngineRig) -> None:
        machine = await rig.until_machine("m1", M.READY, M.QUARANTINED)
        assert (machine.state is M.READY) == (call == "stop"), "a failed stop is no proof of anything"
        if call == "stop":
            await rig.do(ProbeMachines(machines=("m1",)))
            await rig.until_machine("m1", M.REVERTING)
        await rig.until_machine("m1", M.READY, within_s=400.0)

    with_engine(test, machines=[spec("m1")], prepare=broken)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), MachineError("m1", "odd"), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("call", ["push", "start"])
def test_whatever_a_guest_session_raises_the_guest_is_lost_and_nothing_else(call: str, error: BaseException) -> None:
    class Odd:
        def __init__(self, real: GuestSession) -> None:
            self._real = real

        def __getattr__(self, name: str) -> object:
            return self._raise if name == call else getattr(self._real, name)

        async def _raise(self, *_args: object, **_named: object) -> None:
            raise error

        async def close(self) -> None:
            await self._real.close()
            raise RuntimeError("another bug")

    async def test(rig: EngineRig) -> None:
        channel = rig.engine._adapters.machinery.channels["simulated"]
        await rig.until_machine("m1", M.READY)
        real = channel.connect

        async def connect(machine: MachineSpec) -> GuestSession:
            channel.connect = real  # type: ignore[method-assign]
            return Odd(await real(machine))  # type: ignore[return-value]

        channel.connect = connect  # type: ignore[method-assign]
        await rig.do(ProbeMachines(machines=("m1",)))
        await rig.until_machine("m1", M.REVERTING)
        await rig.until_machine("m1", M.READY)
        await rig.add("one", "two", requires=LINUX)
        tasks = await rig.all_final()
        assert states(tasks) == [T.FAILED, T.COMPLETED]
        assert tasks[1].ended_by is EndedBy.GUEST_LOST
        assert len(tasks[1].plugins) == 2, "what ran on this side is kept"

    with_engine(test, machines=[spec("m1")])


def test_a_guest_that_is_not_told_goodbye_in_time_holds_nothing_up() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        rig.world.durations = replace(rig.world.durations, hang_up=(1e6, 1e6))
        await rig.until_state(1, T.COMPLETED, within_s=12.0)

    with_engine(test, machines=[spec("m1")])


def test_a_machine_error_names_the_machine_of_the_task_whatever_the_adapter_says() -> None:
    async def test(rig: EngineRig) -> None:
        channel = rig.engine._adapters.machinery.channels["simulated"]
        await rig.until_machine("m2", M.READY)
        real = channel.connect

        async def connect(machine: MachineSpec) -> GuestSession:
            if machine.name == "m1":
                raise GuestUnreachable("somebody else", "no answer")
            return await real(machine)

        channel.connect = connect  # type: ignore[method-assign]
        await clock.sleep(FRESH_S + 1.0)
        await rig.add("one", requires=LINUX)
        assert (await rig.all_final())[1].requires.avoid == ("m1",)

    with_engine(test, machines=[spec("m1"), spec("m2", tags=("spare",))])


def counted_connections(rig: EngineRig) -> list[str]:
    """The machines that are connected to from now on."""
    channel = rig.engine._adapters.machinery.channels["simulated"]
    real, names = channel.connect, []

    async def connect(machine: MachineSpec) -> GuestSession:
        names.append(machine.name)
        return await real(machine)

    channel.connect = connect  # type: ignore[method-assign]
    return names


def test_a_task_goes_on_with_the_conversation_in_which_its_machine_was_proven_clean() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        connections = counted_connections(rig)
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        assert connections == []
        await rig.all_final()
        await rig.until_machine("m1", M.READY)
        assert connections == ["m1"]

    with_engine(test, machines=[spec("m1")])


def test_a_machine_whose_guest_was_lost_while_it_was_ready_is_reverted_and_serves() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        rig.world.machines["m1"].lose_guest()
        connections = counted_connections(rig)
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.attempts) == (T.COMPLETED, 1)
        assert connections[0] == "m1"

    with_engine(test, machines=[spec("m1")])


def test_a_machine_that_waited_for_long_is_reverted_before_it_serves() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        connections = counted_connections(rig)
        await clock.sleep(FRESH_S + 1.0)
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        assert connections == ["m1"]
        assert (await rig.all_final())[1].state is T.COMPLETED

    with_engine(test, machines=[spec("m1")])
