"""What a simulated hypervisor and its guests do wrong when asked to, and what the world writes down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from malbox_tui.model.errors import GuestUnreachable, MachineError, MachineMissing
from malbox_tui.ports import GuestExit, GuestSession
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
        session = await self.session()
        return await session.execute(await session.put(SAMPLE, "sample"), 1000)


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


@pytest.mark.parametrize("fault", [Fault.GUEST_REFUSES, Fault.GUEST_LOST_IN_PUT, Fault.GUEST_LOST_IN_EXECUTE])
def test_a_guest_is_lost_and_a_revert_brings_it_back(fault: Fault) -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(fault, "m1")
        with pytest.raises(GuestUnreachable):
            await lab.ran()
        assert (await lab.ran()).code == 0

    in_lab(test)


def test_a_sample_may_switch_its_machine_off_or_never_end() -> None:
    async def test(lab: Lab) -> None:
        lab.world.faults.inject(Fault.GUEST_POWERED_OFF)
        assert await lab.ran() == GuestExit(None)
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


# --- physics ---


def test_a_sample_put_into_a_machine_that_was_not_reverted_is_written_down() -> None:
    async def test(lab: Lab) -> None:
        session = await lab.session()
        await session.put(SAMPLE, "sample")
        await session.put(SAMPLE, "the same conversation may")
        await session.close()
        assert lab.world.violations == []
        session = await lab.channel.connect(M1)
        await session.put(SAMPLE, "sample")
        assert len(lab.world.violations) == 1

    in_lab(test)


def test_a_second_conversation_beside_one_in_use_is_written_down() -> None:
    async def test(lab: Lab) -> None:
        first = await lab.session()
        second = await lab.channel.connect(M1)
        path = await first.put(SAMPLE, "sample")
        assert lab.world.violations == []
        await second.execute(path, 10)
        assert len(lab.world.violations) == 1
        await lab.channel.connect(M1)
        assert len(lab.world.violations) == 2

    in_lab(test)


def test_a_revert_while_a_sample_runs_is_written_down_and_a_stop_is_not() -> None:
    async def test(lab: Lab) -> None:
        for call, violations in ((lab.provider.stop, 0), (lab.provider.revert, 1)):
            session = await lab.session()
            path = await session.put(SAMPLE, "sample")
            async with asyncio.TaskGroup() as group:
                running = group.create_task(_lost(session, path))
                await settle_loop()
                await call(M1)
            assert running.result()
            assert len(lab.world.violations) == violations

    in_lab(test)


async def _lost(session: GuestSession, path: str) -> bool:
    with pytest.raises(GuestUnreachable):
        await session.execute(path, 10)
    return True


def test_two_calls_at_once_for_one_machine_are_written_down_and_for_two_they_are_not() -> None:
    async def test(lab: Lab) -> None:
        for second, violations in ((M2, 0), (M1, 1)):
            async with asyncio.TaskGroup() as group:
                group.create_task(lab.provider.check(M1))
                group.create_task(lab.provider.check(second))
            assert len(lab.world.violations) == violations

    in_lab(test)


# --- the world ---


def test_what_a_dead_engine_still_does_is_cancelled_and_machines_stay_as_they_are() -> None:
    async def test(lab: Lab) -> None:
        session = await lab.session()
        path = await session.put(SAMPLE, "sample")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(session.execute(path, 10))
            await settle_loop()
            lab.world.engine_died()
        assert running.cancelled()
        for call in (lab.provider.revert(M1), session.close(), session.put(SAMPLE, "again")):
            with pytest.raises(asyncio.CancelledError):
                await call
        assert lab.world.machines["m1"].running
        assert not lab.world.machines["m1"].fresh
        after = await SimulatedChannel(lab.world).connect(M1)
        await after.put(SAMPLE, "sample")
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
