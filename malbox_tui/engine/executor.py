"""One attempt at one task: initialize, prepare the machine, run, stop. What it comes to is decided in `outcome` and written here.

Whatever happens, four things hold at the end: the bench is given back, the machine is given back, the task is settled or returned to
the queue (or another attempt owns it), and nothing of a plugin is still running.
"""

from __future__ import annotations

import asyncio
import logging

from malbox_tui.config.settings import Settings
from malbox_tui.engine.attempt import Attempt
from malbox_tui.engine.attempt_time import AttemptTime
from malbox_tui.engine.batch import BatchCut
from malbox_tui.engine.cancellation import Interrupted
from malbox_tui.engine.launching import CannotStart, find_kind, find_launch
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
    conclude_rerouted,
)
from malbox_tui.engine.place import Place
from malbox_tui.engine.profiles import Profiles, UnknownProfile
from malbox_tui.engine.running import Running
from malbox_tui.engine.stores import Stores
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
from malbox_tui.model.launch import Launch
from malbox_tui.model.task import EndedBy, Outcome, Task, TaskState
from malbox_tui.ports import Findings, PendingEntry, PluginRunner

log = logging.getLogger(__name__)


class _Rerouted(Exception):
    """The task is to be served otherwise than as it was handed out; the text says why, in a sentence."""


class Executor:
    """Drives attempts, any number at a time. After `max_machine_failures` machines have failed a task, it fails."""

    def __init__(
        self,
        stores: Stores,
        runner: PluginRunner,
        machines: MachinePool,
        tracker: TaskTracker,
        settings: Settings,
        running: Running,
        profiles: Profiles,
    ) -> None:
        self._stores = stores
        self._runner = runner
        self._machines = machines
        self._tracker = tracker
        self._settings = settings.analysis
        self._max_machine_failures = settings.machinery.max_attempts
        self._running = running
        self._profiles = profiles

    def reload(self, settings: Settings) -> None:
        """From now on these limits are set for what begins."""
        self._settings = settings.analysis
        self._max_machine_failures = settings.machinery.max_attempts

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
            findings, happened = await self._running.run(attempt, place)
            conclusion = conclude(owned.task, attempt.token, happened)
        except Interrupted:
            conclusion = self._conclude_unready(attempt)
        except _Rerouted as error:
            conclusion = conclude_rerouted(attempt.token, str(error))
        except CannotStart as error:
            failed = Outcome(TaskState.FAILED, EndedBy.UNSERVICEABLE, str(error))
            conclusion = conclude_failure(attempt.token, failed, _doing(owned.task))
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
            await self._take_profile(attempt, place)
            await place.gather(time)
            if attempt.lease is not None:
                owned.begin_preparing()
                time.enter(TimeLimit.PREPARING, self._settings.preparing_timeout_s)
                attempt.launch = await self._prepare(attempt, attempt.lease, place)

    async def _take_profile(self, attempt: Attempt, place: Place) -> None:
        """Find out which profile the task has. Raises `_Rerouted` when it is not to be served as it is, `CannotStart`."""
        owned = attempt.owned
        if self._profiles.asks_for_kind(owned.task):
            attempt.identification = await find_kind(owned.task, self._stores.store, place.bench, place.sample_name)
            owned.task = self._profiles.for_kind(owned.task, attempt.identification)
        try:
            attempt.profile = self._profiles.of(owned.task)
        except UnknownProfile as error:
            raise CannotStart(str(error)) from error
        if attempt.handed_out_as not in (None, owned.task.requires):
            its_profile = f"Its profile is {owned.task.profile}" if attempt.profile is not None else "It has no profile any more"
            if (problem := self._profiles.unserviceable(owned.task.requires)) is not None:
                raise CannotStart(f"{its_profile}. {problem}")
            raise _Rerouted(f"{its_profile}: it is to be served as {owned.task.requires}.")
        if attempt.profile is not None:
            kept_out = attempt.profile.kept_out(self._runner.plan, self._profiles.plugins())
            attempt.kept_out = {**kept_out, **attempt.kept_out}

    async def _prepare(self, attempt: Attempt, lease: MachineLease, place: Place) -> Launch:
        """Bring the machine up, and find out meanwhile how the sample is started in it."""
        task, platform = attempt.owned.task, lease.machine.platform
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(place.bring_up(attempt.limits))
                finding = both.create_task(find_launch(task, platform, self._stores.store, place.bench, place.sample_name))
        except BaseExceptionGroup as failures:
            found = failures.subgroup(CannotStart) or failures
            raise found.exceptions[0] from failures
        return finding.result()

    def _conclude_unready(self, attempt: Attempt) -> Conclusion:
        reached, lease = attempt.time.reached, attempt.lease
        if reached is None or reached.limit is not TimeLimit.PREPARING or lease is None:
            return conclude(attempt.owned.task, attempt.token, Happened((), reached, doing=_doing(attempt.owned.task)))
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
            identification = findings.identification or attempt.identification
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


def _doing(task: Task) -> str:
    """What a task is at before it runs, after "while"."""
    if task.state is TaskState.PREPARING_RESOURCES:
        return f"preparing: its machine {task.machine} was being brought up"
    return "initializing: its sample was being laid out"
