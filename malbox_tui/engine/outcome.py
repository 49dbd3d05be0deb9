"""What an attempt comes to: decided here from what happened, in one place, before it is written."""

from __future__ import annotations

from dataclasses import dataclass

from malbox_tui.engine.attempt_time import Reached
from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.model.due import TimeLimit
from malbox_tui.model.errors import GuestUnreachable, MachineError
from malbox_tui.model.report import PluginRun, PluginStatus, worst
from malbox_tui.model.task import EndedBy, Outcome, Task, TaskState

_UNFINISHED = (PluginStatus.CANCELED, PluginStatus.TIMED_OUT)
_BROKEN = (PluginStatus.FAILED, PluginStatus.TIMED_OUT)
"""Of plugins of a task that goes to its end: those that reached a limit of their own are among them."""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The attempt was interrupted and is not counted; `avoid` is the machine that failed it, if one did."""

    reason: str
    avoid: str | None = None


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Another attempt owns the task: nothing is recorded."""


Conclusion = Outcome | GivenBack | TakenOver


@dataclass(frozen=True, slots=True)
class Happened:
    """What an attempt saw: the runs of its plugins, which time limit it reached, how its guest was lost, and whether something that did
    not end was cut, and left no run.

    `required` are the plugins without which the task is worth nothing, those included whose results they need. `not_run`: why its
    sample could not be run in its guest, in a sentence. `remarks`: what else is to be said when it is finished. `has_watched`: its
    guest was watched on after its sample had ended. `doing`: what it was at, after "while".
    """

    runs: tuple[PluginRun, ...] = ()
    reached: Reached | None = None
    lost: GuestUnreachable | None = None
    is_cut: bool = False
    required: frozenset[str] = frozenset()
    not_run: str = ""
    remarks: tuple[str, ...] = ()
    has_watched: bool = False
    doing: str = ""


def conclude(task: Task, token: CancelToken, happened: Happened) -> Conclusion:
    """What the attempt comes to. A person's cancel goes before all else; a shutdown undoes neither finished work nor a limit that was
    reached before it."""
    runs = happened.runs
    ran = [run for run in runs if run.status is not PluginStatus.SKIPPED]
    unfinished = happened.is_cut or not runs or any(run.status in _UNFINISHED and not run.subject for run in runs)
    unfinished_by_stop = unfinished and happened.reached is None
    if (told := _told_to_end(token, runs, unfinished=unfinished_by_stop, doing=happened.doing)) is not None:
        return told
    if happened.reached is not None and unfinished:
        return _timed_out(happened.reached, runs)
    if happened.lost is not None:
        return outcome(TaskState.FAILED, EndedBy.GUEST_LOST, f"The guest was lost: {happened.lost.problem}.", runs)
    if happened.not_run:
        return outcome(TaskState.FAILED, EndedBy.PLUGIN_ERROR, happened.not_run, runs)
    on_sample = [run for run in ran if not run.subject]
    failed = [run for run in on_sample if run.status is PluginStatus.FAILED]
    if missed := [run for run in on_sample if run.name in happened.required and run.status in _BROKEN]:
        kind = "A required plugin" if len(missed) == 1 else "Required plugins"
        return outcome(TaskState.FAILED, EndedBy.PLUGIN_ERROR, f"{kind} failed: {_explained(missed)}.", runs)
    if failed and len(failed) == len(on_sample) and not happened.required:
        return outcome(TaskState.FAILED, EndedBy.PLUGIN_ERROR, f"Every plugin failed: {_explained(failed)}.", runs)
    reason = " ".join((_finished_reason(runs, ran), *happened.remarks))
    if happened.reached is not None and happened.has_watched:
        reason += f" Its machine was watched {_how_long(happened.reached)}."
    return outcome(TaskState.COMPLETED, EndedBy.FINISHED, reason, runs)


def conclude_machine_failure(task: Task, token: CancelToken, error: MachineError, max_attempts: int) -> Conclusion:
    """The task's machine failed before the sample ran: another one is tried, up to `max_attempts` in all."""
    if (told := _told_to_end(token, (), unfinished=True)) is not None:
        return told
    tried = len(task.requires.avoid) + 1
    if tried < max_attempts:
        return GivenBack(f"{_sentence(error)} Another machine is to serve it.", avoid=task.machine)
    by = EndedBy.GUEST_NEVER_UP if isinstance(error, GuestUnreachable) else EndedBy.MACHINE_FAILED
    return outcome(
        TaskState.FAILED, by, f"{_sentence(error)} That was failure {tried} of {max_attempts}; it is not tried again.", ()
    )


