"""What every `MachineProvider` does."""

from __future__ import annotations

import asyncio

import pytest

from malbox_tui.model.errors import GuestRefused, GuestUnreachable, MachineError, MachineMissing
from malbox_tui.ports import GuestEnd, GuestExit
from tests.support.fleets import Fleet, on_every_fleet
from tests.support.virtual_time import settle_loop

HELLO = GuestExit(0, b"hello\n")


async def answers(fleet: Fleet) -> bool:
    """Whether a guest answers that the test then talks to."""
    async with asyncio.timeout(fleet.deadline_s):
        session = await fleet.channel.connect(fleet.machine)
        path = await session.push(fleet.program(HELLO), "hello", executable=True)
        ran = await (await session.start((path,))).wait(100)
        await session.close()
    return ran == HELLO


@on_every_fleet
async def test_a_machine_that_exists_passes_the_check_whatever_it_is_at(fleet: Fleet) -> None:
    await fleet.provider.check(fleet.machine)
    await fleet.provider.revert(fleet.machine)
    await fleet.provider.check(fleet.machine)


@on_every_fleet
async def test_a_machine_that_does_not_exist_is_missing(fleet: Fleet) -> None:
    for call in (fleet.provider.check, fleet.provider.revert):
        with pytest.raises(MachineMissing) as caught:
            await call(fleet.missing)
        assert caught.value.machine == fleet.missing.name
        assert caught.value.problem
    with pytest.raises(MachineError):
        await fleet.provider.stop(fleet.missing)


@on_every_fleet
async def test_stopping_a_machine_that_is_off_does_nothing(fleet: Fleet) -> None:
    await fleet.provider.stop(fleet.machine)
    await fleet.provider.revert(fleet.machine)
    await fleet.provider.stop(fleet.machine)
    await fleet.provider.stop(fleet.machine)


@on_every_fleet
async def test_a_reverted_machine_answers(fleet: Fleet) -> None:
    await fleet.provider.revert(fleet.machine)
    assert await answers(fleet)


@on_every_fleet
async def test_a_machine_is_reverted_whatever_it_is_at(fleet: Fleet) -> None:
    await fleet.provider.revert(fleet.machine)
    assert await answers(fleet), "it is used"
    await fleet.provider.revert(fleet.machine)
    assert await answers(fleet)
    await fleet.provider.stop(fleet.machine)
    await fleet.provider.revert(fleet.machine)
    assert await answers(fleet)
    fleet.lose_guest()
    await fleet.provider.revert(fleet.machine)
    assert await answers(fleet)


@on_every_fleet
async def test_what_was_put_before_a_revert_is_gone_after_it(fleet: Fleet) -> None:
    await fleet.provider.revert(fleet.machine)
    async with asyncio.timeout(fleet.deadline_s):
        session = await fleet.channel.connect(fleet.machine)
        path = await session.push(fleet.program(HELLO), "hello", executable=True)
        await session.close()
        await fleet.provider.revert(fleet.machine)
        session = await fleet.channel.connect(fleet.machine)
        assert path not in [file.path for file in await session.list(session.folder, 100)]
        with pytest.raises(GuestRefused):
            await session.start((path,))
        await session.close()


@on_every_fleet
async def test_a_revert_ends_the_conversations_of_before(fleet: Fleet) -> None:
    await fleet.provider.revert(fleet.machine)
    async with asyncio.timeout(fleet.deadline_s):
        session = await fleet.channel.connect(fleet.machine)
        await fleet.provider.revert(fleet.machine)
        with pytest.raises(GuestUnreachable):
            await session.push(fleet.program(HELLO), "hello")
        await session.close()


@on_every_fleet
async def test_a_stopped_machine_does_not_answer_and_its_conversations_are_over(fleet: Fleet) -> None:
    await fleet.provider.revert(fleet.machine)
    async with asyncio.timeout(fleet.deadline_s):
        session = await fleet.channel.connect(fleet.machine)
        await fleet.provider.stop(fleet.machine)
        with pytest.raises(GuestUnreachable):
            await session.push(fleet.program(HELLO), "hello")
        await session.close()


@on_every_fleet
async def test_a_machine_is_stopped_while_its_guest_works(fleet: Fleet) -> None:
    await fleet.provider.revert(fleet.machine)
    session = await fleet.channel.connect(fleet.machine)
    path = await session.push(fleet.program(HELLO, seconds=10 * fleet.deadline_s), "long", executable=True)
    program = await session.start((path,))
    async with asyncio.timeout(fleet.deadline_s), asyncio.TaskGroup() as group:
        running = group.create_task(_outcome(program.wait(100)))
        await settle_loop()
        await fleet.provider.stop(fleet.machine)
    assert running.result() in (GuestExit(None, end=GuestEnd.POWERED_OFF), GuestUnreachable)
    await session.close()


async def _outcome(work: object) -> object:
    try:
        return await work  # type: ignore[misc]
    except GuestUnreachable as error:
        return type(error)


@on_every_fleet
async def test_a_cancelled_revert_can_be_repeated(fleet: Fleet) -> None:
    for turns in fleet.cancel_after:
        async with asyncio.TaskGroup() as group:
            reverting = group.create_task(fleet.provider.revert(fleet.machine))
            await settle_loop(turns)
            reverting.cancel()
        await fleet.provider.revert(fleet.machine)
        assert await answers(fleet)


@on_every_fleet
async def test_a_cancelled_stop_can_be_repeated(fleet: Fleet) -> None:
    await fleet.provider.revert(fleet.machine)
    async with asyncio.TaskGroup() as group:
        stopping = group.create_task(fleet.provider.stop(fleet.machine))
        await settle_loop(3)
        stopping.cancel()
    await fleet.provider.stop(fleet.machine)
    await fleet.provider.revert(fleet.machine)
    assert await answers(fleet)


@on_every_fleet
async def test_machines_are_moved_at_the_same_time_and_keep_apart(fleet: Fleet) -> None:
    async with asyncio.TaskGroup() as group:
        for machine in (fleet.machine, fleet.other):
            group.create_task(fleet.provider.revert(machine))
    await fleet.provider.stop(fleet.other)
    assert await answers(fleet)


@on_every_fleet
async def test_a_provider_is_closed_twice_and_opened_again(fleet: Fleet) -> None:
    await fleet.provider.close()
    await fleet.provider.close()
    await fleet.provider.open()
    await fleet.provider.check(fleet.machine)
