"""One attempt at one task: initialize, prepare the machine, run, stop. What it comes to is decided in `outcome` and written here.

Whatever happens, four things hold at the end: the bench is given back, the machine is given back, the task is settled or returned to
the queue (or another attempt owns it), and nothing of a plugin is still running.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.engine import clock
from malbox_tui.engine.attempt_time import AttemptTime
from malbox_tui.engine.batch import Batch, BatchCut
from malbox_tui.engine.cancellation import CancelToken, Interrupted
from malbox_tui.engine.guest_run import GuestFindings, GuestRun
from malbox_tui.engine.lifecycle import OwnedTask
from malbox_tui.engine.machine import MachineLease
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.outcome import (
    Conclusion,
    GivenBack,
    Happened,
    conclude,
    conclude_cut,
    conclude_failure,
    conclude_machine_failure,
)
from malbox_tui.engine.place import SAMPLE_NAME, Place
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.due import TimeLimit
from malbox_tui.model.errors import (
    GuestUnreachable,
    MachineError,
    MalboxError,
    SampleChanged,
    SampleMissing,
    StoreError,
    StoreFull,
)
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.task import Claim, EndedBy, Outcome, Task, TaskState
from malbox_tui.ports import Findings, PendingEntry, PluginJob, PluginRunner, Quarantine, ResultStore, Store

log = logging.getLogger(__name__)

T = TypeVar("T")

END_MARGIN_S = 10.0
"""How long, over the time that plugins get to end, it may take until they have; then they are cut."""


@dataclass(slots=True)
class Attempt:
    """One try at one task. `token` ends it; `outcome` is None until it is decided. `lease` is the machine reserved for it, `batch` the
    tasks that it shares its bench with.

    `owned` moves the task. `kept_out` maps plugins that the worker's group keeps out to the reason; `limits` bind the others.
    """

    claim: Claim
    owned: OwnedTask
    token: CancelToken
    time: AttemptTime
    lease: MachineLease | None = None
    batch: Batch | None = None
    kept_out: Mapping[str, str] = field(default_factory=dict)
    limits: ResourceLimits = UNLIMITED
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Stores:
    """Where an attempt reads its sample from and leaves what it came to."""

    store: Store
    quarantine: Quarantine
    results: ResultStore
    health: StoreHealth


class Executor:
    """Drives attempts, any number at a time. After `max_machine_failures` machines have failed a task, it fails."""

    def __init__(
        self,
        stores: Stores,
        runner: PluginRunner,
        machines: MachinePool,
        tracker: TaskTracker,
        settings: AnalysisSettings,
        max_machine_failures: int,
    ) -> None:
        self._stores = stores
        self._runner = runner
        self._machines = machines
        self._tracker = tracker
        self._settings = settings
        self._max_machine_failures = max_machine_failures

    def reload(self, settings: AnalysisSettings) -> None:
        """From now on these time limits are set for stages that begin."""
        self._settings = settings

    async def run(self, attempt: Attempt) -> PendingEntry | None:
        """Drive a claimed task to its end, or back: then what is to be queued again is returned.

        Raises `LeaseLost` when another attempt has it by then. Whatever else is raised, the task still is the attempt's.
        """
        place = Place(self._runner, self._machines, attempt.lease, attempt.batch, attempt.claim.task.id)
        try:
            return await self._drive(attempt, place)
        finally:
            attempt.time.end()
            await place.leave()

    async def _drive(self, attempt: Attempt, place: Place) -> PendingEntry | None:
        owned, time = attempt.owned, attempt.time
        findings, conclusion = Findings(()), None
        try:
            await self._get_ready(attempt, place)
            owned.begin_running()
            time.enter(TimeLimit.ANALYSIS, owned.task.timeout_s)
            findings, happened = await self._run_everything(attempt, place)
            conclusion = conclude(owned.task, attempt.token, happened)
        except Interrupted:
            conclusion = self._conclude_unready(attempt)
        except BatchCut:
            conclusion = conclude_cut(owned.task, attempt.token, time.reached)
        except MachineError as error:
            place.machine_failure = error.problem
            conclusion = conclude_machine_failure(owned.task, attempt.token, error, self._max_machine_failures)
        except (SampleMissing, SampleChanged) as error:
            conclusion = conclude_failure(attempt.token, Outcome(TaskState.FAILED, EndedBy.SAMPLE_CHANGED, str(error)))
        except MalboxError as error:
            conclusion = conclude_failure(attempt.token, Outcome(TaskState.FAILED, EndedBy.PLUGIN_ERROR, str(error)))
        return await self._stop(attempt, place, findings, conclusion)

    async def _get_ready(self, attempt: Attempt, place: Place) -> None:
        """Bring the sample and its machine to where they are needed. Raises `Interrupted` when the attempt is to end before that."""
        owned, time = attempt.owned, attempt.time
        async with time.token.interrupts():
            time.enter(TimeLimit.INITIALIZING, self._settings.initializing_timeout_s)
            await place.take(attempt.limits)
            await self._lay_out(owned.task, place, time)
            await place.gather(time)
            if attempt.lease is not None:
                owned.begin_preparing()
                time.enter(TimeLimit.PREPARING, self._settings.preparing_timeout_s)
                await place.bring_up()

    def _conclude_unready(self, attempt: Attempt) -> Conclusion:
        reached, lease = attempt.time.reached, attempt.lease
        if reached is None or reached.limit is not TimeLimit.PREPARING or lease is None:
            return conclude(attempt.owned.task, attempt.token, Happened((), reached))
        # Not held against the machine: it may have waited for its turn to start. What is wrong with it, its revert will tell.
        late = GuestUnreachable(lease.machine.name, f"it was not there for the task within {reached.seconds:g} s")
        return conclude_machine_failure(attempt.owned.task, attempt.token, late, self._max_machine_failures)

    async def _lay_out(self, task: Task, place: Place, time: AttemptTime) -> None:
        """Put the sample into the inbox. A full disk is waited for, since someone frees it; nobody mends another fault unasked."""
        target = place.sample_path

        async def extract() -> None:
            time.go()
            try:
                await self._stores.quarantine.extract(task.sha256, target)
            except StoreFull:
                time.stand()
                raise

        try:
            await self._stores.health.insist(extract, f"task {task.id}: its sample", StoreFull)
        except StoreError as error:
            raise StoreError(f"The sample could not be laid out: {error}") from error

    async def _run_everything(self, attempt: Attempt, place: Place) -> tuple[Findings, Happened]:
        """Run the plugins here and the sample in its guest, side by side, until the attempt's time is over."""
        task, time = attempt.claim.task, attempt.time
        job = PluginJob(task.id, attempt.claim.token, place.sample_name, attempt.kept_out, task.timeout_s)
        here = self._in_bounded_time(attempt, lambda: place.run_plugins(job, time))
        if attempt.lease is None or place.session is None:
            found = await here
            findings = found or Findings(())
            return findings, Happened(findings.runs, time.reached, is_cut=found is None)
        guest = GuestRun(place.session, self._stores.results, attempt.lease.machine.name)
        there = self._in_bounded_time(attempt, lambda: self._in_guest(guest, place, task, job, time.token))
        try:
            async with asyncio.TaskGroup() as sides:
                running_here, running_there = sides.create_task(here), sides.create_task(there)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        found, in_guest = running_here.result(), running_there.result()
        findings = found or Findings(())
        if in_guest is None:
            return findings, Happened(findings.runs, time.reached, is_cut=True)
        findings = Findings((in_guest.run, *findings.runs), findings.identification)
        return findings, Happened(findings.runs, time.reached, in_guest.lost, is_cut=found is None)

    async def _in_bounded_time(self, attempt: Attempt, work: Callable[[], Awaitable[T]]) -> T | None:
        """What `work` comes to. It ends in a bounded time once it is asked to, whatever plugins do; None if it had to be cut."""
        limit_s = self._settings.longest_grace_s + END_MARGIN_S
        scope = clock.within(None)
        try:
            async with scope:
                stop_listening = attempt.time.token.listen(lambda _reason: scope.reschedule(clock.monotonic() + limit_s))
                try:
                    return await work()
                finally:
                    stop_listening()
        except TimeoutError:
            if not scope.expired():
                raise
            log.error("what ran for task %d had not ended %g s after it was to", attempt.claim.task.id, limit_s)
            return None

    async def _in_guest(self, guest: GuestRun, place: Place, task: Task, job: PluginJob, token: CancelToken) -> GuestFindings:
        found = await guest.run(place.sample_path, SAMPLE_NAME, job, token)
        if task.enforce_timeout and found.is_up:
            await token.wait()
        return found

    async def _stop(self, attempt: Attempt, place: Place, findings: Findings, conclusion: Conclusion) -> PendingEntry | None:
        owned, token, stores = attempt.owned, attempt.claim.token, self._stores
        task = owned.task
        # Whatever it waited for, it waits for that no more.
        attempt.time.go()
        if isinstance(conclusion, Outcome):
            attempt.outcome = conclusion
            owned.begin_stopping(conclusion)
            attempt.time.enter(TimeLimit.STOPPING, self._settings.stopping_timeout_s)
            await self._leave(task, place)
            identification = findings.identification
            if identification is not None:
                await stores.health.insist(
                    lambda: stores.store.identify(task.sha256, identification), f"task {task.id}: its kind"
                )
            await stores.health.insist(lambda: stores.results.settle(task.id, token), f"task {task.id}: its results")
            await owned.settle()
            return None
        await self._leave(task, place)
        await stores.health.insist(lambda: stores.results.discard(task.id, token), f"task {task.id}: the end of its attempt")
        if isinstance(conclusion, GivenBack):
            return await owned.give_back(conclusion.reason, avoid=conclusion.avoid)
        return None

    async def _leave(self, task: Task, place: Place) -> None:
        """Give everything back. What takes too long goes on without the task: it is not to wait for somebody else's clean-up."""
        leaving = self._tracker.spawn(place.leave(), name=f"clean-up after task {task.id}")
        done, _ = await asyncio.wait({leaving}, timeout=self._settings.stopping_timeout_s)
        if done:
            leaving.result()
        else:
            log.error("cleaning up after task %d takes longer than %g s; it goes on", task.id, self._settings.stopping_timeout_s)
