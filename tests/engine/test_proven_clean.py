"""Machines are proven clean: by traces that the revert has to take away, and never by the word of the hypervisor alone."""

from __future__ import annotations

import msgspec
import pytest

from malbox_tui.config.settings import MachinerySettings
from malbox_tui.model.commands import EnableMachines, ProbeMachines
from malbox_tui.model.errors import GuestRefused, MachineError, StoreError
from malbox_tui.model.events import MachineChanged
from malbox_tui.model.machine import MachineSpec, MachineState
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.ports import GuestMark, GuestSession, Machinery
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.guests import SimulatedSession
from malbox_tui.simulated.marks import SimulatedMarks
from tests.support.rig import LINUX, EngineRig, spec, states, with_engine
from tests.support.virtual_time import settle_loop

M, T = MachineState, TaskState
NO_FILE_LEFT = "its snapshot did not take back the file"


def test_what_a_revert_left_is_found_and_the_machine_never_serves_with_it() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.REVERT_LEAVES_DIRT, "m1", ALWAYS)
        await rig.add("one", "two", requires=LINUX)
        await rig.until_state(1, T.COMPLETED)
        machine = await rig.until_machine("m1", M.QUARANTINED)
        assert machine.reason.startswith(NO_FILE_LEFT)
        assert machine.failures == 3
        assert (await rig.task(2)).state is T.PENDING
        rig.world.faults.calm()
        await rig.do(EnableMachines(machines=("m1",)))
        assert states(await rig.all_final()) == [T.COMPLETED] * 2
        assert rig.world.deceptions == []

    with_engine(test, machines=[spec("m1")])


def test_a_revert_that_left_something_once_is_done_again() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.REVERT_LEAVES_DIRT, "m1")
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.COMPLETED)
        machine = await rig.until_machine("m1", M.READY)
        assert rig.world.faults.hits == {Fault.REVERT_LEAVES_DIRT: 1}
        assert machine.failures == 1, "until a task was served without one"

    with_engine(test, machines=[spec("m1")])


def test_traces_are_looked_for_after_the_task_whatever_happened_between() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.REVERT_LEAVES_DIRT, "m1", ALWAYS)
        rig.world.faults.inject(Fault.GUEST_LOST_IN_EXECUTE, "m1")
        await rig.add("one", requires=LINUX)
        assert (await rig.until_machine("m1", M.QUARANTINED)).reason.startswith(NO_FILE_LEFT)
        await rig.do(ProbeMachines(machines=("m1",)))
        machine = await rig.until_machine("m1", M.QUARANTINED)
        assert machine.reason.startswith(NO_FILE_LEFT), "they are looked for until they are gone"

    with_engine(test, machines=[spec("m1")])


