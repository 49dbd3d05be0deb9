"""News reaches every listener, in order, and a slow one harms nobody."""

from __future__ import annotations

import asyncio

from malbox_tui.engine.bus import Bus
from malbox_tui.model.events import Event, Gap, PoolResumed, Position
from tests.support.virtual_time import settle_loop


def _event(seq: int) -> Event:
    return Event(Position("e", 1, seq), 0.0, PoolResumed())


async def test_each_subscription_gets_each_event_in_order() -> None:
    bus = Bus()
    first, second = bus.subscribe(), bus.subscribe()
    bus.publish([_event(1), _event(2)])
    bus.close()
    for subscription in (first, second):
        assert [await subscription.next() for _ in range(3)] == [_event(1), _event(2), None]


async def test_a_listener_that_fell_behind_gets_a_gap_and_goes_on() -> None:
    bus = Bus(capacity=3)
    slow, quick = bus.subscribe(), bus.subscribe()
    for seq in range(1, 6):
        bus.publish([_event(seq)])
        assert await quick.next() == _event(seq)
    assert await slow.next() == Gap(Position("e", 1, 4))
    assert await slow.next() == _event(5)


async def test_a_waiting_listener_is_woken_by_news_and_by_the_end() -> None:
    bus = Bus()
    subscription = bus.subscribe()
    waiting = asyncio.get_running_loop().create_task(subscription.next())
    await settle_loop()
    bus.publish([_event(1)])
    assert await waiting == _event(1)
    waiting = asyncio.get_running_loop().create_task(subscription.next())
    await settle_loop()
    bus.close()
    assert await waiting is None


async def test_subscribing_to_a_closed_bus_ends_at_once() -> None:
    bus = Bus()
    bus.close()
    assert await bus.subscribe().next() is None
