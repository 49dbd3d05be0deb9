"""From the engine's events to the live picture: everything is folded in at once, and shown a few times a second: often enough to be
live, rarely enough for a slow link.

A gap (the console was too slow), and the first start, read everything anew. When the events end, the engine has stopped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from malbox_tui.model.events import Event, Gap
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.task import FINAL_STATES, OWNED_STATES, TaskState
from malbox_tui.ports import Client
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
    """Keeps a `LivePicture` up to date. `monotonic` gives seconds for durations."""

    def __init__(self, client: Client, picture: LivePicture, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._picture = picture
        self._monotonic = monotonic
        self._seen_at = 0.0
        self.changes = Changes()
        self.ended = False
        """The engine has stopped: there is no more news."""

    def now(self) -> float:
        """The engine's time, reckoned from its last answer."""
        overview = self._picture.overview
        return 0.0 if overview is None else overview.clock + (self._monotonic() - self._seen_at)

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
        """True when the events ended, False at a gap."""
        assert self._picture.overview is not None
        async for item in self._client.events(self._picture.overview.position):
            if isinstance(item, Gap):
                self._picture.gaps += 1
                return False
            self._fold(item)
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
