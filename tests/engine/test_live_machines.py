"""Machines that are added, changed, removed and tried while the engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from malbox_tui.config.machines import MachineSettings, Provider
from malbox_tui.config.settings import MachinerySettings
from malbox_tui.model.commands import (
    DisableMachines,
    EnableMachines,
    ProbeMachines,
    RemoveMachines,
    SetMachine,
)
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import MachineChanged, ScreenshotTaken
from malbox_tui.model.machine import MachineSpec, MachineState
from malbox_tui.model.report import ResultRef
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.machine_body import MachineBody
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, spec, states, with_engine
from tests.support.virtual_time import settle_loop

M, T = MachineState, TaskState
PINNED = RequirementClass(task_type="dynamic", pin="m1")
OFFICE = RequirementClass(task_type="dynamic", platform="linux", tags=("office",))
LONG = Program(seconds=60.0)


async def names(rig: EngineRig) -> list[str]:
    return [machine.name for machine in (await rig.engine.overview()).machines]


async def until_gone(rig: EngineRig, name: str) -> None:
    while name in await names(rig):
        await rig.pass_time(0.1)


def exists(rig: EngineRig, *machines: MachineSpec) -> None:
    """The hypervisor has these, too."""
    rig.world.machines |= {machine.name: MachineBody(machine) for machine in machines}


# --- added ---


def test_an_added_machine_serves_as_soon_as_it_is_proven_clean_and_held_tasks_get_it() -> None:
    async def test(rig: EngineRig) -> None:
        exists(rig, spec("m2", tags=("office",)))
        await rig.add("one", requires=OFFICE, hold=True)
        assert (await rig.waiting(1)).reason.startswith("held: No machine could serve linux, tag office")
        outcome = await rig.do(SetMachine(machine=spec("m2", tags=("office",))))
        assert outcome.message.startswith("Machine m2 is added; it serves as soon as it is proven clean.")
        assert (await rig.waiting(1)).reason == "waiting for a machine: linux, tag office (1 reverting)"
        assert (await rig.all_final())[1].machine == "m2"
        assert (await rig.machine("m2")).history[1].reason == "added by ana"

    rig = with_engine(test, machines=[spec("m1")])
    assert any(body.machine == "m2" for body in rig.bodies(MachineChanged))  # type: ignore[attr-defined]


def test_an_engine_that_began_without_machines_takes_them_too() -> None:
    async def test(rig: EngineRig) -> None:
        exists(rig, spec("m1"))
        assert not (await rig.add("one", requires=LINUX)).accepted
        assert (await rig.do(SetMachine(machine=spec("m1")))).done
        await rig.add("one", requires=LINUX)
        assert states(await rig.all_final()) == [T.COMPLETED]

    with_engine(test)


@pytest.mark.parametrize(
    ("machine", "problem"),
    [
        (spec("two words"), "name: expected a name"),
        (spec("m2", arch="mips"), "arch: expected one of"),
        (spec("m2", max_failures=0), "max_failures: "),
        (spec("m2", provider="magic"), "provider: "),
        (spec("m2", channel="magic"), "channel: "),
        (spec("m2", channel="qga"), "channel: "),
        (spec("m2", uri="test:///default"), "uri: "),
        (spec("m2", folder="relative"), "folder: "),
        (spec("m2", address="m1"), "address: "),
        (spec("m2", address="10.0.0.1"), "m1 has the address 10.0.0.1 already."),
        (spec("m2", tags=tuple(f"t{n}" for n in range(65))), "A machine has at most 64 tags"),
        (spec("m2", provider="libvirt", uri="qemu:///system", snapshot="a"), "Nothing here runs machines of 'libvirt'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_configuration_could_say_is_refused_and_nothing_is_changed(machine: MachineSpec, problem: str) -> None:
    async def test(rig: EngineRig) -> None:
        outcome = await rig.do(SetMachine(machine=machine))
        assert not outcome.done
        assert outcome.message.startswith(problem)
        assert outcome.message.endswith("Nothing was changed.")
        assert await names(rig) == ["m1"]

    with_engine(test, machines=[spec("m1", address="10.0.0.1")])


def test_the_channel_that_is_not_named_is_that_of_the_provider() -> None:
    async def test(rig: EngineRig) -> None:
        rig.engine._adapters.machinery.providers["libvirt"] = rig.engine._adapters.machinery.providers["simulated"]  # type: ignore[index]
        rig.engine._adapters.machinery.channels["qga"] = rig.engine._adapters.machinery.channels["simulated"]  # type: ignore[index]
        machine = MachineSpec(name="m2", provider="libvirt", platform="linux", uri="test:///default", snapshot="clean")
        exists(rig, machine, msgspec.structs.replace(machine, name="m3"))
        assert (await rig.do(SetMachine(machine=machine))).done
        assert (await rig.until_machine("m2", M.READY)).spec == msgspec.structs.replace(machine, channel="qga")
        double = await rig.do(SetMachine(machine=msgspec.structs.replace(machine, name="m3", domain="m2")))
        assert double.message.startswith("m2 is the domain m2 at test:///default already.")

    with_engine(test)


# --- changed ---


def test_a_machine_at_work_is_changed_when_its_task_is_done() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        outcome = await rig.do(SetMachine(machine=spec("m1", tags=("office",))))
        assert outcome.message.startswith("Machine m1 is changed when task 1 is done with it.")
        machine = await rig.machine("m1")
        assert (machine.tags, machine.leaving) == ((), False)
        await rig.until_machine("m1", M.REVERTING)
        assert (await rig.until_machine("m1", M.READY)).tags == ("office",)
        await rig.add("two", requires=OFFICE)
        assert states(await rig.all_final()) == [T.COMPLETED] * 2

    with_engine(test, machines=[spec("m1")], sample=LONG)


@pytest.mark.parametrize("state", [M.READY, M.REVERTING, M.QUARANTINED, M.MISSING])
def test_a_machine_that_nobody_uses_is_changed_and_tried_at_once(state: MachineState) -> None:
    faults = {M.QUARANTINED: Fault.REVERT_FAILS, M.MISSING: Fault.MACHINE_MISSING}

    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", state)
        rig.world.faults.calm()
        await rig.add("one", requires=OFFICE, hold=True)
        assert (await rig.do(SetMachine(machine=spec("m1", tags=("office",))))).done
        machine = await rig.until_machine("m1", M.READY, within_s=30.0)
        assert (machine.tags, machine.failures) == (("office",), 0)
        assert states(await rig.all_final()) == [T.COMPLETED]

    def prepare(rig: EngineRig) -> None:
        if state in faults:
            rig.world.faults.inject(faults[state], "m1", ALWAYS)

    with_engine(test, machines=[spec("m1", max_failures=1)], prepare=prepare)


def test_a_machine_out_for_maintenance_is_changed_and_stays_out() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(DisableMachines(machines=("m1",)))
        await rig.until_machine("m1", M.DISABLED)
        outcome = await rig.do(SetMachine(machine=spec("m1", tags=("office",))))
        assert outcome.message.startswith("Machine m1 is changed; it stays out for maintenance.")
        assert (await rig.machine("m1")).tags == ("office",)
        assert (await rig.machine("m1")).state is M.DISABLED

    with_engine(test, machines=[spec("m1")])


def test_a_machine_that_is_reserved_and_untouched_is_changed_as_well() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        pool = rig.engine._machines
        lease = pool.reserve(LINUX, rig.engine._pool.groups["default"].terms, 99)
        assert lease is not None
        await rig.do(SetMachine(machine=spec("m1", tags=("office",))))
        pool.release(lease)
        await rig.until_machine("m1", M.REVERTING)
        assert (await rig.until_machine("m1", M.READY)).tags == ("office",)

    with_engine(test, machines=[spec("m1")])


def test_what_is_so_already_is_left_alone() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        assert (await rig.do(SetMachine(machine=spec("m1")))).message.startswith("Machine m1 is so already.")
        assert (await rig.machine("m1")).state is M.READY

    with_engine(test, machines=[spec("m1")])


# --- removed ---


def test_a_machine_at_work_is_removed_when_its_task_is_done_and_what_waits_for_it_says_so() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", requires=PINNED)
        await rig.until_state(1, T.RUNNING)
        outcome = await rig.do(RemoveMachines(machines=("m1",)))
        assert outcome.message.startswith("Machine m1 is removed when task 1 is done with it.")
        assert (await rig.machine("m1")).leaving
        await settle_loop()
        assert (await rig.waiting(2)).reason == (
            "waiting for machine m1: it is busy with task 1, and removed by ana when that is done"
        )
        await rig.until_state(1, T.COMPLETED)
        await until_gone(rig, "m1")
        assert not rig.world.machines["m1"].running
        assert (await rig.waiting(2)).reason == "held: Machine m1 was removed by ana."
        refused = await rig.add("three", requires=PINNED)
        assert not refused.accepted
        assert (await rig.do(SetMachine(machine=spec("m1")))).done
        assert states(await rig.all_final()) == [T.COMPLETED] * 2

    with_engine(test, machines=[spec("m1"), spec("m2")], sample=LONG)


@pytest.mark.parametrize("state", [M.READY, M.REVERTING, M.QUARANTINED, M.MISSING, M.DISABLED])
def test_a_machine_that_nobody_uses_is_removed_in_any_state_and_off(state: MachineState) -> None:
    faults = {M.QUARANTINED: Fault.REVERT_FAILS, M.MISSING: Fault.MACHINE_MISSING}

    async def test(rig: EngineRig) -> None:
        if state is M.DISABLED:
            await rig.do(DisableMachines(machines=("m1",)))
        await rig.until_machine("m1", state)
        assert (await rig.do(RemoveMachines(machines=("m1",)))).done
        rig.world.faults.calm()
        await until_gone(rig, "m1")
        assert not rig.world.machines["m1"].running
        await rig.pass_time(1000.0)
        assert await names(rig) == ["m2"], "nothing brings it back"

    def prepare(rig: EngineRig) -> None:
        if state in faults:
            rig.world.faults.inject(faults[state], "m1", ALWAYS)

    with_engine(test, machines=[spec("m1", max_failures=1), spec("m2")], prepare=prepare)


def test_it_is_tried_again_to_switch_a_machine_off_before_nobody_knows_it_any_more() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.do(RemoveMachines(machines=("m1",)))
        rig.world.faults.inject(Fault.STOP_FAILS, "m1", 2)
        await rig.until_state(1, T.COMPLETED)
        await until_gone(rig, "m1")
        assert not rig.world.machines["m1"].running

    with_engine(test, machines=[spec("m1")])


def test_a_machine_that_is_wanted_back_before_its_task_is_done_stays() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.do(RemoveMachines(machines=("m1",)))
        assert (await rig.do(RemoveMachines(machines=("m1",)))).message.startswith("Machine m1 is being removed already.")
        assert (await rig.do(EnableMachines(machines=("m1",)))).message == "Machine m1 stays in the pool."
        await rig.all_final()
        assert (await rig.until_machine("m1", M.READY)).leaving is False

    with_engine(test, machines=[spec("m1")])


# --- tried ---


@pytest.mark.parametrize("state", [M.READY, M.REVERTING, M.QUARANTINED, M.MISSING])
def test_a_machine_is_tried_now_on_request(state: MachineState) -> None:
    faults = {M.QUARANTINED: Fault.REVERT_FAILS, M.MISSING: Fault.MACHINE_MISSING}

    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", state)
        rig.world.faults.calm()
        outcome = await rig.do(ProbeMachines(machines=("m1",)))
        assert outcome.message == "Machine m1 is being tried."
        assert (await rig.machine("m1")).state is M.REVERTING
        await rig.until_machine("m1", M.READY, within_s=10.0)

    def prepare(rig: EngineRig) -> None:
        if state in faults:
            rig.world.faults.inject(faults[state], "m1", ALWAYS)

    with_engine(test, machines=[spec("m1", max_failures=1)], prepare=prepare)


def test_a_machine_that_rests_before_it_is_tried_again_is_tried_now() -> None:
    async def test(rig: EngineRig) -> None:
        while (await rig.machine("m1")).failures < 6:
            await rig.pass_time(1.0)
        rig.world.faults.calm()
        await rig.pass_time(2.0)
        await rig.do(ProbeMachines(machines=("m1",)))
        await rig.until_machine("m1", M.READY, within_s=10.0)

    with_engine(
        test,
        machines=[spec("m1", max_failures=9)],
        prepare=lambda rig: rig.world.faults.inject(Fault.REVERT_FAILS, "m1", ALWAYS),
    )


def test_a_probe_that_fails_once_quarantines_a_machine_again() -> None:
    async def test(rig: EngineRig) -> None:
        assert (await rig.until_machine("m1", M.QUARANTINED)).failures == 3
        await rig.do(ProbeMachines(machines=("m1",)))
        await rig.until_machine("m1", M.REVERTING)
        machine = await rig.until_machine("m1", M.QUARANTINED, within_s=10.0)
        assert machine.reason == "its snapshot could not be loaded"

    with_engine(
        test,
        machines=[spec("m1")],
        prepare=lambda rig: rig.world.faults.inject(Fault.REVERT_FAILS, "m1", ALWAYS),
    )


def test_what_a_task_holds_and_what_is_out_for_maintenance_is_not_tried() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=PINNED)
        await rig.until_state(1, T.RUNNING)
        await rig.until_machine("m2", M.READY)
        outcome = await rig.do(ProbeMachines(machines=("m2", "m1")))
        assert (outcome.done, outcome.message) == (
            False,
            "Machine m1 serves task 1, and is proven clean after it. Nothing was changed.",
        )
        assert (await rig.machine("m2")).state is M.READY
        await rig.do(DisableMachines(machines=("m2",)))
        await rig.until_machine("m2", M.DISABLED)
        outcome = await rig.do(ProbeMachines(machines=("m2",)))
        assert outcome.message.startswith("Machine m2 is out for maintenance; enabling it tries it, too.")
        assert not (await rig.do(ProbeMachines(machines=()))).done

    with_engine(test, machines=[spec("m1"), spec("m2")], sample=LONG)


# --- kept for the next start ---


class Book:
    """Keeps machines in memory, or can't."""

    def __init__(self, problem: str = "") -> None:
        self.kept: list[list[MachineSpec]] = []
        self.problem = problem

    async def save(self, machines: Sequence[MachineSpec]) -> str:
        if self.problem:
            raise StoreError(self.problem)
        self.kept.append(list(machines))
        return "the book"


