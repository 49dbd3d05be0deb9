"""The one writer of task state. Every move of every task passes here: the model says what it becomes, the store makes it durable.

Adding, claiming and settling return after the commit. The stages between are written in order and not waited for: should the process
die before they are stored, the attempt is recovered from an earlier stage, which costs nothing. Should the store not take one, the
end of the attempt makes it good, so nothing that was worked out is lost with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4
from weakref import WeakValueDictionary

import msgspec

from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model import events as news
from malbox_tui.model.errors import LeaseLost, StoreError
from malbox_tui.model.task import (
    Claim,
    EndedBy,
    Outcome,
    Task,
    TaskState,
    Trigger,
    ended_while_pending,
    given_back,
    moved,
    settled,
    stopping,
)
from malbox_tui.ports import Added, Change, ClaimRequest, Clock, NewTask, PendingEntry, Store

_ENDED: dict[TaskState, Callable[..., news.EventBody]] = {
    TaskState.COMPLETED: news.TaskCompleted,
    TaskState.FAILED: news.TaskFailed,
    TaskState.TIMED_OUT: news.TaskTimedOut,
    TaskState.CANCELED: news.TaskCanceled,
}


class Lifecycle:
    """Adds, claims and re-orders tasks. `on_pending` is called, after the commit, with each new task."""

    def __init__(
        self,
        store: Store,
        health: StoreHealth,
        wall: Clock,
        tracker: TaskTracker,
        lease_s: float,
        on_pending: Callable[[PendingEntry], None],
    ) -> None:
        self._store = store
        self._health = health
        self._wall = wall
        self._tracker = tracker
        self._lease_s = lease_s
        self._on_pending = on_pending
        self._edits: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def create(self, new: NewTask, on_end: Callable[[], None] = lambda: None) -> Added:
        """Add a task. Raises `StoreError`. Cancelled: the task is added all the same if the store had it already, and will be taken.
        `on_end` is called when it is added, or will not be."""
        return await asyncio.shield(self._tracker.spawn(self._create(new, on_end), name="create"))

    async def claim(self, task_id: int, worker: str, machine: str | None) -> Claim | None:
        """Own a pending task that `machine` is reserved for; None when it is no longer pending. Raises `StoreError`."""
        now = self._wall.now()
        token = uuid4().hex
        task = await self._store.claim(ClaimRequest(task_id, worker, token, now, now + self._lease_s, machine))
        return None if task is None else Claim(task, token)

    def owned(self, task: Task) -> OwnedTask:
        """The way to move a task that is owned, as it is stored."""
        return OwnedTask(task, self._store, self._health, self._wall)

    def alone_with(self, task_id: int) -> asyncio.Lock:
        """What is held from reading a pending task until it is changed: two changes of the same row would undo each other's."""
        lock = self._edits.get(task_id)
        if lock is None:
            lock = self._edits[task_id] = asyncio.Lock()
        return lock

    async def end_pending(self, task: Task, trigger: Trigger, ended_by: EndedBy, reason: str) -> Task:
        """End a task that waits: canceled by a person, or failed. Raises `StaleTask` when it no longer waits, `StoreError`."""
        now = self._wall.now()
        final = ended_while_pending(task, trigger, now, ended_by, reason)
        await self._store.write(Change(task, final, _ended_news(final), now))
        return final

    async def set_priority(self, task: Task, priority: int) -> Task:
        """Re-order a pending task. Raises `StaleTask`, `StoreError`."""
        changed = msgspec.structs.replace(task, priority=priority)
        body = news.TaskPriorityChanged(task_id=task.id, priority=priority)
        await self._store.write(Change(task, changed, body, self._wall.now()))
        return changed

    async def set_profile(self, task: Task, changed: Task) -> None:
        """Give a pending task what `changed` has of a profile. Raises `StaleTask`, `StoreError`."""
        body = news.TaskProfileChanged(task_id=task.id, profile=str(changed.profile or ""), requires=changed.requires)
        await self._store.write(Change(task, changed, body, self._wall.now()))

    async def change(self, task: Task, changed: Task) -> None:
        """Let a pending task ask for what `changed` does. Raises `StaleTask`, `StoreError`."""
        body = news.TaskChanged(task_id=task.id, requires=changed.requires, timeout_s=changed.timeout_s)
        await self._store.write(Change(task, changed, body, self._wall.now()))

    async def _create(self, new: NewTask, on_end: Callable[[], None]) -> Added:
        try:
            added = await self._store.add(new)
        except StoreError as error:
            self._health.failed(error)
            raise
        finally:
            on_end()
        if added.created:
            self._on_pending(PendingEntry(added.task.id, added.task.priority, added.task.requires))
        return added