def refusing(rig: EngineRig, call: str, error: Exception) -> None:
    """From now on no guest does what it is asked by `call`."""

    async def refuses(*_: object) -> None:
        raise error

    channel = rig.engine._adapters.machinery.channels["simulated"]
    real = channel.connect

    async def connect(machine: MachineSpec) -> GuestSession:
        session = await real(machine)
        setattr(session, call, refuses)
        return session

    channel.connect = connect  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("call", "warning"),
    [
        ("mark", "Its reverts can't be proven: no mark could be left in its guest (its disk is full)."),
        ("set_clock", "Its guest has the time of its snapshot: the clock can't be set (its disk is full)."),
    ],
)
def test_a_guest_that_refuses_serves_all_the_same_and_the_operator_is_warned_once(call: str, warning: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", requires=LINUX)
        assert states(await rig.all_final()) == [T.COMPLETED] * 2
        machine = await rig.until_machine("m1", M.READY)
        assert machine.facts is not None
        assert machine.facts.warnings == (warning,)
        assert (machine.failures, machine.facts.memory_mb) == (0, 2048)

    with_engine(
        test,
        machines=[spec("m1")],
        prepare=lambda rig: refusing(rig, call, GuestRefused("m1", "its disk is full")),
    )


def test_a_guest_that_does_not_say_whether_traces_are_left_is_not_proven_clean() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        machine = await rig.until_machine("m1", M.QUARANTINED)
        assert machine.reason == "it can't be proven clean: no room"

    with_engine(test, machines=[spec("m1")], prepare=lambda rig: refusing(rig, "traces", GuestRefused("m1", "no room")))


def test_after_each_revert_the_clock_is_set_and_a_mark_is_left_before_a_sample_gets_in() -> None:
    told: list[str] = []

    class Telling(SimulatedSession):
        async def mark(self) -> GuestMark:
            told.append("mark")
            return await super().mark()

        async def push(self, *args: object, **more: object) -> str:
            told.append("push")
            return await super().push(*args, **more)  # type: ignore[arg-type]

        async def set_clock(self, at: float) -> None:
            assert at == wall()
            told.append("clock")

    def wall() -> float:
        return rigs[0].wall.now()

    rigs: list[EngineRig] = []

    def listen(rig: EngineRig) -> None:
        rigs.append(rig)
        channel = rig.engine._adapters.machinery.channels["simulated"]
        real = channel.connect

        async def connect(machine: MachineSpec) -> GuestSession:
            session = await real(machine)
            session.__class__ = Telling
            return session

        channel.connect = connect  # type: ignore[method-assign]

    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        await rig.add("one", requires=LINUX)
        await rig.all_final()
        await rig.until_machine("m1", M.READY)
        assert told == ["clock", "mark", "push", "clock", "mark"]

    with_engine(test, machines=[spec("m1")], prepare=listen)


# --- machines that can't be used as they are configured ---


def test_a_misconfigured_machine_is_quarantined_at_once_and_the_others_work() -> None:
    async def test(rig: EngineRig) -> None:
        machine = await rig.until_machine("m1", M.QUARANTINED, within_s=1.0)
        assert machine.reason == "its snapshot was taken while it was off; take one while it runs"
        await rig.add("one", requires=LINUX)
        assert (await rig.all_final())[1].machine == "m2"
        rig.world.faults.calm()
        await rig.do(ProbeMachines(machines=("m1",)))
        assert (await rig.until_machine("m1", M.READY)).reason == ""

    rig = with_engine(
        test,
        machines=[spec("m1"), spec("m2")],
        prepare=lambda rig: rig.world.faults.inject(Fault.MACHINE_MISCONFIGURED, "m1", ALWAYS),
    )
    moves = [body.state for body in rig.bodies(MachineChanged) if body.machine == "m1"]  # type: ignore[attr-defined]
    assert moves == [M.QUARANTINED, M.REVERTING, M.READY]


def with_fault(rig: EngineRig) -> None:
    """The configuration says of m1 that it can't be used."""
    pool, old = rig.engine._machines, rig.engine._adapters.machinery
    pool._machinery = Machinery(old.machines, old.providers, old.channels, {"m1": "It can't be. Do something."})


def test_a_machine_with_a_fault_of_its_configuration_is_untouched_until_an_operator_wants_it() -> None:
    async def test(rig: EngineRig) -> None:
        machine = await rig.machine("m1")
        assert (machine.state, machine.reason) == (M.QUARANTINED, "It can't be. Do something.")
        assert not rig.world.machines["m1"].run_number, "it was never switched on or off"
        await rig.until_machine("m2", M.READY)
        await rig.pass_time(1000.0)
        assert (await rig.machine("m1")).state is M.QUARANTINED, "trying again changes nothing"
        await rig.do(EnableMachines(machines=("m1",)))
        await rig.until_machine("m1", M.READY)

    with_engine(test, machines=[spec("m1"), spec("m2")], prepare=with_fault)


def test_a_machine_with_a_fault_of_its_configuration_is_left_as_it_is_when_the_engine_ends() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m2", M.READY)

    def running(rig: EngineRig) -> None:
        with_fault(rig)
        rig.world.machines["m1"].running = True

    rig = with_engine(test, machines=[spec("m1"), spec("m2")], prepare=running, leaves=True)
    assert [body.running for body in rig.world.machines.values()] == [True, False]


@pytest.mark.parametrize("fault", [Fault.MACHINE_MISCONFIGURED, Fault.MACHINE_MISSING])
def test_a_machine_that_its_hypervisor_does_not_know_so_is_never_switched_off(fault: Fault) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.QUARANTINED, M.MISSING)

    def somebody_elses(rig: EngineRig) -> None:
        rig.world.machines["m1"].running = True
        rig.world.faults.inject(fault, "m1", ALWAYS)

    rig = with_engine(test, machines=[spec("m1")], prepare=somebody_elses, leaves=True)
    assert rig.world.machines["m1"].running


@pytest.mark.parametrize("field", ["provider", "channel"])
def test_a_machine_that_nothing_here_moves_is_quarantined_in_words(field: str) -> None:
    async def test(rig: EngineRig) -> None:
        machine = await rig.until_machine("m1", M.QUARANTINED)
        assert machine.reason in ("nothing here runs magic machines", "nothing here talks to guests by 'magic'")

    with_engine(test, machines=[msgspec.structs.replace(spec("m1"), **{field: "magic"})], leaves=True)