def with_book(book: Book) -> Any:
    def prepare(rig: EngineRig) -> None:
        rig.engine._desk._book = book

    return prepare


def test_what_was_changed_is_kept_as_it_will_be() -> None:
    book = Book()

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=PINNED)
        await rig.until_state(1, T.RUNNING)
        outcome = await rig.do(SetMachine(machine=spec("m1", tags=("office",))))
        assert outcome.message == "Machine m1 is changed when task 1 is done with it. Kept in the book."
        await rig.do(RemoveMachines(machines=("m2",)))
        await rig.do(RemoveMachines(machines=("m1",)))
        assert book.kept == [[spec("m1", tags=("office",)), spec("m2")], [spec("m1", tags=("office",))], []]
        await rig.do(DisableMachines(machines=("m1",)))
        assert not (await rig.do(RemoveMachines(machines=("m9",)))).done
        assert len(book.kept) == 3, "nothing else is worth keeping"

    with_engine(test, machines=[spec("m1"), spec("m2")], prepare=with_book(book), sample=LONG)


def test_what_cannot_be_kept_holds_for_this_run_and_that_is_told() -> None:
    async def test(rig: EngineRig) -> None:
        exists(rig, spec("m2"))
        outcome = await rig.do(SetMachine(machine=spec("m2")))
        assert outcome.done
        assert outcome.message.endswith(" The machines can't be kept.")
        await rig.until_machine("m2", M.READY)

    with_engine(test, machines=[spec("m1")], prepare=with_book(Book("The machines can't be kept.")))


