"""What a faulty store does wrong when asked to."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable

import pytest

from malbox_tui.model.errors import LeaseLost, StoreError, StoreFull
from malbox_tui.model.events import PoolPaused, TaskGivenBack, TaskStarting
from malbox_tui.model.task import Task, TaskState
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.store import RIVAL, FaultyStore
from malbox_tui.simulated.world import World
from malbox_tui.store.memory import MemoryStore
from tests.simulated.builders import now, world
from tests.store.builders import NOON, Told, added, claim_request, claimed, new_task, run, stop
from tests.support.virtual_time import LoopClock, run_virtual


class Desk:
    """A faulty store that is open."""

    def __init__(self) -> None:
        self.world: World = world()
        self.memory = MemoryStore()
        self.store = FaultyStore(self.memory, self.world, LoopClock())
        self.told = Told()

    async def owned(self) -> Task:
        return await claimed(self.store, await added(self.store))


def at_desk(test: Callable[[Desk], Awaitable[None]]) -> None:
    async def live() -> None:
        desk = Desk()
        await desk.store.open(desk.told)
        await test(desk)

    run_virtual(live())


@pytest.mark.parametrize("outage", [StoreError("input/output error"), StoreFull("the disk is full")])
def test_every_write_fails_during_an_outage_and_reading_goes_on(outage: StoreError) -> None:
    async def test(desk: Desk) -> None:
        owned = await desk.owned()
        told = len(desk.told.events)
        desk.store.outage = outage
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: desk.store.add(new_task("other")),
            lambda: desk.store.claim(claim_request(owned.id, "token-2")),
            lambda: desk.store.write(run(owned)),
            lambda: desk.store.note(NOON, PoolPaused(reason="by you")),
            lambda: desk.store.renew(["token-1"], NOON + 100),
        ]
        for write in writes:
            with pytest.raises(type(outage), match=str(outage)):
                await write()
        assert await desk.store.owned() == [owned]
        assert len(desk.told.events) == told
        desk.store.outage = None
        for write in writes:
            await write()
        assert (await desk.store.owned())[0].state is TaskState.RUNNING

    at_desk(test)


def test_an_outage_by_chance_lasts_a_while_and_ends_by_itself() -> None:
    async def test(desk: Desk) -> None:
        desk.world.faults.inject(Fault.STORE_FULL, "add")
        began = now()
        failures = 0
        while True:
            try:
                await added(desk.store)
                break
            except StoreFull:
                failures += 1
                await asyncio.sleep(0.01)  # noqa: TID251 - turned time
        assert failures > 1
        assert now() - began < 6
        assert desk.world.faults.hits == {Fault.STORE_FULL: 1}

    at_desk(test)


def test_a_refusal_nobody_asked_for_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test(desk: Desk) -> None:
        owned = await desk.owned()
        desk.store.outage = StoreFull("the disk is full")
        desk.store.write(run(owned))
        gc.collect()
        assert f"task {owned.id} was not stored: the disk is full" in caplog.text

    with caplog.at_level(logging.WARNING):
        at_desk(test)


def test_what_is_slow_is_stored_at_once_and_answered_late() -> None:
    async def test(desk: Desk) -> None:
        owned = await desk.owned()
        desk.world.faults.inject(Fault.STORE_SLOW, "write")
        began = now()
        answer = desk.store.write(run(owned))
        await asyncio.sleep(0.1)  # noqa: TID251 - turned time
        assert (await desk.store.owned())[0].state is TaskState.RUNNING
        await answer
        assert now() - began >= 20

    at_desk(test)


def test_a_task_that_is_taken_over_is_anothers_and_its_new_lease_runs_out() -> None:
    async def test(desk: Desk) -> None:
        owned = await desk.owned()
        await desk.store.write(run(owned))
        desk.world.faults.inject(Fault.LEASE_TAKEN_OVER, str(owned.id))
        assert await desk.store.renew(["token-1"], NOON + 1000) == {"token-1"}
        with pytest.raises(LeaseLost):
            await desk.store.write(stop(run(owned).after))
        (theirs,) = await desk.store.owned()
        assert (theirs.worker, theirs.state, theirs.crashes) == (RIVAL, TaskState.INITIALIZING, 1)
        assert theirs.lease_until is not None
        assert theirs.lease_until <= LoopClock().now() + 5
        assert [type(body) for body in desk.told.bodies[-2:]] == [TaskGivenBack, TaskStarting]
        assert not await desk.store.pending()

    at_desk(test)


def test_a_task_that_is_stopping_is_not_taken_over() -> None:
    async def test(desk: Desk) -> None:
        running = run(await desk.owned()).after
        await desk.store.write(run(await _owned(desk)))
        await desk.store.write(stop(running))
        assert not await desk.store.take_over(await _owned(desk))
        assert not await desk.store.take_over(running), "it has moved on"

    at_desk(test)


async def _owned(desk: Desk) -> Task:
    (task,) = await desk.store.owned()
    return task


def test_a_dead_engine_writes_nothing() -> None:
    async def test(desk: Desk) -> None:
        owned = await desk.owned()
        desk.world.engine_died()
        with pytest.raises(asyncio.CancelledError):
            await desk.store.write(run(owned))
        with pytest.raises(asyncio.CancelledError):
            await desk.store.claim(claim_request(owned.id, "token-2"))
        after = FaultyStore(desk.memory, desk.world, LoopClock())
        assert await after.owned() == [owned]

    at_desk(test)
