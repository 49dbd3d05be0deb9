"""The picture of the moment, folded from an overview and the events after it. Pure: the same events give the same picture.

It holds little, however many tasks there are: the workers, the tasks that somebody works on or that ended lately, the latest lines of
the log. The task table asks the engine for its window instead.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from malbox_tui.model import events as news
from malbox_tui.model.machine import OUT_OF_SERVICE, MachineState
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import ResultRef, Verdict
from malbox_tui.model.sample import escape
from malbox_tui.model.submission import Refused
from malbox_tui.model.task import TaskState
from malbox_tui.tui.event_words import LogLine, log_line, machine_line

KEPT_TASKS = 500
KEPT_LINES = 1000
NAMED_REFUSALS = 50
"""So many of one submission are named in the log, so that a folder of them leaves room for the rest."""

_ENDS: dict[type, TaskState] = {
    news.TaskCompleted: TaskState.COMPLETED,
    news.TaskFailed: TaskState.FAILED,
    news.TaskTimedOut: TaskState.TIMED_OUT,
    news.TaskCanceled: TaskState.CANCELED,
}

_MAKES_TASKS_WAIT = (
    news.TaskPriorityChanged,
    news.TaskProfileChanged,
    news.MachineChanged,
    news.WorkerStarted,
    news.WorkerStopped,
    news.GroupResized,
    news.PoolPaused,
    news.PoolResumed,
    news.StoreFailing,
    news.StoreWorks,
    news.EngineStopping,
)
"""News after which tasks that wait may do so at another place, or for another reason."""


class Span(msgspec.Struct, gc=False):
    """Time that a task spent in one state; `end` is None while it is in it."""

    state: TaskState
    start: float
    end: float | None = None


@dataclass(slots=True)
class PluginWork:
    """One plugin's work on one task, as far as it is known. `waits` says when it begins, or why it doesn't; empty: it has begun."""

    name: str
    started_at: float
    fraction: float | None = None
    message: str = ""
    outcome: str | None = None
    seconds: float | None = None
    waits: str = ""


@dataclass(slots=True)
class LiveTask:
    """A task that something happens to, or happened lately. `name` is escaped; `machine` is the one that serves it."""

    id: int
    name: str
    state: TaskState
    spans: list[Span] = field(default_factory=list)
    worker: str | None = None
    verdict: Verdict | None = None
    machine: str | None = None
    plugins: dict[str, PluginWork] = field(default_factory=dict)
    screenshot: ResultRef | None = None
    screenshot_at: float = 0.0
    """The latest picture of its machine's screen that was told of, and when that was."""

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


