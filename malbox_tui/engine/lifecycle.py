"""The one writer of task state. Every move of every task passes here: the model says what it becomes, the store makes it durable.

Adding, claiming and settling return after the commit. The stages between are written in order and not waited for: should the process
die before they are stored, the attempt is recovered from an earlier stage, which costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

import msgspec

from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model import events as news
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
    """Moves tasks. `on_pending` is called, after the commit, with each task that can be taken from now on."""

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

    async def create(self, new: NewTask) -> Added:
        """Add a task. Cancelled: the task is added all the same if the store had it already, and will be taken."""
        return await asyncio.shield(self._tracker.spawn(self._create(new), name="create"))

    async def claim(self, task_id: int, worker: str, machine: str | None) -> Claim | None:
        """Own a pending task that `machine` is reserved for; None when it is no longer pending. Raises `StoreError`."""
        now = self._wall.now()
        token = uuid4().hex
        task = await self._store.claim(ClaimRequest(task_id, worker, token, now, now + self._lease_s, machine))
        return None if task is None else Claim(task, token)

    def begin_preparing(self, task: Task) -> Task:
        """The sample is there; the machine is being brought up."""
        return self._step(moved(task, Trigger.PREPARE, self._wall.now()), task)

    def begin_running(self, task: Task) -> Task:
        """The sample and everything the plugins need is there."""
        return self._step(moved(task, Trigger.RUN, self._wall.now()), task)

    def begin_stopping(self, task: Task, outcome: Outcome) -> Task:
        """The outcome stands; what follows only cleans up."""
        return self._step(stopping(task, outcome, self._wall.now()), task)

    async def settle(self, task: Task) -> Task:
        """Record the outcome of a stopping task. Raises `LeaseLost`; a failing store is tried again until it takes it."""
        final = settled(task, self._wall.now())
        await self._insist(task, final, _ended_news(final))
        return final

    async def give_back(self, task: Task, reason: str, *, crashed: bool = False, avoid: str | None = None) -> Task:
        """Return an owned task to the queue, the attempt not counted; `avoid` is the machine that failed it. Raises `LeaseLost`."""
        pending = given_back(task, self._wall.now(), reason, crashed=crashed, avoid=avoid)
        await self._insist(task, pending, news.TaskGivenBack(task_id=task.id, reason=reason, crashes=pending.crashes))
        self._on_pending(PendingEntry(pending.id, pending.priority, pending.requires))
        return pending

    async def give_up(self, task: Task, ended_by: EndedBy, reason: str) -> Task:
        """Fail an owned task that no attempt drives any more, its last crash counted. Raises `LeaseLost`."""
        stopping_task = self.begin_stopping(
            msgspec.structs.replace(task, crashes=task.crashes + 1), Outcome(TaskState.FAILED, ended_by, reason)
        )
        return await self.settle(stopping_task)

    async def end_pending(self, task: Task, trigger: Trigger, ended_by: EndedBy, reason: str) -> Task:
        """End a task that waits: canceled by a person, or failed. Raises `StaleTask` when it no longer waits."""
        now = self._wall.now()
        final = ended_while_pending(task, trigger, now, ended_by, reason)
        await self._store.write(Change(task, final, _ended_news(final), now))
        return final

    async def set_priority(self, task: Task, priority: int) -> Task:
        """Re-order a pending task. Raises `StaleTask`."""
        changed = msgspec.structs.replace(task, priority=priority)
        body = news.TaskPriorityChanged(task_id=task.id, priority=priority)
        await self._store.write(Change(task, changed, body, self._wall.now()))
        return changed

    def _step(self, after: Task, before: Task) -> Task:
        self._store.write(Change(before, after, news.TaskStageChanged(task_id=after.id, state=after.state), self._wall.now()))
        return after

    async def _create(self, new: NewTask) -> Added:
        added = await self._store.add(new)
        if added.created:
            self._on_pending(PendingEntry(added.task.id, added.task.priority, added.task.requires))
        return added

    async def _insist(self, before: Task, after: Task, body: news.EventBody) -> None:
        change = Change(before, after, body, self._wall.now())
        await self._health.insist(lambda: self._store.write(change), f"task {before.id}: that it is {after.state}")


def _ended_news(final: Task) -> news.EventBody:
    return _ENDED[final.state](task_id=final.id, ended_by=final.ended_by, reason=final.reason, verdict=final.verdict)
