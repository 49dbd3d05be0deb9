"""News of the engine: numbered and stored by the store, then counted and told. Who asks gets what is stored, and then what comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from malbox_tui.engine.bus import Bus, replayed_then_live
from malbox_tui.engine.metrics import TaskCounts, Throughput
from malbox_tui.model import events as news
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.model.queries import MAX_ROWS
from malbox_tui.model.task import Task
from malbox_tui.ports import Clock, Store, StoreIdentity


class Newsroom:
    """One engine's news. `follow` is called with the body of each stored event before it is told."""

    def __init__(self, store: Store, wall: Clock, follow: Callable[[news.EventBody], None]) -> None:
        self.bus = Bus()
        self.position = Position("", 0, 0)
        """Of the latest event that was told."""
        self.counts = TaskCounts({}, {})
        self.throughput = Throughput()
        self._store = store
        self._wall = wall
        self._follow = follow
        self._closed = False

    def open(self, identity: StoreIdentity, owned: Sequence[Task]) -> None:
        """Begin where the store is; `owned` are the tasks that attempts own."""
        self.position = Position(identity.engine_id, identity.epoch, identity.last_seq)
        self.counts = TaskCounts(identity.counts, {task.id: task.state for task in owned})

    def close(self) -> None:
        """Tell no more; those who listen come to an end."""
        self._closed = True
        self.bus.close()

    def announce(self, body: news.EventBody) -> None:
        """Tell news that belongs to no task's move, and store it unless it is passing."""
        now = self._wall.now()
        if isinstance(body, news.PASSING):
            self.bus.publish([Event(self.position, now, body, durable=False)])
        else:
            self._store.note(now, body)

    def on_commit(self, events: Sequence[Event]) -> None:
        """The store has committed these."""
        for event in events:
            self._follow(event.body)
            self.counts.apply(event.body)
            self.throughput.apply(event)
        self.position = events[-1].position
        self.bus.publish(events)

    async def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        """See `Client`."""
        subscription = self.bus.subscribe()
        try:
            start = self.position if after is None else after
            if start.engine_id != self.position.engine_id or start.seq > self.position.seq:
                yield Gap(self.position)
                start = self.position
            async for item in replayed_then_live(self._stored(start), subscription, start):
                yield item
        finally:
            subscription.close()

    async def _stored(self, after: Position) -> AsyncIterator[Event]:
        seq = after.seq
        while page := await self._page(seq):
            for event in page:
                yield event
            seq = page[-1].position.seq

    async def _page(self, after: int) -> Sequence[Event]:
        """Nothing when the engine has ended meanwhile."""
        try:
            return () if self._closed else await self._store.events(after, MAX_ROWS)
        except StoreError:
            if self._closed:
                return ()
            raise