class LivePicture:
    """What the dashboard shows. Nothing but its own methods changes it."""

    def __init__(self, notes: Sequence[str] = (), about: str = "configuration") -> None:
        """`notes` are sentences on how it began, and `about` what they are about; they are the first lines of the log."""
        self._notes = tuple(notes)
        self._about = about
        self.overview: Overview | None = None
        self.tasks: OrderedDict[int, LiveTask] = OrderedDict()
        """By id, in the order in which they came."""
        self.log: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._out_of_service: set[str] = set()
        """Machines that were, and have not been ready since."""
        self.gaps = 0
        """How often news was lost because the console was too slow; everything was read anew then."""

    def seed(self, overview: Overview, records: Iterable[TaskRecord]) -> None:
        """Begin from what the engine says of itself and of the tasks at work and ended lately."""
        self.overview = overview
        self.log.extend(LogLine(overview.clock, "late", self._about, note) for note in reversed(self._notes))
        self._notes = ()
        self._out_of_service = {machine.name for machine in overview.machines if machine.state in OUT_OF_SERVICE}
        self.tasks.clear()
        for record in sorted(records, key=lambda record: record.task.id):
            self.tasks[record.task.id] = _from_record(record)

    def see(self, overview: Overview) -> None:
        """A newer overview."""
        self.overview = overview

    def unknown_tasks(self) -> tuple[int, ...]:
        """Tasks at work that are not known: they waited among so many that they were not kept."""
        if self.overview is None:
            return ()
        held = (task_id for worker in self.overview.workers for task_id in worker.task_ids)
        return tuple(task_id for task_id in held if task_id not in self.tasks)

    def learn(self, records: Iterable[TaskRecord]) -> None:
        """Add those of these tasks that are at work and were not known."""
        for record in records:
            if record.task.id not in self.tasks and record.task.state.is_owned:
                self._add(_from_record(record))

    def note_refused(self, at: float, refused: Sequence[Refused]) -> None:
        """What was not taken, and why, in the log; of many the first ones."""
        if (more := len(refused) - NAMED_REFUSALS) > 0:
            self.log.append(LogLine(at, "bad", f"{more} more refused"))
        for receipt in reversed(refused[:NAMED_REFUSALS]):
            self.log.append(LogLine(at, "bad", "refused", f"{escape(receipt.name.name)}: {receipt.refusal.reason}"))

    def apply(self, event: news.Event) -> bool:
        """Fold one event in; True when tasks may have come, gone, moved in an order, or wait for another reason."""
        body = event.body
        self._log(event)
        if isinstance(body, _MAKES_TASKS_WAIT):
            return True
        if isinstance(body, news.TaskCreated):
            self._add(LiveTask(body.task_id, body.name, TaskState.PENDING, [Span(TaskState.PENDING, event.at)]))
            return True
        task_id = getattr(body, "task_id", None)
        if task_id is None or (task := self.tasks.get(task_id)) is None:
            return task_id is not None and type(body) in _ENDS
        return self._apply_to(task, event)

    def recall(self, event: news.Event) -> None:
        """Add an event to the log that is older than what the picture was begun from."""
        self._log(event)

    def _log(self, event: news.Event) -> None:
        body = event.body
        if isinstance(body, news.MachineChanged):
            line = machine_line(event.at, body, came_back=body.machine in self._out_of_service)
            if body.state in OUT_OF_SERVICE:
                self._out_of_service.add(body.machine)
            elif body.state is MachineState.READY:
                self._out_of_service.discard(body.machine)
        else:
            line = log_line(event)
        if line is not None:
            self.log.append(line)

    def _apply_to(self, task: LiveTask, event: news.Event) -> bool:
        body, at = event.body, event.at
        if isinstance(body, news.TaskStarting):
            task.worker, task.machine = body.worker, body.machine
            task.plugins.clear()
            task.screenshot = None
            task.move(TaskState.INITIALIZING, at)
        elif isinstance(body, news.TaskStageChanged):
            task.move(body.state, at)
        elif isinstance(body, news.TaskGivenBack):
            task.worker = task.machine = None
            task.move(TaskState.PENDING, at)
        elif isinstance(body, news.TaskCompleted | news.TaskFailed | news.TaskTimedOut | news.TaskCanceled):
            task.verdict = body.verdict
            task.move(_ENDS[type(body)], at)
        elif isinstance(body, news.PluginsPlanned):
            task.plugins = {step.plugin: PluginWork(step.plugin, at, waits=_planned(step)) for step in body.steps}
            return False
        elif isinstance(body, news.PluginStarted):
            task.plugins[body.plugin] = PluginWork(body.plugin, at)
        elif isinstance(body, news.PluginProgress):
            if (work := task.plugins.get(body.plugin)) is not None:
                work.fraction, work.message = body.fraction, body.message
            return False
        elif isinstance(body, news.ScreenshotTaken):
            task.screenshot, task.screenshot_at = body.result, at
            return False
        elif isinstance(body, news.PluginStopped):
            if (work := task.plugins.get(body.plugin)) is not None:
                work.outcome, work.seconds, work.waits = body.status.value, body.seconds, ""
                work.message = body.reason
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


def _planned(step: news.PlannedStep) -> str:
    return f"runs {step.when}" if step.takes_part else f"left out: {step.when}"


def _from_record(record: TaskRecord) -> LiveTask:
    task = record.task
    name = escape(record.sample.names[0].name) if record.sample.names else record.sample.sha256[:12]
    live = LiveTask(task.id, name, task.state, worker=task.worker, verdict=task.verdict)
    live.machine = task.machine
    at = task.stage_since
    live.spans.append(Span(task.state, at, task.finished_at))
    for state in reversed(TaskState):
        spent = task.stages.get(state.value)
        if spent is not None and not state.is_final and state is not task.state:
            live.spans.insert(0, Span(state, at - spent, at))
            at -= spent
    return live
