"""The words of the event log: a line for what an operator wants to know of, nothing for what the other panes show better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from malbox_tui.model import events as news
from malbox_tui.model.machine import OUT_OF_SERVICE, MachineState
from malbox_tui.model.sample import visible
from malbox_tui.model.upkeep import Cause
from malbox_tui.model.worker import StopReason
from malbox_tui.tui.action_words import action_words

_LEFT: Mapping[StopReason, str] = MappingProxyType(
    {
        StopReason.REQUESTED: "the engine stops",
        StopReason.IDLE: "idle",
        StopReason.SURPLUS: "above max",
        StopReason.ERROR: "broken",
    }
)

_WHY_REMOVED: Mapping[Cause, str] = MappingProxyType(
    {Cause.PURGE: "somebody asked for it", Cause.AGE: "kept for long enough", Cause.SIZE: "to make room"}
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the event log. `subject` is ours, `detail` may be foreign text."""

    at: float
    tone: str
    subject: str
    detail: str = ""


def machine_line(at: float, body: news.MachineChanged, *, came_back: bool) -> LogLine | None:
    """What the log says of a machine: that it went out of service, failed a task, or came back after it was out of service."""
    name = f"machine {body.machine}"
    if body.state is MachineState.DISABLED:
        return LogLine(at, "late", f"{name} is out for maintenance", body.reason)
    if body.state in OUT_OF_SERVICE:
        return LogLine(at, "bad", f"{name} is {body.state}", body.reason)
    if body.state is MachineState.REVERTING and body.reason:
        return LogLine(at, "late", f"{name} failed", body.reason)
    if body.state is MachineState.READY and came_back:
        return LogLine(at, "good", f"{name} is back in service")
    return None


def log_line(event: news.Event) -> LogLine | None:
    """What the log says of an event; None: nothing. News of machines is told by `machine_line`."""
    body, at = event.body, event.at
    match body:
        case news.TaskCreated():
            return LogLine(at, "muted", f"#{body.task_id} added", body.name)
        case news.TaskCompleted() if body.verdict is not None and body.verdict.classification.severity >= 2:
            labels = ", ".join(body.verdict.labels)
            return LogLine(at, "bad", f"#{body.task_id} {body.verdict.classification}", labels)
        case news.TaskCompleted():
            return LogLine(at, "good", f"#{body.task_id} completed", "" if body.reason == "Finished." else body.reason)
        case news.TaskFailed():
            return LogLine(at, "bad", f"#{body.task_id} failed", body.reason)
        case news.TaskTimedOut():
            return LogLine(at, "late", f"#{body.task_id} timed out", body.reason)
        case news.TaskCanceled():
            return LogLine(at, "muted", f"#{body.task_id} canceled", body.reason)
        case news.TaskGivenBack():
            return LogLine(at, "late", f"#{body.task_id} given back", body.reason)
        case news.TaskProfileChanged():
            return LogLine(at, "muted", f"#{body.task_id} profile {body.profile or 'none'}")
        case news.TaskChanged():
            return LogLine(at, "muted", f"#{body.task_id} asks for {body.requires}, {body.timeout_s:g} s")
        case news.TaskIdentified():
            return LogLine(at, "muted", f"#{body.task_id} is {', '.join((body.kind, *body.tags))}")
        case news.TaskPriorityChanged():
            return LogLine(at, "muted", f"#{body.task_id} priority {body.priority}")
        case news.WorkerStarted():
            return LogLine(at, "accent", f"{body.group} worker {body.worker[:8]} started", body.kind)
        case news.WorkerChanged():
            return LogLine(at, "accent", f"worker {body.worker[:8]} is {body.kind} now")
        case news.WorkerStopped():
            why = _LEFT[body.reason]
            subject = f"{body.group} worker {body.worker[:8]} left"
            return LogLine(at, "accent", subject, f"{why}: {body.detail}" if body.detail else why)
        case news.GroupResized():
            return LogLine(at, "accent", f"{body.group}: min {body.min_workers}, max {body.max_workers}")
        case news.PoolPaused():
            return LogLine(at, "late", "no task is taken", body.reason)
        case news.StoreFailing():
            return LogLine(at, "bad", "the store takes nothing", body.problem)
        case news.StoreWorks():
            return LogLine(at, "good", "the store takes what it is given again")
        case news.PoolResumed():
            return LogLine(at, "good", "resumed")
        case news.ActionTaken():
            words = action_words(body.action, body.done_to, done=body.done)
            tone = "accent" if body.done else "late"
            return LogLine(at, tone, f"{visible(body.actor)} {words}", "" if body.done else body.message)
        case news.SampleRemoved() if body.cause is not Cause.PURGE:
            return LogLine(at, "muted", f"sample {visible(body.sha256[:12])} removed", _WHY_REMOVED[body.cause])
        case news.ResultsRemoved():
            which = f"#{body.task_ids[0]}" if len(body.task_ids) == 1 else f"{len(body.task_ids)} tasks"
            return LogLine(at, "muted", f"results of {which} removed", _WHY_REMOVED[body.cause])
        case news.EngineStarted():
            return LogLine(at, "accent", "engine started", f"{body.recovered} tasks recovered" if body.recovered else "")
        case news.ConfigReloaded():
            return LogLine(at, "accent", "the configuration was read again")
        case news.FolderTold():
            return LogLine(at, "late" if body.bad else "good", f"watched folder {visible(body.folder)}", body.message)
        case news.EngineStopping():
            return LogLine(at, "late", f"engine stopping ({body.mode.replace('_', ' ')})")
        case _:
            return None
