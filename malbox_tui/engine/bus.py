"""News from the engine to whoever listens. Publishing never waits: a listener that fell behind gets a `Gap` and re-reads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence

from malbox_tui.model.events import Event, Gap, Position


class Subscription:
    """One listener's bounded buffer. `async for` gives what is published from the subscription on; it ends when the bus closes."""

    def __init__(self, bus: Bus, capacity: int) -> None:
        self._bus = bus
        self._capacity = capacity
        self._events: deque[Event] = deque()
        self._dropped_to: Position | None = None
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, events: Sequence[Event]) -> None:
        """Append; when that overflows, everything waiting is dropped and becomes one gap."""
        self._events.extend(events)
        if len(self._events) > self._capacity:
            self._dropped_to = self._events[-1].position
            self._events.clear()
        self._wake()

    def end(self) -> None:
        """Nothing more will come."""
        self._closed = True
        self._wake()

    async def next(self) -> Event | Gap | None:
        """The next event or gap; None when the bus has closed and everything was given."""
        while True:
            if self._dropped_to is not None:
                gap, self._dropped_to = Gap(self._dropped_to), None
                return gap
            if self._events:
                return self._events.popleft()
            if self._closed:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def close(self) -> None:
        """Stop listening."""
        self._bus.forget(self)
        self.end()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Bus:
    """Hands each event to every subscription."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._subscriptions: set[Subscription] = set()
        self._closed = False

    def publish(self, events: Sequence[Event]) -> None:
        """Give `events` to all who listen now."""
        for subscription in self._subscriptions:
            subscription.offer(events)

    def subscribe(self) -> Subscription:
        """Listen from now on."""
        subscription = Subscription(self, self._capacity)
        if self._closed:
            subscription.end()
        else:
            self._subscriptions.add(subscription)
        return subscription

    def forget(self, subscription: Subscription) -> None:
        """Publish no more to this one."""
        self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End all subscriptions, those to come included."""
        self._closed = True
        for subscription in self._subscriptions:
            subscription.end()
        self._subscriptions.clear()


async def replayed_then_live(stored: AsyncIterator[Event], live: Subscription, after: Position) -> AsyncIterator[Event | Gap]:
    """What is stored after a place, and then what is published, each event once. `live` was subscribed before `stored` began."""
    last_seq = after.seq
    async for event in stored:
        last_seq = event.position.seq
        yield event
    while (news := await live.next()) is not None:
        if isinstance(news, Gap) or not news.durable or news.position.seq > last_seq:
            yield news
