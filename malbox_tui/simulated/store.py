"""A store that fails, is slow, and loses leases: around any other store, whose contract it keeps."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from malbox_tui.model.errors import MalboxError, StoreError, StoreFull
from malbox_tui.model.events import Event, EventBody, TaskGivenBack
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import Identification
from malbox_tui.model.task import Task, TaskState, given_back
from malbox_tui.ports import Added, Change, ClaimRequest, Clock, NewTask, PendingEntry, Store, StoreIdentity
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import World

log = logging.getLogger(__name__)

RIVAL = "another-engine"
"""The worker that owns a task which was taken over."""


class FaultyStore:
    """Implements `Store` by `inner`. Writes fail while `outage` is set, and for a while after the world's chance began an outage.

    Reading works all the time. Nothing of a write that failed reaches `inner`; one that is slow is stored at once and answered late.
    """

    def __init__(self, inner: Store, world: World, wall: Clock) -> None:
        self.outage: StoreError | None = None
        self._inner = inner
        self._world = world
        self._era = world.era
        self._wall = wall
        self._outage_by_chance: StoreError | None = None
        self._works_again_at = -math.inf

    # --- the port ---

    async def open(self, on_commit: Callable[[Sequence[Event]], None]) -> StoreIdentity:
        """As `Store.open`."""
        self._world.check_era(self._era)
        return await self._inner.open(on_commit)

    async def close(self) -> None:
        """As `Store.close`."""
        self._world.check_era(self._era)
        await self._inner.close()

    async def add(self, new: NewTask) -> Added:
        """As `Store.add`."""
        await self._raise_if_failing("add")
        added = await self._inner.add(new)
        await self._dawdle("add")
        return added

    async def claim(self, request: ClaimRequest) -> Task | None:
        """As `Store.claim`."""
        await self._raise_if_failing("claim")
        task = await self._inner.claim(request)
        await self._dawdle("claim")
        return task

    def write(self, change: Change) -> Awaitable[None]:
        """As `Store.write`."""
        return self._handed_over("write", f"task {change.before.id}", lambda: self._inner.write(change))

    def note(self, at: float, news: EventBody) -> Awaitable[None]:
        """As `Store.note`."""
        return self._handed_over("note", type(news).__name__, lambda: self._inner.note(at, news))

    async def renew(self, tokens: Sequence[str], lease_until: float) -> frozenset[str]:
        """As `Store.renew`. A task that the world's chance lets be taken over is lost to another engine, for good."""
        await self._raise_if_failing("renew")
        await self._let_rivals_in(frozenset(tokens))
        lost = await self._inner.renew(tokens, lease_until)
        await self._dawdle("renew")
        return lost

    async def identify(self, sha256: str, identification: Identification) -> None:
        """As `Store.identify`."""
        await self._raise_if_failing("identify")
        await self._inner.identify(sha256, identification)
        await self._dawdle("identify")

    async def check(self) -> None:
        """As `Store.check`."""
        await self._raise_if_failing("check")
        await self._inner.check()

    async def pending(self) -> Sequence[PendingEntry]:
        """As `Store.pending`."""
        self._world.check_era(self._era)
        return await self._inner.pending()

    async def owned(self) -> Sequence[Task]:
        """As `Store.owned`."""
        self._world.check_era(self._era)
        return await self._inner.owned()

    async def tasks(self, query: TaskQuery, clock: float) -> TaskPage:
        """As `Store.tasks`."""
        self._world.check_era(self._era)
        return await self._inner.tasks(query, clock)

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """As `Store.events`."""
        self._world.check_era(self._era)
        return await self._inner.events(after, limit)

    # --- losing leases ---

    async def take_over(self, task: Task) -> bool:
        """Another engine takes an owned task over, and dies: its lease runs out. False if the task has moved on, or is stopping."""
        self._world.check_era(self._era)
        if task.state is TaskState.STOPPING or not task.state.is_owned:
            return False
        at = self._wall.now()
        back = given_back(task, at, "The engine that had it was thought to be dead.", crashed=True)
        news = TaskGivenBack(task_id=task.id, reason=back.reason, crashes=back.crashes)
        lease_until = at + self._world.drawn(self._world.durations.rival)
        token = f"rival-{next(self._world.numbers)}"
        # Handed over in one step, so that nobody sees the task pending between.
        giving_back = self._inner.write(Change(task, back, news, at))
        taken = await self._inner.claim(ClaimRequest(task.id, RIVAL, token, at, lease_until, task.machine))
        try:
            await giving_back
        except MalboxError:
            return False
        return taken is not None

    async def _let_rivals_in(self, tokens: frozenset[str]) -> None:
        for task in await self._inner.owned():
            if task.token in tokens and self._world.faults.strikes(Fault.LEASE_TAKEN_OVER, str(task.id)):
                await self.take_over(task)

    # --- failing and being slow ---

    def _failure(self, call: str) -> StoreError | None:
        """What this call fails with, if it does."""
        self._world.check_era(self._era)
        now = asyncio.get_running_loop().time()
        if self.outage is None and now >= self._works_again_at:
            self._begin_outage(call, now)
        failing = self.outage or (self._outage_by_chance if now < self._works_again_at else None)
        return None if failing is None else type(failing)(str(failing))

    def _begin_outage(self, call: str, now: float) -> None:
        if self._world.faults.strikes(Fault.STORE_FULL, call):
            self._outage_by_chance = StoreFull("The disk under the simulated store is full. Free some space.")
        elif self._world.faults.strikes(Fault.STORE_FAILS, call):
            self._outage_by_chance = StoreError("The simulated store could not be used: input/output error.")
        else:
            return
        # Even one of no length fails the call that began it.
        self._works_again_at = math.nextafter(now + self._world.drawn(self._world.durations.outage), math.inf)

    async def _raise_if_failing(self, call: str) -> None:
        failure = self._failure(call)
        if failure is not None:
            await self._world.take(self._era, (0.0, 0.0))
            raise failure

    async def _dawdle(self, call: str) -> None:
        self._world.check_era(self._era)
        if self._world.faults.strikes(Fault.STORE_SLOW, call):
            await self._world.take(self._era, self._world.durations.slow)

    def _handed_over(self, call: str, subject: str, hand_over: Callable[[], Awaitable[None]]) -> Awaitable[None]:
        failure = self._failure(call)
        if failure is not None:
            return _Refusal(subject, failure, lambda: self._world.take(self._era, (0.0, 0.0)))
        return _LateAnswer(hand_over(), lambda: self._dawdle(call))


class _LateAnswer:
    """An answer that is told when it has come, or after a pause."""

    def __init__(self, answer: Awaitable[None], pause: Callable[[], Awaitable[None]]) -> None:
        self._answer = answer
        self._pause = pause

    def __await__(self) -> Generator[Any, None, None]:
        yield from self._pause().__await__()
        yield from self._answer.__await__()


class _Refusal:
    """The answer to a write that was not stored; logged when nobody asked for it."""

    def __init__(self, subject: str, error: StoreError, pause: Callable[[], Awaitable[None]]) -> None:
        self._subject = subject
        self._error = error
        self._pause = pause
        self._told = False

    def __await__(self) -> Generator[Any, None, None]:
        yield from self._pause().__await__()
        self._told = True
        raise self._error

    def __del__(self) -> None:
        if not self._told:
            log.warning("%s was not stored: %s", self._subject, self._error)
