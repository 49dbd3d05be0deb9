"""One attempt at one task: initialize, prepare the machine, run, stop. What it comes to is decided in `outcome` and written here.

Whatever happens, four things hold at the end: the bench is given back, the machine is given back, the task is settled or returned to
the queue (or another attempt owns it), and nothing of a plugin is still running.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelReason, CancelToken, Interrupted
from malbox_tui.engine.guest_run import GuestFindings, GuestRun
from malbox_tui.engine.lifecycle import OwnedTask
from malbox_tui.engine.machine import MachineLease
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.outcome import Conclusion, GivenBack, Happened, conclude, conclude_failure, conclude_machine_failure
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.model.errors import MachineError, MalboxError, SampleChanged, SampleMissing, StoreError, StoreFull
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.task import Claim, EndedBy, Outcome, Task, TaskState
from malbox_tui.ports import (
    Findings,
    GuestSession,
    PendingEntry,
    PluginBench,
    PluginJob,
    PluginRunner,
    Quarantine,
    ResultStore,
    Store,
)

log = logging.getLogger(__name__)

SAMPLE_NAME = "sample"
"""What a sample is called where plugins and guests see it: its own name never becomes part of a path."""
SESSION_LIMIT_S = 5.0
"""How long a guest may take to be told goodbye."""


@dataclass(slots=True)
class Attempt:
    """One try at one task. `token` ends it; `outcome` is None until it is decided. `lease` is the machine reserved for it.

    `owned` moves the task. `kept_out` maps plugins that the worker's group keeps out to the reason; `limits` bind the others.
    """

    claim: Claim
    owned: OwnedTask
    token: CancelToken
    lease: MachineLease | None = None
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

    def __init__(self, stores: Stores, runner: PluginRunner, machines: MachinePool, max_machine_failures: int) -> None:
        self._stores = stores
        self._runner = runner
        self._machines = machines
        self._max_machine_failures = max_machine_failures

    async def run(self, attempt: Attempt) -> PendingEntry | None:
        """Drive a claimed task to its end, or back: then what is to be queued again is returned.

        Raises `LeaseLost` when another attempt has it by then. Whatever else is raised, the task still is the attempt's.
        """
        place = _Place(self._runner, self._machines, attempt.lease)
        try:
            return await self._drive(attempt, place)
        finally:
            await place.leave()

    async def _drive(self, attempt: Attempt, place: _Place) -> PendingEntry | None:
        owned = attempt.owned
        findings, conclusion = Findings(()), None
        try:
            async with attempt.token.interrupts():
                bench = await place.take(attempt.limits)
                await self._lay_out(owned.task, bench)
                if attempt.lease is not None:
                    owned.begin_preparing()
                    await place.bring_up()
            owned.begin_running()
            findings, happened = await self._run_everything(attempt, bench, place)
            conclusion = conclude(owned.task, attempt.token, happened)
        except Interrupted:
            conclusion = conclude(owned.task, attempt.token, Happened(findings.runs))
        except MachineError as error:
            place.machine_failure = error.problem
            conclusion = conclude_machine_failure(owned.task, attempt.token, error, self._max_machine_failures)
        except (SampleMissing, SampleChanged) as error:
            conclusion = conclude_failure(attempt.token, Outcome(TaskState.FAILED, EndedBy.SAMPLE_CHANGED, str(error)))
        except MalboxError as error:
            conclusion = conclude_failure(attempt.token, Outcome(TaskState.FAILED, EndedBy.PLUGIN_ERROR, str(error)))
        return await self._stop(attempt, place, findings, conclusion)

    async def _lay_out(self, task: Task, bench: PluginBench) -> None:
        """Put the sample into the inbox. A full disk is waited for, since someone frees it; nobody mends another fault unasked."""
        target = bench.inbox / SAMPLE_NAME

        async def extract() -> None:
            await self._stores.quarantine.extract(task.sha256, target)

        try:
            await self._stores.health.insist(extract, f"task {task.id}: its sample", StoreFull)
        except StoreError as error:
            raise StoreError(f"The sample could not be laid out: {error}") from error

    async def _run_everything(self, attempt: Attempt, bench: PluginBench, place: _Place) -> tuple[Findings, Happened]:
        """Run the plugins here and the sample in its guest, side by side, under the analysis timeout."""
        task = attempt.claim.task
        job = PluginJob(task.id, attempt.claim.token, SAMPLE_NAME, attempt.kept_out)
        limit = attempt.token.child()
        alarm = clock.alarm(task.timeout_s, lambda: limit.cancel(CancelReason.TIMEOUT))
        try:
            if attempt.lease is None or place.session is None:
                findings, guest = await bench.run(job, limit), None
            else:
                machine = attempt.lease.machine.name
                findings, guest = await self._on_both_sides(bench, place.session, machine, job, limit)
        finally:
            alarm.cancel()
        if guest is not None:
            findings = Findings((guest.run, *findings.runs), findings.identification)
        timed_out = limit.reason is CancelReason.TIMEOUT
        return findings, Happened(findings.runs, timed_out, None if guest is None else guest.lost)

    async def _on_both_sides(
        self, bench: PluginBench, session: GuestSession, machine: str, job: PluginJob, limit: CancelToken
    ) -> tuple[Findings, GuestFindings]:
        guest = GuestRun(session, self._stores.results, machine)
        try:
            async with asyncio.TaskGroup() as sides:
                here = sides.create_task(bench.run(job, limit))
                there = sides.create_task(guest.run(bench.inbox / job.sample_name, job.sample_name, job, limit))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        return here.result(), there.result()

    async def _stop(self, attempt: Attempt, place: _Place, findings: Findings, conclusion: Conclusion) -> PendingEntry | None:
        owned, token, stores = attempt.owned, attempt.claim.token, self._stores
        task = owned.task
        if isinstance(conclusion, Outcome):
            attempt.outcome = conclusion
            owned.begin_stopping(conclusion)
            await place.leave()
            identification = findings.identification
            if identification is not None:
                await stores.health.insist(
                    lambda: stores.store.identify(task.sha256, identification), f"task {task.id}: its kind"
                )
            await stores.health.insist(lambda: stores.results.settle(task.id, token), f"task {task.id}: its results")
            await owned.settle()
            return None
        await place.leave()
        await stores.health.insist(lambda: stores.results.discard(task.id, token), f"task {task.id}: the end of its attempt")
        if isinstance(conclusion, GivenBack):
            return await owned.give_back(conclusion.reason, avoid=conclusion.avoid)
        return None


class _Place:
    """Where an attempt works: at most one bench and one machine, left once."""

    def __init__(self, runner: PluginRunner, machines: MachinePool, lease: MachineLease | None) -> None:
        self.session: GuestSession | None = None
        self.machine_failure: str | None = None
        self._runner = runner
        self._machines = machines
        self._lease = lease
        self._bench: PluginBench | None = None

    async def take(self, limits: ResourceLimits) -> PluginBench:
        self._bench = await self._runner.acquire(limits)
        return self._bench

    async def bring_up(self) -> None:
        if self._lease is not None:
            self.session = await self._machines.start(self._lease)

    async def leave(self) -> None:
        """Give everything back; the machine first and in one step, since nothing that follows may keep it."""
        if self._lease is not None:
            self._machines.release(self._lease, self.machine_failure)
        bench, self._bench = self._bench, None
        session, self.session = self.session, None
        try:
            if session is not None:
                await _say_goodbye(session)
        finally:
            if bench is not None:
                await self._runner.release(bench)


async def _say_goodbye(session: GuestSession) -> None:
    """In a bounded time, and whatever comes of it: the machine is being stopped, nobody is left to say it to."""
    try:
        async with clock.within(SESSION_LIMIT_S):
            await session.close()
    except (MachineError, TimeoutError):
        return
    except Exception:
        log.exception("the adapter of a guest broke while it was told goodbye")
