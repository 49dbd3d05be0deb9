"""From the engine's events to the live picture: everything is folded in at once, and shown a few times a second: often enough to be
live, rarely enough for a slow link.

A gap (the console was too slow), an engine that was started again, and the first start, read everything anew; what happened between
the last event that is known and that reading goes into the log alone. When the events end, the engine has stopped. While an engine
elsewhere can't be reached, time stands.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.task import FINAL_STATES, OWNED_STATES, TaskState
from malbox_tui.ports import Attachment, Client
from malbox_tui.tui.live import LivePicture

SHOWN_PER_SECOND = 4
SEEDED_ENDED_TASKS = 60
SEEDED_OWNED_TASKS = 1000


@dataclass(slots=True)
class Changes:
    """What changed since it was shown last: anything at all, and whether tasks came, went or may stand elsewhere."""

    anything: bool = False
    tasks: bool = False


class Feed:
    """Keeps a `LivePicture` up to date. `monotonic` gives seconds for durations; `attachment` is None for an engine in this process."""

    def __init__(
        self, client: Client, picture: LivePicture, monotonic: Callable[[], float], attachment: Attachment | None = None
    ) -> None:
        self._client = client
        self._attachment = attachment
        self._contacts = 0
        self._now = 0.0
        self._sentences: list[str] = []
        self._is_another = False
        self._picture = picture
        self._place: Position | None = None
        """Of the last event that is known; None: nothing that happened so far is missed."""
        self._monotonic = monotonic
        self._seen_at = 0.0
        self.changes = Changes()
        self.ended = False
        """The engine has stopped: there is no more news."""

    def now(self) -> float:
        """The engine's time, reckoned from its last answer; while it can't be reached, the time when it still could."""
        overview = self._picture.overview
        if overview is not None and (self._attachment is None or self._attachment.away is None):
            self._now = overview.clock + (self._monotonic() - self._seen_at)
        return self._now

    @property
    def has_begun(self) -> bool:
        """Whether anything was read yet."""
        return self._picture.overview is not None

    def look_at_the_way(self) -> None:
        """After a connection that was made again, everything is asked for again, whether or not anything is told to have changed."""
        if self._attachment is not None and self._attachment.contacts != self._contacts:
            self._contacts = self._attachment.contacts
            self.changes = Changes(anything=True, tasks=True)

    def take_sentences(self) -> list[str]:
        """What the operator is to be told, since the last call."""
        told, self._sentences = self._sentences, []
        return told

    def take_other_engine(self) -> bool:
        """Whether another engine, with other tasks, has come in the place of the one before, since the last call."""
        is_another, self._is_another = self._is_another, False
        return is_another

    async def run(self, show: Callable[[], Awaitable[None]]) -> None:
        """Follow the engine until it stops; `show` draws what was read anew, at once. Raises what the client raises."""
        while not self.ended:
            await self._seed()
            await show()
            self.ended = await self._follow()
        self.changes = Changes(anything=True, tasks=True)

    async def refresh(self) -> None:
        """Ask for the overview again."""
        self._see(await self._client.overview())

    async def learn(self) -> None:
        """Ask for what no event tells of the tasks at work: which limit is due next, as their clocks begin to stand or go on, and what
        those are that are not known. Nothing is asked while there is no work."""
        overview = self._picture.overview
        if overview is not None and any(worker.task_ids for worker in overview.workers):
            await self.refresh()
        if unknown := self._picture.unknown_tasks()[:MAX_ROWS]:
            page = await self._client.query(TaskQuery(where=TaskFilter(task_ids=unknown), limit=len(unknown)))
            self._picture.learn(page.rows)
            self.changes.anything = True

    def take_changes(self) -> Changes:
        """What changed since the last call."""
        changes, self.changes = self.changes, Changes()
        return changes

    async def _seed(self) -> None:
        overview = await self._client.overview()
        owned = await self._query(OWNED_STATES, TaskSort.OLDEST, SEEDED_OWNED_TASKS)
        ended = await self._query(FINAL_STATES, TaskSort.NEWEST, SEEDED_ENDED_TASKS)
        self._seen_at = self._monotonic()
        self._picture.seed(overview, [*ended, *owned])
        self.changes = Changes(anything=True, tasks=True)

    async def _follow(self) -> bool:
        """True when the events ended, False at a gap, and when they are those of an engine that was started again."""
        assert self._picture.overview is not None
        read = self._picture.overview.position
        known = self._place
        place = read if known is None or known.engine_id != read.engine_id or known.seq > read.seq else known
        async with aclosing(cast(AsyncGenerator[Event | Gap, None], self._client.events(place))) as events:
            async for item in events:
                if isinstance(item, Gap):
                    self._picture.gaps += 1
                    self._place = None
                    self._notice_start(read, item.resumes_after)
                    return False
                if place.seq < item.position.seq <= read.seq:
                    self._recall(item)
                elif self._notice_start(read, item.position):
                    return False
                else:
                    self._fold(item)
                self._place = item.position
        return True

    def _recall(self, event: Event) -> None:
        """What it did is in what was read after it."""
        self._picture.recall(event)
        self.changes.anything = True

    def _notice_start(self, before: Position, now: Position) -> bool:
        if now.engine_id == before.engine_id and now.epoch == before.epoch:
            return False
        self._is_another |= now.engine_id != before.engine_id
        which = "The engine was started again" if now.engine_id == before.engine_id else "Another engine answers here now"
        self._sentences.append(f"{which}; everything was read anew.")
        return True

    def _fold(self, event: Event) -> None:
        self.changes.tasks |= self._picture.apply(event)
        self.changes.anything = True

    async def _query(self, states: frozenset[TaskState], sort: TaskSort, limit: int) -> tuple[TaskRecord, ...]:
        page = await self._client.query(TaskQuery(where=TaskFilter(states=states), sort=sort, limit=limit))
        return page.rows

    def _see(self, overview: Overview) -> None:
        self._picture.see(overview)
        self._seen_at = self._monotonic()
