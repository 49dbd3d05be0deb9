"""One attempt at one task: initialize, run the plugins, stop. The outcome is decided in one place (`_conclude`) and written in one.

Whatever happens, three things hold at the end: the bench is given back, the task is settled or returned to the queue (or another
attempt owns it), and nothing of a plugin is still running.
"""

from __future__ import annotations

from dataclasses import dataclass

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelReason, CancelToken, Interrupted
from malbox_tui.engine.lifecycle import Lifecycle, until_stored
from malbox_tui.model.errors import MalboxError, SampleChanged, SampleMissing, StoreError, StoreFull
from malbox_tui.model.report import PluginRun, PluginStatus, worst
from malbox_tui.model.task import Claim, EndedBy, Outcome, Task, TaskState
from malbox_tui.ports import Findings, PluginBench, PluginJob, PluginRunner, Quarantine, ResultStore, Store

SAMPLE_NAME = "sample"
"""What a sample is called where plugins see it: its own name never becomes part of a path."""


@dataclass(slots=True)
class Attempt:
    """One try at one task. `token` ends it; `outcome` is None until it is decided."""

    claim: Claim
    token: CancelToken
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class _GivenBack:
    reason: str


@dataclass(frozen=True, slots=True)
class _TakenOver:
    pass


_Conclusion = Outcome | _GivenBack | _TakenOver


class Executor:
    """Drives attempts, any number at a time."""

    def __init__(
        self, *, lifecycle: Lifecycle, store: Store, quarantine: Quarantine, results: ResultStore, runner: PluginRunner
    ) -> None:
        self._lifecycle = lifecycle
        self._store = store
        self._quarantine = quarantine
        self._results = results
        self._runner = runner

    async def run(self, attempt: Attempt) -> None:
        """Drive a claimed task to its end, or back to the queue. Raises `LeaseLost` when another attempt has it by then."""
        place = _Place(self._runner)
        try:
            await self._drive(attempt, place)
        finally:
            await place.leave()

    async def _drive(self, attempt: Attempt, place: _Place) -> None:
        task = attempt.claim.task
        findings = Findings(())
        try:
            async with attempt.token.interrupts():
                bench = await place.take()
                await self._lay_out(task, bench)
            task = self._lifecycle.begin_running(task)
            findings, timed_out = await self._run_plugins(attempt, bench)
            conclusion = _conclude(task, attempt.token, findings, timed_out=timed_out)
        except Interrupted:
            conclusion = _conclude(task, attempt.token, findings, timed_out=False)
        except (SampleMissing, SampleChanged) as error:
            conclusion = Outcome(TaskState.FAILED, EndedBy.SAMPLE_CHANGED, str(error))
        except MalboxError as error:
            conclusion = Outcome(TaskState.FAILED, EndedBy.PLUGIN_ERROR, str(error))
        await self._stop(attempt, task, place, findings, conclusion)

    async def _lay_out(self, task: Task, bench: PluginBench) -> None:
        """Put the sample into the inbox. A full disk is waited for, since someone frees it; nobody mends another fault unasked."""
        target = bench.inbox / SAMPLE_NAME
        try:
            await until_stored(lambda: self._quarantine.extract(task.sha256, target), f"task {task.id}: its sample", StoreFull)
        except StoreError as error:
            raise StoreError(f"The sample could not be laid out: {error}") from error

    async def _run_plugins(self, attempt: Attempt, bench: PluginBench) -> tuple[Findings, bool]:
        task = attempt.claim.task
        limit = attempt.token.child()
        alarm = clock.alarm(task.timeout_s, lambda: limit.cancel(CancelReason.TIMEOUT))
        try:
            findings = await bench.run(PluginJob(task.id, attempt.claim.token, SAMPLE_NAME), limit)
        finally:
            alarm.cancel()
        return findings, limit.reason is CancelReason.TIMEOUT

    async def _stop(self, attempt: Attempt, task: Task, place: _Place, findings: Findings, conclusion: _Conclusion) -> None:
        token = attempt.claim.token
        if isinstance(conclusion, Outcome):
            attempt.outcome = conclusion
            task = self._lifecycle.begin_stopping(task, conclusion)
            await place.leave()
            identification = findings.identification
            if identification is not None:
                await until_stored(lambda: self._store.identify(task.sha256, identification), f"task {task.id}: its kind")
            await until_stored(lambda: self._results.settle(task.id, token), f"task {task.id}: its results")
            await self._lifecycle.settle(task)
        else:
            await place.leave()
            await until_stored(lambda: self._results.discard(task.id, token), f"task {task.id}: the end of its attempt")
            if isinstance(conclusion, _GivenBack):
                await self._lifecycle.give_back(task, conclusion.reason)


class _Place:
    """At most one bench, left once."""

    def __init__(self, runner: PluginRunner) -> None:
        self._runner = runner
        self._bench: PluginBench | None = None

    async def take(self) -> PluginBench:
        self._bench = await self._runner.acquire()
        return self._bench

    async def leave(self) -> None:
        bench, self._bench = self._bench, None
        if bench is not None:
            await self._runner.release(bench)


def _conclude(task: Task, token: CancelToken, findings: Findings, *, timed_out: bool) -> _Conclusion:
    """What the attempt comes to. A person's cancel goes before all else; a shutdown doesn't undo finished work."""
    runs = findings.runs
    unfinished = not runs or any(run.status in (PluginStatus.CANCELED, PluginStatus.TIMED_OUT) for run in runs)
    if token.reason is CancelReason.LEASE_LOST:
        return _TakenOver()
    if token.reason is CancelReason.USER:
        by = f" by {token.detail}" if token.detail else ""
        return _outcome(TaskState.CANCELED, EndedBy.USER, f"Canceled{by}.", runs)
    if token.reason is CancelReason.SHUTDOWN and unfinished:
        return _GivenBack("The engine stopped during the last attempt; it was not counted.")
    if timed_out and unfinished:
        late = _listed([run.name for run in runs if run.status is PluginStatus.TIMED_OUT])
        reason = f"The analysis timeout of {task.timeout_s:g} s ended it{f' during {late}' if late else ''}."
        return _outcome(TaskState.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT, reason, runs)
    failed = [run for run in runs if run.status is PluginStatus.FAILED]
    if failed and len(failed) == len(runs):
        return _outcome(TaskState.FAILED, EndedBy.PLUGIN_ERROR, f"Every plugin failed: {_explained(failed)}.", runs)
    return _outcome(TaskState.COMPLETED, EndedBy.FINISHED, _finished_reason(runs, failed), runs)


def _outcome(state: TaskState, ended_by: EndedBy, reason: str, runs: tuple[PluginRun, ...]) -> Outcome:
    return Outcome(state, ended_by, reason, worst(run.verdict for run in runs if run.verdict is not None), runs)


def _finished_reason(runs: tuple[PluginRun, ...], failed: list[PluginRun]) -> str:
    if not any(run.results for run in runs):
        return "Finished with no results."
    if failed:
        return f"Finished; {len(failed)} of {len(runs)} plugins failed: {_explained(failed)}."
    return "Finished."


def _explained(runs: list[PluginRun]) -> str:
    return "; ".join(f"{run.name}: {run.reason.rstrip('.')}" for run in runs)


def _listed(names: list[str]) -> str:
    return ", ".join(names)