def test_without_a_book_it_is_said_that_the_next_start_knows_nothing_of_it() -> None:
    async def test(rig: EngineRig) -> None:
        outcome = await rig.do(RemoveMachines(machines=("m1",)))
        assert outcome.message.endswith("The next start has the machines of the configuration again.")

    with_engine(test, machines=[spec("m1")])


# --- what the configuration says when it is read again ---


def of(*machines: MachineSettings, rig: EngineRig) -> Any:
    return msgspec.structs.replace(rig.engine._settings, machines=machines)


def configured(name: str, **fields: Any) -> MachineSettings:
    return MachineSettings(name=name, provider=Provider.SIMULATED, platform="linux", **fields)


def test_machines_of_a_configuration_that_is_read_again_are_added_changed_and_removed() -> None:
    async def test(rig: EngineRig) -> None:
        exists(rig, spec("m3"))
        rig.engine._settings = of(configured("m1"), configured("m2"), rig=rig)
        await rig.until_machine("m2", M.READY)
        rig.engine.reload(of(configured("m2", tags=("office",)), configured("m3"), rig=rig))
        await until_gone(rig, "m1")
        assert (await rig.until_machine("m2", M.READY)).tags == ("office",)
        await rig.until_machine("m3", M.READY)
        assert await names(rig) == ["m2", "m3"]

    with_engine(test, machines=[spec("m1"), spec("m2")])