def conclude_rerouted(token: CancelToken, reason: str) -> Conclusion:
    """The task is to be served otherwise; `reason` says why, in a sentence."""
    return _told_to_end(token, (), unfinished=True) or GivenBack(reason)


def conclude_cut(task: Task, token: CancelToken, reached: Reached | None) -> Conclusion:
    """The batch of the attempt was cut because of another task in it, which alone bears it."""
    told = conclude(task, token, Happened((), reached)) if reached is not None else _told_to_end(token, (), unfinished=True)
    return told or GivenBack("Another task of its batch did not end in time, and the batch was cut; the attempt was not counted.")


def conclude_failure(token: CancelToken, state: Outcome, doing: str = "") -> Conclusion:
    """The attempt can't go on and ends as `state`, unless it was to end before."""
    told = _told_to_end(token, (), unfinished=True, doing=doing)
    return state if told is None else told


def outcome(state: TaskState, ended_by: EndedBy, reason: str, runs: tuple[PluginRun, ...]) -> Outcome:
    """An outcome whose verdict is the worst of the runs'."""
    return Outcome(state, ended_by, reason, worst(run.verdict for run in runs if run.verdict is not None), runs)


def canceled(token: CancelToken, runs: tuple[PluginRun, ...], doing: str = "") -> Outcome:
    """The outcome of a task that a person canceled; `token` says who, `doing` what it was at."""
    by = f" by {token.detail}" if token.detail else ""
    at = f" while {doing}" if doing else ""
    return outcome(TaskState.CANCELED, EndedBy.USER, f"Canceled{by}{at}.", runs)


def _told_to_end(token: CancelToken, runs: tuple[PluginRun, ...], *, unfinished: bool, doing: str = "") -> Conclusion | None:
    if token.reason is CancelReason.LEASE_LOST:
        return TakenOver()
    if token.reason is CancelReason.USER:
        return canceled(token, runs, doing)
    if token.reason is CancelReason.SHUTDOWN and unfinished:
        return GivenBack("The engine stopped during the last attempt; it was not counted.")
    return None


_ENDS = {TimeLimit.ANALYSIS: EndedBy.ANALYSIS_TIMEOUT, TimeLimit.CRITICAL: EndedBy.CRITICAL_TIMEOUT}


def _timed_out(reached: Reached, runs: tuple[PluginRun, ...]) -> Outcome:
    """What its plugins found until then is kept."""
    late = ", ".join(run.name for run in runs if run.status is PluginStatus.TIMED_OUT and not run.subject)
    during = f" during {late}" if late else ""
    match reached.limit:
        case TimeLimit.ANALYSIS:
            what = f"The analysis timeout of {reached.seconds:g} s ended it{during}."
        case TimeLimit.CRITICAL:
            what = f"The critical timeout of {reached.seconds:g} s for the whole attempt ended it{during}."
        case _:
            what = f"It was still {reached.limit} after {reached.seconds:g} s, which is as long as that may take."
    return outcome(TaskState.TIMED_OUT, _ENDS.get(reached.limit, EndedBy.STAGE_TIMEOUT), what, runs)


def _how_long(reached: Reached) -> str:
    if reached.limit is TimeLimit.CRITICAL:
        return f"until the critical timeout of {reached.seconds:g} s for the whole attempt"
    return f"for the whole {reached.seconds:g} s"


def _finished_reason(runs: tuple[PluginRun, ...], ran: list[PluginRun]) -> str:
    if runs and not ran:
        return f"Finished with no results: no plugin took part. {'; '.join(f'{run.name}: {run.reason}' for run in runs)}"
    if not any(run.results for run in ran):
        return "Finished with no results."
    failed = [run for run in ran if run.status is PluginStatus.FAILED]
    on_sample = [run for run in failed if not run.subject]
    elsewhere = [run for run in failed if run.subject]
    of_all = sum(not run.subject for run in ran)
    remarks = [f"{len(on_sample)} of {of_all} plugins failed: {_explained(on_sample)}"] if on_sample else []
    remarks += [f"what was collected could not be looked at whole: {_explained(elsewhere)}"] if elsewhere else []
    remarks += [f"{_named(run)} is {run.reason.rstrip('.')}" for run in ran if run.is_degraded]
    return f"{'; '.join(('Finished', *remarks))}."


def _explained(runs: list[PluginRun]) -> str:
    return "; ".join(f"{_named(run)}: {run.reason.rstrip('.')}" for run in runs)


def _named(run: PluginRun) -> str:
    return f"{run.name} on {run.subject}" if run.subject else run.name


def _sentence(error: Exception) -> str:
    return f"{str(error).rstrip('.')}."
