"""Puts right what was interrupted: by the end of the last epoch, by a broken attempt, or by a lease that ran out.

Afterwards each such task is final or pending. A task whose outcome was decided gets it; one that a person canceled is canceled; one
that was interrupted `max_crashes` times in a row is failed, so that one sample can't take the service down for ever.
"""

from __future__ import annotations

from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.engine.lifecycle import Lifecycle, OwnedTask
from malbox_tui.engine.outcome import canceled
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.model.task import EndedBy, Task, TaskState
from malbox_tui.ports import PendingEntry, ResultStore, Store

INTERRUPTED = "The last attempt was interrupted without warning; it was not counted."


class Recovery:
    """Works on tasks that are owned in the store and that nobody drives."""

    def __init__(self, store: Store, lifecycle: Lifecycle, results: ResultStore, health: StoreHealth, max_crashes: int) -> None:
        self._store = store
        self._health = health
        self._lifecycle = lifecycle
        self._results = results
        self._max_crashes = max_crashes
        self._canceled: dict[int, CancelToken] = {}

    async def recover(self) -> int:
        """Put every owned task right, before anything is taken; returns how many there were."""
        owned = await self._store.owned()
        for task in owned:
            await self.put_right(task)
        return len(owned)

    async def put_right(self, task: Task) -> PendingEntry | None:
        """Settle an owned task, as it is stored, fail it, or make it pending again: then what is to be queued is returned.

        Raises `LeaseLost` when it is owned by another attempt by now; a failing store is tried again until it takes it.
        """
        owned = self._lifecycle.owned(task)
        token = self._canceled.get(task.id)
        entry = await (self._put_right(owned) if token is None else self.after_break(owned, token))
        self._canceled.pop(task.id, None)
        return entry

    def lost(self, task_id: int, token: CancelToken) -> None:
        """Another attempt took the task over. Should it come back here, a cancel that was promised is still kept."""
        if token.reason is CancelReason.USER:
            self._canceled[task_id] = token

    async def after_break(self, owned: OwnedTask, token: CancelToken) -> PendingEntry | None:
        """As `put_right`, for a task whose attempt ended with an error; `token` tells whether somebody canceled it meanwhile.

        What broke when its end was stored already stays as it was stored, with its results.
        """
        if not owned.task.state.is_owned:
            return owned.entry if owned.task.state is TaskState.PENDING else None
        if token.reason is CancelReason.USER and owned.task.state is not TaskState.STOPPING:
            owned.begin_stopping(canceled(token, ()))
        return await self._put_right(owned)

    async def _put_right(self, owned: OwnedTask) -> PendingEntry | None:
        task = owned.task
        attempt = task.token or ""
        if task.state is TaskState.STOPPING:
            await self._health.insist(lambda: self._results.settle(task.id, attempt), f"task {task.id}: its results")
            await owned.settle()
            return None
        await self._health.insist(lambda: self._results.discard(task.id, attempt), f"task {task.id}: the end of its attempt")
        if task.crashes + 1 < self._max_crashes:
            return await owned.give_back(INTERRUPTED, crashed=True)
        reason = f"Interrupted without warning {self._max_crashes} times in a row; it is not tried again by itself."
        await owned.give_up(EndedBy.ATTEMPTS_EXHAUSTED, reason)
        return None
