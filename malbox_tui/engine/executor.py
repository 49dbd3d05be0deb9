"""One attempt at one task: initialize, prepare the machine, run, stop. What it comes to is decided in `outcome` and written here.

Whatever happens, four things hold at the end: the bench is given back, the machine is given back, the task is settled or returned to
the queue (or another attempt owns it), and nothing of a plugin is still running.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from malbox_tui.config.settings import Settings
from malbox_tui.engine import clock
from malbox_tui.engine.attempt_time import AttemptTime
from malbox_tui.engine.batch import Batch, BatchCut
from malbox_tui.engine.cancellation import CancelReason, CancelToken, Interrupted
from malbox_tui.engine.guest_bounds import bounds_of
from malbox_tui.engine.guest_order import GuestFindings, GuestOrder, GuestTimes
from malbox_tui.engine.guest_run import GuestRun
from malbox_tui.engine.launching import CannotStart, find_kind, find_launch
from malbox_tui.engine.lifecycle import OwnedTask
from malbox_tui.engine.looking import Looked, look_at
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
from malbox_tui.engine.planning import known_kind, planned, required_by, told_of_sample
from malbox_tui.engine.profiles import Profiles, UnknownProfile
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.engine.together import together
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
from malbox_tui.model.events import EventBody, PluginStarted
from malbox_tui.model.launch import Launch
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.profile import Profile
from malbox_tui.model.report import GUEST_RUN, Identification
from malbox_tui.model.task import Claim, EndedBy, Outcome, RequirementClass, Task, TaskState
from malbox_tui.ports import Findings, GuestPlugin, PendingEntry, PluginJob, PluginRunner, Quarantine, ResultStore, Store

log = logging.getLogger(__name__)

T = TypeVar("T")

_PLUGINS_AT_WORK = "running: its plugins were at work"

LONGEST_REBOOT_S = 60.0
"""A guest that starts anew while its sample runs is waited for as long as for any start, and at most so long."""
END_MARGIN_S = 10.0
"""How long, over the time that plugins get to end, it may take until they have; then they are cut."""


class _Rerouted(Exception):
    """The task is to be served otherwise than as it was handed out; the text says why, in a sentence."""


@dataclass(slots=True)
class Attempt:
    """One try at one task. `token` ends it; `outcome` is None until it is decided. `lease` is the machine reserved for it, `launch` how
    its sample is started there, once that is known, `batch` the tasks that it shares its bench with.

    `owned` moves the task. `kept_out` maps plugins that the worker's group keeps out to the reason; `limits` bind the others.
    `handed_out_as`: what it was taken from the queue as; None: as it is stored. `profile`, once its sample is laid out, is the task's,
    and `identification` what is known of the kind of its content.
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
    launch: Launch | None = None
    handed_out_as: RequirementClass | None = None
    profile: Profile | None = None
    identification: Identification | None = None


@dataclass(frozen=True, slots=True)
class Stores:
    """Where an attempt reads its sample from and leaves what it came to."""

    store: Store
    quarantine: Quarantine
    results: ResultStore
    health: StoreHealth


@dataclass(frozen=True, slots=True)
class GuestSide:
    """The plugins that run in guests, and who is told news of runs there."""

    plugins: Sequence[GuestPlugin] = ()
    tell: Callable[[EventBody], None] = lambda body: None


