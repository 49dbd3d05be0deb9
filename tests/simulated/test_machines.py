"""What a simulated hypervisor and its guests do wrong when asked to, and what the world writes down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from malbox_tui.model.errors import GuestUnreachable, MachineError, MachineMisconfigured, MachineMissing, MachineUnable
from malbox_tui.model.machine import Downfall, MachineFacts, PowerState, Throttle
from malbox_tui.ports import GuestEnd, GuestExit, GuestSession
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.guests import SimulatedChannel
from malbox_tui.simulated.machines import SimulatedProvider
from malbox_tui.simulated.world import Program, World
from tests.simulated.builders import M1, M2, now, world
from tests.support.virtual_time import run_virtual, settle_loop

SAMPLE = Path("/in/sample")


class Lab:
    """A world with its hypervisor and channel; a sample that prints lies at SAMPLE."""

    def __init__(self) -> None:
        self.world: World = world()
        self.provider = SimulatedProvider(self.world)
        self.channel = SimulatedChannel(self.world)
        self.world.files[SAMPLE] = b"content"
        self.world.programs[b"content"] = Program(30.0, 0, b"0123456789")

    async def session(self) -> GuestSession:
        await self.provider.revert(M1)
        return await self.channel.connect(M1)

    async def ran(self) -> GuestExit:
        return await ran_in(await self.session())


async def ran_in(session: GuestSession) -> GuestExit:
    """How the sample ended that is brought into a guest."""
    return await (await session.start([await session.push(SAMPLE, "sample")])).wait(1000)


def in_lab(test: Callable[[Lab], Awaitable[None]]) -> None:
    async def live() -> None:
        await test(Lab())

    run_virtual(live())


@pytest.mark.parametrize(
    ("fault", "call"),
    [(Fault.CHECK_FAILS, "check"), (Fault.REVERT_FAILS, "revert"), (Fault.STOP_FAILS, "stop")],
)
def test_a_call_fails_as_often_as_asked_and_for_that_machine_only(fault: Fault, call: str) -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(fault, "m1", times=2)
        ask = getattr(lab.provider, call)
        await ask(M2)
        for _ in range(2):
            with pytest.raises(MachineError):
                await ask(M1)
        await ask(M1)
        assert lab.world.faults.hits == {fault: 2}

    in_lab(test)


def test_a_machine_is_missing_until_it_is_mended() -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(Fault.MACHINE_MISSING, "m1", ALWAYS)
        for _ in range(3):
            with pytest.raises(MachineMissing):
                await lab.provider.check(M1)
        lab.world.faults.mend(Fault.MACHINE_MISSING, "m1")
        await lab.provider.check(M1)

    in_lab(test)


def test_a_slow_call_takes_what_the_durations_say() -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(Fault.MACHINE_SLOW, "m1")
        began = now()
        await lab.provider.check(M1)
        assert now() - began >= 20

    in_lab(test)


@pytest.mark.parametrize(("fault", "call"), [(Fault.REVERT_HANGS, "revert"), (Fault.STOP_HANGS, "stop")])
def test_a_hanging_call_ends_by_cancellation_and_the_next_one_works(fault: Fault, call: str) -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(fault)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400):
                await getattr(lab.provider, call)(M1)
        assert (await lab.ran()).code == 0
        assert lab.world.violations == []

    in_lab(test)


@pytest.mark.parametrize("lie", [Fault.REVERT_LEAVES_OFF, Fault.GUEST_NEVER_UP])
def test_a_revert_may_be_reported_and_the_guest_never_answer(lie: Fault) -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(lie, "m1")
        await lab.provider.revert(M1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400):
                await lab.channel.connect(M1)

    in_lab(test)


def test_a_machine_that_is_still_dirty_after_its_revert_is_a_deception_and_no_violation() -> None:
    async def test(lab: Lab) -> None:
        await lab.ran()
        lab.world.faults.inject(Fault.REVERT_LEAVES_DIRT, "m1")
        assert (await lab.ran()).code == 0
        assert len(lab.world.deceptions) == 1
        assert lab.world.violations == []
        await lab.ran()
        assert len(lab.world.deceptions) == 1

    in_lab(test)


@pytest.mark.parametrize(
    "fault",
    [Fault.GUEST_REFUSES, Fault.GUEST_LOST_IN_PUT, Fault.GUEST_LOST_WHEN_ASKED, Fault.GUEST_LOST_IN_EXECUTE],
)
def test_a_guest_is_lost_and_a_revert_brings_it_back(fault: Fault) -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(fault, "m1")
        with pytest.raises(GuestUnreachable):
            await lab.ran()
        assert (await lab.ran()).code == 0

    in_lab(test)


def test_a_sample_may_switch_its_machine_off_or_start_it_anew_or_never_end() -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(Fault.GUEST_POWERED_OFF)
        assert await lab.ran() == GuestExit(None, end=GuestEnd.POWERED_OFF)
        lab.world.faults.inject(Fault.SAMPLE_NEVER_ENDS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400):
                await lab.ran()

    in_lab(test)


def test_a_flood_of_output_is_cut_and_torn_output_is_short() -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(Fault.OUTPUT_FLOODS)
        assert len((await lab.ran()).output) == 1000
        lab.world.faults.inject(Fault.OUTPUT_TORN)
        assert len((await lab.ran()).output) < 10
        assert (await lab.ran()).output == b"0123456789"

    in_lab(test)


def test_traces_by_which_a_lie_could_be_noticed_make_it_the_engines_fault() -> None:
    async def test(lab: Lab) -> None:
        session = await lab.session()
        mark = await session.mark()
        await ran_in(session)
        await session.close()
        assert lab.world.violations == []
        lab.world.faults.inject(Fault.REVERT_LEAVES_DIRT, "m1")
        session = await lab.session()
        assert await session.traces(mark)
        await session.push(SAMPLE, "sample")
        assert len(lab.world.violations) == 1
        assert lab.world.deceptions == []
        await session.close()
        assert await (await lab.session()).traces(mark) == []

    in_lab(test)


def test_traces_are_forgotten_with_the_engine_that_left_them() -> None:
    async def test(lab: Lab) -> None:
        session = await lab.session()
        await session.mark()
        await ran_in(session)
        lab.world.engine_died()
        lab.world.files[SAMPLE] = b"content"
        lab.provider, lab.channel = SimulatedProvider(lab.world), SimulatedChannel(lab.world)
        lab.world.faults.inject(Fault.REVERT_LEAVES_DIRT, "m1")
        await lab.ran()
        assert len(lab.world.deceptions) == 1
        assert lab.world.violations == []

    in_lab(test)


# --- what it can do for a run ---


def test_a_check_tells_what_the_machine_is_and_what_is_wrong_with_it() -> None:
    async def test(lab: Lab) -> None:
        lab.world.machines["m1"].facts = MachineFacts(memory_mb=512, vcpus=1)
        assert await lab.provider.check(M1) == MachineFacts(memory_mb=512, vcpus=1)
        lab.world.faults.inject(Fault.MACHINE_MISCONFIGURED, "m1")
        with pytest.raises(MachineMisconfigured, match="take one while it runs"):
            await lab.provider.check(M1)

    in_lab(test)


@pytest.mark.parametrize(
    ("downfall", "switches_off"), [(Downfall.SWITCHED_OFF, True), (Downfall.SHUT_DOWN, False)], ids=["stop", "sample"]
)
def test_whoever_waits_for_a_machine_to_go_down_is_told_why(downfall: Downfall, switches_off: bool) -> None:
    async def test(lab: Lab) -> None:
        assert await lab.provider.until_down(M1) is Downfall.SWITCHED_OFF
        assert await lab.provider.power(M1) is PowerState.OFF
        session = await lab.session()
        assert await lab.provider.power(M1) is PowerState.RUNNING
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(lab.provider.until_down(M1))
            await settle_loop()
            assert not waiting.done()
            if switches_off:
                await lab.provider.stop(M1)
            else:
                lab.world.faults.inject(Fault.GUEST_POWERED_OFF)
                await ran_in(session)
        assert waiting.result() is downfall

    in_lab(test)


def test_a_screen_changes_while_a_sample_runs_and_then_stands_still() -> None:
    async def test(lab: Lab) -> None:
        session = await lab.session()
        before = await lab.provider.screenshot(M1)
        assert (before.mime, before.content[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")
        assert await lab.provider.screenshot(M1) == before
        await session.push(SAMPLE, "sample")
        pictures = []
        for _ in range(9):
            pictures.append((await lab.provider.screenshot(M1)).content)
            await asyncio.sleep(5.0)  # noqa: TID251 - turned time
        assert len({before.content, *pictures}) == 7
        assert pictures[-1] == pictures[-2] == pictures[-3]

    in_lab(test)


def test_a_dump_and_a_capture_are_files_of_their_kind(tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        session = await lab.session()
        capture = await lab.provider.capture(M1, tmp_path / "net.pcap")
        empty = (tmp_path / "net.pcap").read_bytes()
        await ran_in(session)
        await lab.provider.dump_memory(M1, tmp_path / "memory")
        await lab.provider.stop(M1)
        await capture.end()
        await capture.end()
        assert (tmp_path / "memory").read_bytes()[:5] == b"\x7fELF\x02"
        assert empty[:4] == bytes.fromhex("d4c3b2a1")
        assert (tmp_path / "net.pcap").read_bytes().startswith(empty)
        assert len((tmp_path / "net.pcap").read_bytes()) > len(empty)

    in_lab(test)


@pytest.mark.parametrize(
    ("call", "fault"),
    [("screenshot", Fault.SCREENSHOT_FAILS), ("dump_memory", Fault.DUMP_FAILS), ("capture", Fault.CAPTURE_BREAKS)],
)
def test_what_a_hypervisor_fails_at_or_cannot_do_leaves_no_file(call: str, fault: Fault, tmp_path: Path) -> None:
    async def test(lab: Lab) -> None:
        target = () if call == "screenshot" else (tmp_path / "file",)
        with pytest.raises(MachineError):
            await getattr(lab.provider, call)(M1, *target)
        await lab.session()
        lab.world.faults.inject(fault, "m1")
        lab.world.faults.inject(Fault.MACHINE_UNABLE, "m1")
        with pytest.raises(MachineUnable):
            await getattr(lab.provider, call)(M1, *target)
        with pytest.raises(MachineError) as caught:
            await getattr(lab.provider, call)(M1, *target)
        assert not isinstance(caught.value, MachineUnable)
        assert not list(tmp_path.iterdir())
        await getattr(lab.provider, call)(M1, *target)

    in_lab(test)


def test_a_bound_holds_until_the_machine_is_reverted_and_needs_one_that_runs() -> None:
    async def test(lab: Lab) -> None:
        slow = Throttle(network_kbps=64)
        await lab.session()
        await lab.provider.throttle(M1, slow)
        assert lab.world.machines["m1"].throttle == slow
        await lab.provider.revert(M1)
        assert lab.world.machines["m1"].throttle == Throttle()
        assert lab.world.violations == []
        await lab.provider.stop(M1)
        await lab.provider.throttle(M1, slow)
        assert len(lab.world.violations) == 1

    in_lab(test)


# --- physics ---


def test_a_sample_put_into_a_machine_that_was_not_reverted_is_written_down() -> None:
    async def test(lab: Lab) -> None:
        session = await lab.session()
        await session.push(SAMPLE, "sample")
        await session.push(SAMPLE, "the same conversation may")
        await session.close()
        assert lab.world.violations == []
        session = await lab.channel.connect(M1)
        await session.push(SAMPLE, "sample")
        assert len(lab.world.violations) == 1

    in_lab(test)


def test_a_second_conversation_beside_one_in_use_is_written_down() -> None:
    async def test(lab: Lab) -> None:
        first = await lab.session()
        second = await lab.channel.connect(M1)
        path = await first.push(SAMPLE, "sample")
        assert lab.world.violations == []
        await second.start([path])
        assert len(lab.world.violations) == 1
        await lab.channel.connect(M1)
        assert len(lab.world.violations) == 2

    in_lab(test)


def test_a_revert_while_a_sample_runs_is_written_down_and_a_stop_is_not() -> None:
    async def test(lab: Lab) -> None:
        for call, violations, end in ((lab.provider.stop, 0, GuestEnd.POWERED_OFF), (lab.provider.revert, 1, None)):
            session = await lab.session()
            path = await session.push(SAMPLE, "sample")
            async with asyncio.TaskGroup() as group:
                running = group.create_task(_end(session, path))
                await settle_loop()
                await call(M1)
            assert running.result() is end
            assert len(lab.world.violations) == violations

    in_lab(test)


async def _waited(session: GuestSession, path: str) -> GuestExit:
    return await (await session.start([path])).wait(10)


async def _end(session: GuestSession, path: str) -> GuestEnd | None:
    """How the program ended; None: its guest answered no more."""
    try:
        return (await _waited(session, path)).end
    except GuestUnreachable:
        return None


def test_two_calls_at_once_for_one_machine_are_written_down_and_for_two_they_are_not() -> None:
    async def test(lab: Lab) -> None:
        for second, violations in ((M2, 0), (M1, 1)):
            async with asyncio.TaskGroup() as group:
                group.create_task(lab.provider.revert(M1))
                group.create_task(lab.provider.revert(second))
            assert len(lab.world.violations) == violations

    in_lab(test)


# --- the world ---


def test_what_a_dead_engine_still_does_is_cancelled_and_machines_stay_as_they_are() -> None:
    async def test(lab: Lab) -> None:
        session = await lab.session()
        path = await session.push(SAMPLE, "sample")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(_waited(session, path))
            await settle_loop()
            lab.world.engine_died()
        assert running.cancelled()
        for call in (lab.provider.revert(M1), session.close(), session.push(SAMPLE, "again")):
            with pytest.raises(asyncio.CancelledError):
                await call
        assert lab.world.machines["m1"].running
        assert not lab.world.machines["m1"].fresh
        after = await SimulatedChannel(lab.world).connect(M1)
        await after.push(SAMPLE, "sample")
        assert len(lab.world.violations) == 1, "the machine was not reverted after the crash"

    in_lab(test)


def test_the_same_seed_makes_the_same_world_and_another_one_another() -> None:
    async def times(seed: int) -> list[float]:
        place = world(seed, dict.fromkeys((Fault.REVERT_FAILS, Fault.MACHINE_SLOW), 0.3))
        provider, found = SimulatedProvider(place), []
        for _ in range(20):
            try:
                await provider.revert(M1)
            except MachineError:
                found.append(-1.0)
            found.append(now())
        return found

    first = run_virtual(times(1))
    assert first == run_virtual(times(1))
    assert first != run_virtual(times(2))
    assert -1.0 in first


def test_after_calm_nothing_goes_wrong() -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.rates.update(dict.fromkeys(Fault, 1.0))
        lab.world.faults.inject(Fault.REVERT_FAILS, "m1", ALWAYS)
        lab.world.faults.calm()
        await lab.ran()
        assert not lab.world.faults.hits

    in_lab(test)
