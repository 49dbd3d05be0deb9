"""What every `GuestChannel` does, and the `GuestSession`s it gives."""

from __future__ import annotations

import asyncio

import pytest

from malbox_tui.model.errors import GuestUnreachable
from malbox_tui.ports import GuestExit, GuestSession
from tests.support.fleets import Fleet, on_every_fleet
from tests.support.virtual_time import settle_loop


async def connected(fleet: Fleet) -> GuestSession:
    """A conversation with the guest of a machine that was just reverted."""
    async with asyncio.timeout(fleet.deadline_s):
        await fleet.provider.revert(fleet.machine)
        return await fleet.channel.connect(fleet.machine)


@on_every_fleet
async def test_a_program_runs_and_says_how_it_ended(fleet: Fleet) -> None:
    session = await connected(fleet)
    for number, ending in enumerate((GuestExit(0, b"done\n"), GuestExit(3, b""), GuestExit(1, b"\xff\x00\n"))):
        path = await session.put(fleet.program(ending), f"program-{number}")
        assert await session.execute(path, 100) == ending
    await session.close()


@on_every_fleet
async def test_a_file_put_again_replaces_the_one_before(fleet: Fleet) -> None:
    session = await connected(fleet)
    first = await session.put(fleet.program(GuestExit(0, b"first")), "sample")
    second = await session.put(fleet.program(GuestExit(0, b"second")), "sample")
    assert first == second
    assert (await session.execute(second, 100)).output == b"second"
    await session.close()


@on_every_fleet
async def test_output_is_cut_at_the_bound(fleet: Fleet) -> None:
    session = await connected(fleet)
    path = await session.put(fleet.program(GuestExit(0, b"0123456789")), "talkative")
    for bound, expected in ((10, b"0123456789"), (4, b"0123"), (0, b"")):
        assert await session.execute(path, bound) == GuestExit(0, expected)
    await session.close()


@on_every_fleet
async def test_a_program_that_switches_its_machine_off_ends_without_a_code(fleet: Fleet) -> None:
    session = await connected(fleet)
    path = await session.put(fleet.program(GuestExit(None)), "off")
    async with asyncio.timeout(fleet.deadline_s):
        assert await session.execute(path, 100) == GuestExit(None)
    with pytest.raises(GuestUnreachable):
        await session.execute(path, 100)
    await session.close()


@on_every_fleet
async def test_what_a_lost_guest_was_asked_is_answered_by_an_error(fleet: Fleet) -> None:
    session = await connected(fleet)
    path = await session.put(fleet.program(GuestExit(0)), "program")
    fleet.lose_guest()
    async with asyncio.timeout(fleet.deadline_s):
        with pytest.raises(GuestUnreachable) as caught:
            await session.execute(path, 100)
        assert caught.value.machine == fleet.machine.name
        with pytest.raises(GuestUnreachable):
            await session.put(fleet.program(GuestExit(0)), "program")
        await session.close()


@on_every_fleet
async def test_connecting_waits_for_a_machine_that_is_off(fleet: Fleet) -> None:
    async with asyncio.timeout(fleet.deadline_s), asyncio.TaskGroup() as group:
        connecting = group.create_task(fleet.channel.connect(fleet.machine))
        await settle_loop()
        assert not connecting.done()
        await fleet.provider.revert(fleet.machine)
    await connecting.result().close()


@on_every_fleet
async def test_connecting_to_a_guest_that_stays_down_can_be_cancelled_and_tried_again(fleet: Fleet) -> None:
    fleet.hold_guest_down()
    await fleet.provider.revert(fleet.machine)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(fleet.deadline_s / 10):
            await fleet.channel.connect(fleet.machine)
    session = await connected(fleet)
    await session.close()


@on_every_fleet
async def test_a_cancelled_program_may_run_on_and_its_machine_can_be_reverted(fleet: Fleet) -> None:
    session = await connected(fleet)
    path = await session.put(fleet.program(GuestExit(0), seconds=10 * fleet.deadline_s), "long")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(session.execute(path, 100))
        await settle_loop()
        assert not running.done()
        running.cancel()
    await session.close()
    session = await connected(fleet)
    await session.close()


@on_every_fleet
async def test_a_conversation_is_closed_twice_and_after_its_guest_is_gone(fleet: Fleet) -> None:
    session = await connected(fleet)
    await session.close()
    await session.close()
    for gone in (fleet.lose_guest, None):
        session = await connected(fleet)
        if gone is None:
            await fleet.provider.stop(fleet.machine)
        else:
            gone()
        async with asyncio.timeout(fleet.deadline_s):
            await session.close()


@on_every_fleet
async def test_a_closed_conversation_makes_room_for_the_next(fleet: Fleet) -> None:
    session = await connected(fleet)
    path = await session.put(fleet.program(GuestExit(0, b"same guest")), "program")
    await session.close()
    async with asyncio.timeout(fleet.deadline_s):
        session = await fleet.channel.connect(fleet.machine)
        assert (await session.execute(path, 100)).output == b"same guest"
        await session.close()
