"""From an assignment to its end: the task is claimed, driven through one attempt, and put right if the attempt breaks.

What comes back is told to the worker and queued when it has let go of the task (`WorkerPool.finished`): were it queued earlier, two
workers could hold it. A person's cancel is kept on every way, also when it comes while the task is on its way back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.engine.attempt import Attempt
from malbox_tui.engine.attempt_time import AttemptTime
from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.engine.executor import Executor
from malbox_tui.engine.lifecycle import Lifecycle
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.recovery import Recovery
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.engine.tracker import was_cancelled
from malbox_tui.engine.worker import Assignment, Served, Worker
from malbox_tui.model.errors import LeaseLost, StaleTask, StoreError
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.task import Claim, EndedBy, TaskState, Trigger
from malbox_tui.ports import PendingEntry, Store

log = logging.getLogger(__name__)


class Driver:
    """Drives what workers were handed. `attempts`: those under way, by task id. For a worker group, `kept_out` gives the plugins that
    it keeps out with the reasons, `limits` what the others may use. `times`: how long attempts may take."""

    def __init__(
        self,
        *,
        lifecycle: Lifecycle,
        executor: Executor,
        recovery: Recovery,
        store: Store,
        health: StoreHealth,
        machines: MachinePool,
        kept_out: Callable[[str], Mapping[str, str]],
        limits: Callable[[str], ResourceLimits],
        times: AnalysisSettings,
    ) -> None:
        self.attempts: dict[int, Attempt] = {}
        self._lifecycle = lifecycle
        self._executor = executor
        self._recovery = recovery
        self._store = store
        self._health = health
        self._machines = machines
        self._kept_out = kept_out
        self._limits = limits
        self._times = times

    def reload(self, times: AnalysisSettings) -> None:
        """From now on attempts that begin may take so long."""
        self._times = times

    async def drive(self, worker: Worker, assignment: Assignment) -> Served:
        """Drive an assignment to its end. Raises what kept a broken attempt from being put right: its lease runs out instead."""
        entry, token, lease = assignment.entry, assignment.token, assignment.lease
        took, again = False, None
        try:
            if token.reason is CancelReason.SHUTDOWN:
                return Served(took=False, again=entry)
            machine = None if lease is None else lease.machine.name
            claim = await self._lifecycle.claim(entry.task_id, worker.id, machine)
            if claim is not None:
                took, again = True, await self._attempt(claim, worker, assignment)
        except StoreError as error:
            if took or entry.task_id in self.attempts:
                raise
            self._health.failed(error)
            again = entry
        finally:
            self.attempts.pop(entry.task_id, None)
            if lease is not None:
                self._machines.release(lease)
            if assignment.batch is not None:
                assignment.batch.leave(entry.task_id)
        if again is not None and token.reason is CancelReason.USER:
            await self._end(again, token)
            again = None
        return Served(took, again)

    async def _attempt(self, claim: Claim, worker: Worker, assignment: Assignment) -> PendingEntry | None:
        token = assignment.token
        owned = self._lifecycle.owned(claim.task)
        kept_out, limits = self._kept_out(worker.group), self._limits(worker.group)
        times = self._times
        # What a sample left in its machine is collected when its time is over, which takes as long as that may.
        flush_s = max(times.flush_grace_s, 0.0 if assignment.lease is None else times.collecting_timeout_s)
        time = AttemptTime(token, times.critical_timeout_s, (flush_s, times.cancel_grace_s))
        attempt = Attempt(claim, owned, token, time, assignment.lease, assignment.batch, kept_out, limits)
        attempt.handed_out_as = assignment.entry.requires
        self.attempts[claim.task.id] = attempt
        broken: BaseException
        try:
            return await self._executor.run(attempt)
        except LeaseLost as error:
            log.warning("%s", error)
            self._recovery.lost(claim.task.id, token)
            return None
        except asyncio.CancelledError as error:
            if was_cancelled():
                raise
            broken = error
        except Exception as error:  # noqa: BLE001 - whatever it is, the task is put right
            broken = error
        log.error("the attempt at task %d broke", claim.task.id, exc_info=broken)
        try:
            return await self._recovery.after_break(owned, token)
        except LeaseLost as error:
            log.warning("%s", error)
            self._recovery.lost(claim.task.id, token)
            return None

    async def _end(self, entry: PendingEntry, token: CancelToken) -> None:
        """Cancel a task that came back while somebody canceled it; a failing store is tried again until it takes that."""

        async def end() -> None:
            async with self._lifecycle.alone_with(entry.task_id):
                page = await self._store.tasks(TaskQuery(where=TaskFilter(task_ids=(entry.task_id,))), 0.0)
                for record in page.rows:
                    if record.task.state is TaskState.PENDING:
                        reason = f"Canceled by {token.detail} before it was tried again."
                        await self._lifecycle.end_pending(record.task, Trigger.CANCEL, EndedBy.USER, reason)

        try:
            await self._health.insist(end, f"task {entry.task_id}: that it is canceled")
        except StaleTask as error:
            log.warning("%s", error)
