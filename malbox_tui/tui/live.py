"""The picture of the moment, folded from an overview and the events after it. Pure: the same events give the same picture.

It holds little, however many tasks there are: the workers, the tasks that somebody works on or that ended lately, the latest lines of
the log. The task table asks the engine for its window instead.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from malbox_tui.model import events as news
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Verdict
from malbox_tui.model.sample import escape
from malbox_tui.model.task import TaskState

KEPT_TASKS = 500
KEPT_LINES = 1000

_ENDS: dict[type, TaskState] = {
    news.TaskCompleted: TaskState.COMPLETED,
    news.TaskFailed: TaskState.FAILED,
    news.TaskTimedOut: TaskState.TIMED_OUT,
    news.TaskCanceled: TaskState.CANCELED,
}


class Span(msgspec.Struct, gc=False):
    """Time that a task spent in one state; `end` is None while it is in it."""

    state: TaskState
    start: float
    end: float | None = None


@dataclass(slots=True)
class PluginWork:
    """One plugin's work on one task, as far as it is known."""

    name: str
    started_at: float
    fraction: float | None = None
    message: str = ""
    outcome: str | None = None
    seconds: float | None = None


@dataclass(slots=True)
class LiveTask:
    """A task that something happens to, or happened lately. `name` is escaped."""

    id: int
    name: str
    state: TaskState
    spans: list[Span] = field(default_factory=list)
    worker: str | None = None
    timeout_s: float | None = None
    verdict: Verdict | None = None
    plugins: dict[str, PluginWork] = field(default_factory=dict)

    @property
    def since(self) -> float:
        """When it entered its state."""
        return self.spans[-1].start if self.spans else 0.0

    def move(self, state: TaskState, at: float) -> None:
        """Enter a state."""
        if self.spans:
            self.spans[-1].end = at
        self.spans.append(Span(state, at, at if state.is_final else None))
        self.state = state


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the event log. `subject` is ours, `detail` may be foreign text."""

    at: float
    tone: str
    subject: str
    detail: str = ""


class LivePicture:
    """What the dashboard shows. `apply` and `seed` are the only ways to change it."""

    def __init__(self) -> None:
        self.overview: Overview | None = None
        self.tasks: OrderedDict[int, LiveTask] = OrderedDict()
        """By id, in the order in which they came."""
        self.log: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self.gaps = 0
        """How often news was lost because the console was too slow; everything was read anew then."""

    def seed(self, overview: Overview, records: Iterable[TaskRecord]) -> None:
        """Begin from what the engine says of itself and of the tasks at work and ended lately."""
        self.overview = overview
        self.tasks.clear()
        for record in sorted(records, key=lambda record: record.task.id):
            self.tasks[record.task.id] = _from_record(record)

    def see(self, overview: Overview) -> None:
        """A newer overview."""
        self.overview = overview

    def apply(self, event: news.Event) -> bool:
        """Fold one event in; True when tasks may have come, gone or moved in an order."""
        body = event.body
        line = _line(event)
        if line is not None:
            self.log.append(line)
        if isinstance(body, news.TaskCreated):
            self._add(LiveTask(body.task_id, body.name, TaskState.PENDING, [Span(TaskState.PENDING, event.at)]))
            return True
        task_id = getattr(body, "task_id", None)
        if isinstance(body, news.TaskPriorityChanged):
            return True
        if task_id is None or (task := self.tasks.get(task_id)) is None:
            return task_id is not None and type(body) in _ENDS
        return self._apply_to(task, event)

    def _apply_to(self, task: LiveTask, event: news.Event) -> bool:
        body, at = event.body, event.at
        if isinstance(body, news.TaskStarting):
            task.worker = body.worker
            task.plugins.clear()
            task.move(TaskState.INITIALIZING, at)
        elif isinstance(body, news.TaskStageChanged):
            task.move(body.state, at)
        elif isinstance(body, news.TaskGivenBack):
            task.worker = None
            task.move(TaskState.PENDING, at)
        elif isinstance(body, news.TaskCompleted | news.TaskFailed | news.TaskTimedOut | news.TaskCanceled):
            task.verdict = body.verdict
            task.move(_ENDS[type(body)], at)
        elif isinstance(body, news.PluginStarted):
            task.plugins[body.plugin] = PluginWork(body.plugin, at)
        elif isinstance(body, news.PluginProgress):
            if (work := task.plugins.get(body.plugin)) is not None:
                work.fraction, work.message = body.fraction, body.message
            return False
        elif isinstance(body, news.PluginStopped):
            if (work := task.plugins.get(body.plugin)) is not None:
                work.outcome, work.seconds = body.status.value, body.seconds
            return False
        else:
            return False
        return True

    def _add(self, task: LiveTask) -> None:
        self.tasks[task.id] = task
        if len(self.tasks) > KEPT_TASKS:
            ended = next((kept.id for kept in self.tasks.values() if kept.state.is_final), None)
            waiting = next((kept.id for kept in reversed(self.tasks.values()) if kept.state is TaskState.PENDING), None)
            if (quiet := waiting if ended is None else ended) is not None:
                del self.tasks[quiet]


def _from_record(record: TaskRecord) -> LiveTask:
    task = record.task
    name = escape(record.sample.names[0].name) if record.sample.names else record.sample.sha256[:12]
    live = LiveTask(task.id, name, task.state, worker=task.worker, timeout_s=task.timeout_s, verdict=task.verdict)
    at = task.stage_since
    live.spans.append(Span(task.state, at, task.finished_at))
    for state in reversed(TaskState):
        spent = task.stages.get(state.value)
        if spent is not None and not state.is_final and state is not task.state:
            live.spans.insert(0, Span(state, at - spent, at))
            at -= spent
    return live


def _line(event: news.Event) -> LogLine | None:
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
        case news.TaskPriorityChanged():
            return LogLine(at, "muted", f"#{body.task_id} priority {body.priority}")
        case news.WorkerStarted():
            return LogLine(at, "accent", f"worker {body.worker[:8]} started", body.kind)
        case news.WorkerChanged():
            return LogLine(at, "accent", f"worker {body.worker[:8]} is {body.kind} now")
        case news.WorkerStopped():
            return LogLine(at, "accent", f"worker {body.worker[:8]} left", " ".join((body.reason, body.detail)).strip())
        case news.GroupResized():
            return LogLine(at, "accent", f"{body.group}: min {body.min_workers}, max {body.max_workers}")
        case news.PoolPaused():
            return LogLine(at, "late", "paused", body.reason)
        case news.PoolResumed():
            return LogLine(at, "good", "resumed")
        case news.EngineStarted():
            return LogLine(at, "accent", "engine started", f"{body.recovered} tasks recovered" if body.recovered else "")
        case news.EngineStopping():
            return LogLine(at, "late", f"engine stopping ({body.mode.replace('_', ' ')})")
        case _:
            return None