def test_what_an_operator_changed_stays_so_when_the_configuration_says_nothing_new_of_it() -> None:
    async def test(rig: EngineRig) -> None:
        exists(rig, spec("m3"))
        rig.engine._settings = of(configured("m1"), configured("m2"), rig=rig)
        await rig.do(SetMachine(machine=spec("m1", tags=("office",))))
        await rig.do(SetMachine(machine=spec("m3")))
        await rig.do(RemoveMachines(machines=("m2",)))
        rig.engine.reload(of(configured("m1"), configured("m2"), rig=rig))
        await until_gone(rig, "m2")
        assert (await rig.until_machine("m1", M.READY)).tags == ("office",)
        assert await names(rig) == ["m1", "m3"]
        rig.engine.reload(of(rig=rig))
        await until_gone(rig, "m1")
        assert await names(rig) == ["m3"]

    with_engine(test, machines=[spec("m1"), spec("m2")])


# --- what is shown of machines ---


def test_a_machine_shows_what_it_is_what_is_known_of_it_and_what_it_was_at() -> None:
    async def test(rig: EngineRig) -> None:
        machine = await rig.until_machine("m1", M.READY)
        assert machine.spec == spec("m1")
        assert machine.facts is not None
        assert (machine.facts.memory_mb, machine.facts.vcpus) == (2048, 2)
        for number in range(8):
            await rig.add(f"sample {number}", requires=LINUX)
        await rig.all_final()
        machine = await rig.until_machine("m1", M.READY)
        assert len(machine.history) == 20
        assert [(moment.state, moment.task_id) for moment in machine.history[-5:]] == [
            (M.LEASED, 8),
            (M.STARTING, 8),
            (M.LEASED, 8),
            (M.REVERTING, None),
            (M.READY, None),
        ]
        assert machine.history[-1].at == machine.since

    with_engine(test, machines=[spec("m1")])


def test_the_latest_picture_of_a_screen_stays_with_its_machine() -> None:
    picture = ResultRef("screenshot", "file", 9, "0" * 64, "1/x/screenshot.png")

    async def test(rig: EngineRig) -> None:
        assert (await rig.machine("m1")).screenshot is None
        rig.engine.announce(ScreenshotTaken(task_id=1, machine="m1", result=picture))
        rig.engine.announce(ScreenshotTaken(task_id=1, machine="nowhere", result=picture))
        machine = await rig.machine("m1")
        assert (machine.screenshot, machine.screenshot_at) == (picture, rig.wall.now())

    with_engine(test, machines=[spec("m1")], machinery=MachinerySettings())