class Executor:
    """Drives attempts, any number at a time. After `max_machine_failures` machines have failed a task, it fails."""

    def __init__(
        self,
        stores: Stores,
        runner: PluginRunner,
        machines: MachinePool,
        tracker: TaskTracker,
        settings: Settings,
        guests: GuestSide,
        profiles: Profiles,
    ) -> None:
        self._stores = stores
        self._runner = runner
        self._machines = machines
        self._tracker = tracker
        self._settings = settings.analysis
        self._guest_bounds = bounds_of(settings.machinery)
        self._max_machine_failures = settings.machinery.max_attempts
        self._max_sample_bytes = settings.intake.max_sample_bytes
        self._back_s = min(settings.machinery.start_timeout_s, LONGEST_REBOOT_S)
        self._guests = guests
        self._profiles = profiles
        self._required_names = settings.plugins.required

    def follow(self, guest_plugins: Sequence[GuestPlugin]) -> None:
        """From now on these run in guests."""
        self._guests = replace(self._guests, plugins=guest_plugins)

    def reload(self, settings: Settings) -> None:
        """From now on these time limits are set for stages that begin."""
        self._settings = settings.analysis
        self._max_sample_bytes = settings.intake.max_sample_bytes

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

    async def _run_everything(self, attempt: Attempt, place: Place) -> tuple[Findings, Happened]:
        """Run the plugins here and the sample in its guest, side by side, until the attempt's time is over."""
        task, time = attempt.claim.task, attempt.time
        job = await self._job(attempt, place)
        if (plan := self._runner.plan).steps:
            self._guests.tell(planned(task, plan, attempt.kept_out))
        here = self._in_bounded_time(task, time.token, lambda: place.run_plugins(job, time))
        if attempt.lease is None or place.session is None or attempt.launch is None:
            found = await here
            findings = found or Findings(())
            return findings, Happened(
                findings.runs, time.reached, is_cut=found is None, required=self._required(attempt), doing=_PLUGINS_AT_WORK
            )
        order = self._order(attempt, attempt.lease, attempt.launch, place, job)
        guest = GuestRun(order, self._stores.results, self._guest_times, self._guest_bounds)
        there = self._in_guest(guest, attempt, place)
        found, in_guest = await together(here, there)
        findings = found or Findings(())
        if in_guest is None:
            return findings, Happened(findings.runs, time.reached, is_cut=True, doing=f"running: {guest.doing}")
        looked = await self._look_at_collected(attempt, place, in_guest, job)
        findings = Findings((*in_guest.runs, *findings.runs, *looked.runs), findings.identification)
        remarks = (in_guest.remark, f"The {looked.missing}." if looked.missing else "")
        return findings, Happened(
            runs=findings.runs,
            reached=time.reached,
            lost=in_guest.lost,
            is_cut=found is None,
            required=self._required(attempt),
            not_run=in_guest.not_run,
            remarks=tuple(remark for remark in remarks if remark),
            has_watched=in_guest.has_watched,
            doing=_PLUGINS_AT_WORK if guest.is_over else f"running: {guest.doing}",
        )

    async def _job(self, attempt: Attempt, place: Place) -> PluginJob:
        """The clock of a task without a machine stands while its plugins wait for those of other tasks."""
        task, time = attempt.owned.task, attempt.time
        return PluginJob(
            task_id=task.id,
            token=attempt.claim.token,
            sample_name=place.sample_name,
            kept_out=attempt.kept_out,
            timeout_s=task.timeout_s,
            task_type=task.requires.task_type,
            identification=attempt.identification or await known_kind(task, self._runner.plan, self._stores.store),
            options={} if attempt.profile is None else attempt.profile.options,
            on_wait=_let_stand(time) if attempt.lease is None and attempt.batch is None else lambda waits: None,
        )

    def _required(self, attempt: Attempt) -> frozenset[str]:
        own = () if attempt.profile is None else attempt.profile.required
        return required_by(self._runner.plan, own or self._required_names)

    @property
    def _guest_times(self) -> GuestTimes:
        return GuestTimes(self._settings.collecting_timeout_s, self._settings.longest_grace_s, self._back_s)

    def _order(self, attempt: Attempt, lease: MachineLease, launch: Launch, place: Place, job: PluginJob) -> GuestOrder:
        assert place.session is not None, "its machine was brought up"
        task = attempt.owned.task
        return GuestOrder(
            machine=lease.machine,
            session=place.session,
            hands=self._machines.hypervisor(lease),
            launch=launch,
            options=task.run,
            watches=task.enforce_timeout,
            job=job,
            plugins=self._guests.plugins,
            tell=self._guests.tell,
            on_picture=lambda picture: self._machines.show(lease.machine.name, picture),
        )

    async def _in_guest(self, guest: GuestRun, attempt: Attempt, place: Place) -> GuestFindings | None:
        """What the run in the guest comes to; None if it had to be cut. The machine is given back as soon as it is over."""
        token, task = attempt.time.token, attempt.claim.task
        began = clock.monotonic()
        self._runner.tell(PluginStarted(task_id=task.id, plugin=GUEST_RUN))
        found = None
        try:
            found = await self._in_bounded_time(
                task, token, lambda: guest.run(place.sample_path, token, attempt.token), self._guest_times.longest_s
            )
            return found
        finally:
            for news in told_of_sample(task.id, found, clock.monotonic() - began):
                self._runner.tell(news)
            await place.leave_machine()

    async def _look_at_collected(self, attempt: Attempt, place: Place, found: GuestFindings, job: PluginJob) -> Looked:
        """Let the plugins of this host look at what was collected, for as long as collecting may take, and not after a cancel."""
        token, within_s = attempt.token.child(), self._settings.collecting_timeout_s
        if not found.files or token.reason is not None:
            return Looked()
        alarm = clock.alarm(within_s, lambda: token.cancel(CancelReason.TIMEOUT))
        try:
            looked = await self._in_bounded_time(
                attempt.claim.task,
                token,
                lambda: look_at(found.files, place.bench, self._stores.results, job, token, self._max_sample_bytes),
            )
            return looked or Looked(missing="plugins did not end looking at the collected files")
        finally:
            alarm.cancel()

    async def _in_bounded_time(
        self, task: Task, token: CancelToken, work: Callable[[], Awaitable[T]], extra_s: float = 0.0
    ) -> T | None:
        """What `work` comes to. It ends in a bounded time once `token` asks it to, whatever plugins do; None if it had to be cut."""
        limit_s = self._settings.longest_grace_s + END_MARGIN_S + extra_s
        scope = clock.within(None)
        try:
            async with scope:
                stop_listening = token.listen(lambda _reason: scope.reschedule(clock.monotonic() + limit_s))
                try:
                    return await work()
                finally:
                    stop_listening()
        except TimeoutError:
            if not scope.expired():
                raise
            log.error("what ran for task %d had not ended %g s after it was to", task.id, limit_s)
            return None

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


def _let_stand(time: AttemptTime) -> Callable[[bool], None]:
    return lambda waits: time.stand() if waits else time.go()


def _doing(task: Task) -> str:
    """What a task is at before it runs, after "while"."""
    if task.state is TaskState.PREPARING_RESOURCES:
        return f"preparing: its machine {task.machine} was being brought up"
    return "initializing: its sample was being laid out"