class OwnedTask:
    """A task in the hands of one attempt, and its moves. `task` is what it is by now, the store's row may be some commits behind."""

    def __init__(self, task: Task, store: Store, health: StoreHealth, wall: Clock) -> None:
        self.task = task
        self._store = store
        self._health = health
        self._wall = wall
        self._handed_over: list[tuple[Change, Awaitable[None]]] = []

    @property
    def entry(self) -> PendingEntry:
        """What is to be queued when it is pending."""
        return PendingEntry(self.task.id, self.task.priority, self.task.requires)

    def begin_preparing(self) -> None:
        """The sample is there; the machine is being brought up."""
        self._step(moved(self.task, Trigger.PREPARE, self._wall.now()))

    def begin_running(self) -> None:
        """The sample and everything the plugins need is there."""
        self._step(moved(self.task, Trigger.RUN, self._wall.now()))

    def begin_stopping(self, outcome: Outcome) -> None:
        """The outcome stands; what follows only cleans up."""
        self._step(stopping(self.task, outcome, self._wall.now()))

    async def settle(self) -> None:
        """Record the outcome of a stopping task. Raises `LeaseLost`; a failing store is tried again until it takes it."""
        final = settled(self.task, self._wall.now())
        await self._end(final, _ended_news(final))

    async def give_back(self, reason: str, *, crashed: bool = False, avoid: str | None = None) -> PendingEntry:
        """Make it pending again, the attempt not counted; returns what is to be queued. `avoid` is the machine that failed it.

        Raises `LeaseLost`; a failing store is tried again until it takes it.
        """
        pending = given_back(self.task, self._wall.now(), reason, crashed=crashed, avoid=avoid)
        await self._end(pending, news.TaskGivenBack(task_id=pending.id, reason=reason, crashes=pending.crashes))
        return self.entry

    async def give_up(self, ended_by: EndedBy, reason: str) -> None:
        """Fail a task that no attempt drives any more, its last crash counted. Raises `LeaseLost`."""
        self.task = msgspec.structs.replace(self.task, crashes=self.task.crashes + 1)
        self.begin_stopping(Outcome(TaskState.FAILED, ended_by, reason))
        await self.settle()

    def _step(self, after: Task) -> None:
        change = Change(self.task, after, news.TaskStageChanged(task_id=after.id, state=after.state), self._wall.now())
        self._handed_over.append((change, self._store.write(change)))
        self.task = after

    async def _end(self, after: Task, body: news.EventBody) -> None:
        change = Change(self.task, after, body, self._wall.now())
        await self._health.insist(lambda: self._write(change), f"task {after.id}: that it is {after.state}")
        self.task = after

    async def _write(self, change: Change) -> None:
        """Write the end. It can't be told from a lost lease that the store did not take a stage before it: that is looked into."""
        try:
            await self._store.write(change)
        except LeaseLost:
            if not await self._catch_up():
                raise
            await self._store.write(change)

    async def _catch_up(self) -> bool:
        """Take the store to the latest stage if it did not take one before; False when it took them all. Raises `LeaseLost`."""
        for change, answer in self._handed_over:
            try:
                await answer
            except StoreError:
                latest = news.TaskStageChanged(task_id=self.task.id, state=self.task.state)
                await self._store.write(Change(change.before, self.task, latest, self._wall.now()))
                self._handed_over.clear()
                return True
        return False


def _ended_news(final: Task) -> news.EventBody:
    return _ENDED[final.state](task_id=final.id, ended_by=final.ended_by, reason=final.reason, verdict=final.verdict)