def test_the_first_revert_after_an_engine_died_is_proven_by_the_mark_that_it_kept() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.REVERT_LEAVES_DIRT, "m1", ALWAYS)
        machine = await rig.until_machine("m1", M.QUARANTINED)
        assert machine.reason.startswith("its snapshot did not take back the file of-before")
        rig.world.faults.calm()
        await rig.do(EnableMachines(machines=("m1",)))
        await rig.add("one", requires=LINUX)
        assert states(await rig.all_final()) == [T.COMPLETED]
        assert rig.world.marks["m1"].file != "of-before", "each revert has a mark of its own"

    def with_traces(rig: EngineRig) -> None:
        body = rig.world.machines["m1"]
        body.leave_traces("of-before")
        body.files["of-before"] = b""
        rig.world.marks["m1"] = GuestMark("of-before", "of-before")

    with_engine(test, machines=[spec("m1")], prepare=with_traces)


def test_a_mark_that_can_not_be_kept_is_told_and_the_machine_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_self: SimulatedMarks, _machine: MachineSpec, _mark: GuestMark) -> None:
        raise StoreError("the disk is full")

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        assert states(await rig.all_final()) == [T.COMPLETED]
        facts = (await rig.machine("m1")).facts
        assert facts is not None
        assert facts.warnings == (
            "If malbox-tui dies, the next revert can't be proven: the mark in its guest could not be kept (the disk is full).",
        )

    monkeypatch.setattr(SimulatedMarks, "keep", fails)
    with_engine(test, machines=[spec("m1")])


def test_one_bad_snapshot_never_empties_the_pool() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.REVERT_LEAVES_DIRT, "m1", ALWAYS)
        rig.world.faults.inject(Fault.CHECK_FAILS, "m1", ALWAYS)
        for number in range(6):
            await rig.add(f"sample {number}", requires=LINUX)
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED] * 6
        assert (await rig.machine("m2")).state is not M.QUARANTINED

    with_engine(test, machines=[spec("m1"), spec("m2", tags=("spare",))], machinery=MachinerySettings(start_timeout_s=20.0))


def test_fifty_tasks_are_served_by_two_of_three_machines_when_the_third_always_fails() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.REVERT_FAILS, "m1", ALWAYS)
        rig.world.faults.inject(Fault.GUEST_NEVER_UP, "m1", ALWAYS)
        for number in range(50):
            await rig.add(f"sample {number}", requires=LINUX)
        tasks = await rig.all_final(within_s=5000.0)
        assert states(tasks) == [T.COMPLETED] * 50
        assert {task.machine for task in tasks.values()} == {"m2", "m3"}
        assert (await rig.machine("m1")).state in (M.QUARANTINED, M.REVERTING)

    machines = [spec("m1"), spec("m2"), spec("m3")]
    rig = with_engine(test, machines=machines, machinery=MachinerySettings(start_timeout_s=20.0), min_workers=4)
    assert rig.runner.most_at_once <= 2, "no two share a machine"


def test_one_bad_sample_never_empties_the_pool() -> None:
    """Whatever it does to its guest, what it did is taken back, and no machine is held to it."""

    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.GUEST_LOST_IN_EXECUTE, None, ALWAYS)
        for number in range(9):
            await rig.add(f"sample {number}", requires=LINUX)
        await rig.all_final()
        for name in ("m1", "m2"):
            assert (await rig.until_machine(name, M.READY)).failures == 0

    with_engine(test, machines=[spec("m1"), spec("m2")])


# --- what its hypervisor can do for a task ---


def test_a_task_reaches_its_machine_and_none_when_it_gave_it_back() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        pool = rig.engine._machines
        lease = pool.reserve(LINUX, rig.engine._pool.groups["default"].terms, 99)
        assert lease is not None
        await pool.start(lease)
        hands = pool.hypervisor(lease)
        assert (await hands.power()).value == "running"
        assert (await hands.screenshot()).mime == "image/png"
        pool.release(lease)
        await settle_loop()
        for call in (hands.power, hands.screenshot, hands.until_down):
            with pytest.raises(MachineError, match="task 99 holds it no more"):
                await call()
        await rig.until_machine("m1", M.READY)

    with_engine(test, machines=[spec("m1")])


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError(5, "I/O")], ids=repr)
def test_whatever_a_hypervisor_raises_for_a_task_is_an_error_of_its_machine(error: Exception) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        pool = rig.engine._machines
        lease = pool.reserve(RequirementClass(task_type="dynamic", pin="m1"), rig.engine._pool.groups["default"].terms, 99)
        assert lease is not None
        await pool.start(lease)

        async def breaks(*_: object) -> None:
            raise error

        rig.engine._adapters.machinery.providers["simulated"].screenshot = breaks  # type: ignore[method-assign]
        with pytest.raises(MachineError, match="its adapter broke"):
            await pool.hypervisor(lease).screenshot()
        pool.release(lease)

    with_engine(test, machines=[spec("m1")])
