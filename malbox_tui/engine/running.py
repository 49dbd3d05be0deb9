"""What is run for an attempt: plugins here, and the sample in its guest, side by side, until the attempt's time is over."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from malbox_tui.config.settings import Settings
from malbox_tui.engine import clock
from malbox_tui.engine.attempt import Attempt
from malbox_tui.engine.attempt_time import AttemptTime
from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.engine.guest_bounds import bounds_of
from malbox_tui.engine.guest_order import GuestFindings, GuestOrder, GuestTimes
from malbox_tui.engine.guest_run import GUEST_RUN, GuestRun
from malbox_tui.engine.looking import Looked, look_at
from malbox_tui.engine.machine import MachineLease
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.outcome import Happened
from malbox_tui.engine.place import Place
from malbox_tui.engine.planning import known_kind, planned, required_by, told_of_sample
from malbox_tui.engine.stores import Stores
from malbox_tui.engine.together import together
from malbox_tui.model.events import EventBody, PluginStarted
from malbox_tui.model.launch import Launch
from malbox_tui.model.task import Task
from malbox_tui.ports import Findings, GuestPlugin, PluginJob, PluginRunner

log = logging.getLogger(__name__)

T = TypeVar("T")

_PLUGINS_AT_WORK = "running: its plugins were at work"


LONGEST_REBOOT_S = 60.0
"""A guest that starts anew while its sample runs is waited for as long as for any start, and at most so long."""
END_MARGIN_S = 10.0
"""How long, over the time that plugins get to end, it may take until they have; then they are cut."""


@dataclass(frozen=True, slots=True)
class GuestSide:
    """The plugins that run in guests, and who is told news of runs there."""

    plugins: Sequence[GuestPlugin] = ()
    tell: Callable[[EventBody], None] = lambda body: None


class Running:
    """Runs what attempts ask for, any number at a time."""

    def __init__(
        self, stores: Stores, runner: PluginRunner, machines: MachinePool, settings: Settings, guests: GuestSide
    ) -> None:
        self._stores = stores
        self._runner = runner
        self._machines = machines
        self._guests = guests
        self._required_names = settings.plugins.required
        self.reload(settings)

    def follow(self, guest_plugins: Sequence[GuestPlugin]) -> None:
        """From now on these run in guests."""
        self._guests = replace(self._guests, plugins=guest_plugins)

    def reload(self, settings: Settings) -> None:
        """From now on these bounds hold for what begins."""
        self._settings = settings.analysis
        self._guest_bounds = bounds_of(settings.machinery)
        self._max_sample_bytes = settings.intake.max_sample_bytes
        self._back_s = min(settings.machinery.start_timeout_s, LONGEST_REBOOT_S)

    async def run(self, attempt: Attempt, place: Place) -> tuple[Findings, Happened]:
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
            seen=lease.seen,
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


def _let_stand(time: AttemptTime) -> Callable[[bool], None]:
    return lambda waits: time.stand() if waits else time.go()
