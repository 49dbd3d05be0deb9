"""Puts right what was interrupted: by the end of the last epoch, by a broken attempt, or by a lease that ran out.

Afterwards each such task is final or pending. A task whose outcome was decided gets it; one that was interrupted `max_crashes`
times in a row is failed, so that one sample can't take the service down for ever.
"""

from __future__ import annotations

from malbox_tui.engine.lifecycle import Lifecycle
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.task import Claim, EndedBy, Task, TaskState
from malbox_tui.ports import ResultStore, Store

INTERRUPTED = "The last attempt was interrupted without warning; it was not counted."


class Recovery:
    """Works on tasks that are owned in the store and that nobody drives."""

    def __init__(self, store: Store, lifecycle: Lifecycle, results: ResultStore, max_crashes: int) -> None:
        self._store = store
        self._lifecycle = lifecycle
        self._results = results
        self._max_crashes = max_crashes

    async def recover(self) -> int:
        """Put every owned task right, before anything is taken; returns how many there were."""
        owned = await self._store.owned()
        for task in owned:
            await self.put_right(task)
        return len(owned)

    async def after_break(self, claim: Claim) -> None:
        """Put the task of an attempt right that ended with an error, if the attempt still owns it."""
        page = await self._store.tasks(TaskQuery(where=TaskFilter(task_ids=(claim.task.id,))), 0.0)
        for record in page.rows:
            if record.task.token == claim.token:
                await self.put_right(record.task)

    async def put_right(self, task: Task) -> None:
        """Settle an owned task, return it to the queue, or fail it. Raises `LeaseLost`."""
        token = task.token or ""
        if task.state is TaskState.STOPPING:
            await self._results.settle(task.id, token)
            await self._lifecycle.settle(task)
            return
        await self._results.discard(task.id, token)
        if task.crashes + 1 < self._max_crashes:
            await self._lifecycle.give_back(task, INTERRUPTED, crashed=True)
        else:
            reason = f"Interrupted without warning {self._max_crashes} times in a row; it is not tried again by itself."
            await self._lifecycle.give_up(task, EndedBy.ATTEMPTS_EXHAUSTED, reason)
