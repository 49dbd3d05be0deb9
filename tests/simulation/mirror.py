"""What the events say: the state that whoever only reads events has of tasks, workers, machines and groups.

Task events are read when they are committed, and no move that the table doesn't have is among them, so a final state never changes.
News of workers, machines and groups is read when it is handed to the store: one that the store can't take is lost to readers, and says
nothing wrong about the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from malbox_tui.model import events as news
from malbox_tui.model.events import Event, EventBody
from malbox_tui.model.machine import BUSY_STATES, MACHINE_MOVES, MachineState, MachineTrigger
from malbox_tui.model.report import Verdict
from malbox_tui.model.task import TRANSITIONS, EndedBy, Task, TaskState, Trigger
from malbox_tui.model.worker import StopReason, WorkerKind
from tests.simulation import hits
from tests.simulation.violation import Violation

_TASK_TRIGGERS: dict[tuple[TaskState, TaskState], Trigger] = {(state, after): why for (state, why), after in TRANSITIONS.items()}
_MACHINE_TRIGGERS: dict[tuple[MachineState, MachineState], MachineTrigger] = {
    (state, after): why for (state, why), after in MACHINE_MOVES.items()
}

_ENDS: dict[type, TaskState] = {
    news.TaskCompleted: TaskState.COMPLETED,
    news.TaskFailed: TaskState.FAILED,
    news.TaskTimedOut: TaskState.TIMED_OUT,
    news.TaskCanceled: TaskState.CANCELED,
}


@dataclass(slots=True)
class ToldTask:
    """A task as its events tell it."""

    state: TaskState
    sha256: str
    priority: int
    retry_of: int | None
    worker: str | None = None
    machine: str | None = None
    ended_by: EndedBy | None = None
    reason: str | None = None
    verdict: Verdict | None = None
    crashes: int | None = None


@dataclass(slots=True)
class Mirror:
    """The events so far. `changed` holds the tasks that moved since somebody emptied it."""

    hits: hits.Hits
    tasks: dict[int, ToldTask] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)
    pending: dict[int, None] = field(default_factory=dict)
    """Those of `tasks` that are pending, in the order they became so."""
    workers: dict[str, WorkerKind] = field(default_factory=dict)
    machines: dict[str, tuple[MachineState, int | None]] = field(default_factory=dict)
    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
    paused: bool = False
    last_seq: int = 0

    def forget_engine(self) -> None:
        """A new epoch begins: workers, machines and limits are told anew."""
        self.workers.clear()
        self.machines.clear()
        self.limits.clear()
        self.paused = False

    def commit(self, event: Event) -> None:
        """Read one committed event. Raises `Violation`."""
        if event.position.seq != self.last_seq + 1:
            raise Violation("events are numbered one by one", f"{event} came after number {self.last_seq}")
        self.last_seq = event.position.seq
        body = event.body
        match body:
            case news.TaskCreated():
                if body.task_id in self.tasks:
                    raise Violation("a task is created once", f"{body}")
                self.tasks[body.task_id] = ToldTask(TaskState.PENDING, body.sha256, body.priority, body.retry_of)
                self.pending[body.task_id] = None
                self.changed.add(body.task_id)
            case news.TaskStarting():
                told = self._move(body, TaskState.INITIALIZING)
                told.worker, told.machine, told.reason = body.worker, body.machine, None
            case news.TaskStageChanged():
                # A task that is given up has a crash more, which no event tells before its end.
                self._move(body, body.state).crashes = None
            case news.TaskGivenBack():
                told = self._move(body, TaskState.PENDING)
                self.hits[hits.REROUTED] += ": it is to be served as " in body.reason
                told.worker, told.machine, told.crashes, told.reason = None, None, body.crashes, body.reason
            case news.TaskProfileChanged() | news.TaskChanged():
                self.changed.add(body.task_id)
            case news.TaskPriorityChanged():
                self.tasks[body.task_id].priority = body.priority
                self.changed.add(body.task_id)
            case news.TaskCompleted() | news.TaskFailed() | news.TaskTimedOut() | news.TaskCanceled():
                told = self._move(body, _ENDS[type(body)])
                told.ended_by, told.reason, told.verdict = body.ended_by, body.reason, body.verdict
                if body.ended_by in hits.LIMITS:
                    self.hits[hits.limit(body.ended_by)] += 1
                if " was watched for the whole " in body.reason:
                    self.hits[hits.WATCHED] += 1
                told.crashes = None
            case _:
                pass

    def hear(self, body: EventBody) -> None:
        """Read news of workers, machines and groups as it is handed to the store. Raises `Violation`."""
        match body:
            case news.WorkerStarted():
                self.workers[body.worker] = body.kind
            case news.WorkerChanged():
                self.workers[body.worker] = body.kind
            case news.WorkerStopped():
                kind = self.workers.pop(body.worker, None)
                if kind is None:
                    raise Violation("a worker stops once", f"{body}")
                if kind is WorkerKind.BASELINE and body.reason is StopReason.IDLE:
                    raise Violation("a baseline worker never idles out", f"{body}")
            case news.GroupResized():
                if not 0 <= body.min_workers <= body.max_workers <= 1024:
                    raise Violation("limits that make no sense are refused", f"{body}")
                self.limits[body.group] = (body.min_workers, body.max_workers)
            case news.MachineChanged():
                self._move_machine(body)
            case news.PoolPaused():
                self.paused = True
            case news.PoolResumed():
                self.paused = False
            case _:
                pass

    def machine_state(self, name: str) -> MachineState:
        """What a machine is at; one of which nothing was told yet is being reverted."""
        return self.machines.get(name, (MachineState.REVERTING, None))[0]

    def _move(
        self, body: news.TaskStarting | news.TaskStageChanged | news.TaskGivenBack | news.TaskEnded, after: TaskState
    ) -> ToldTask:
        told = self.tasks[body.task_id]
        trigger = _TASK_TRIGGERS.get((told.state, after))
        if trigger is None:
            what = "a final state never changes" if told.state.is_final else "a task moves as the table says"
            raise Violation(what, f"task {body.task_id} went from {told.state} to {after}: {body}")
        self.hits[hits.task_move(told.state, trigger)] += 1
        told.state = after
        if after is TaskState.PENDING:
            self.pending[body.task_id] = None
        else:
            self.pending.pop(body.task_id, None)
        self.changed.add(body.task_id)
        return told

    def _move_machine(self, body: news.MachineChanged) -> None:
        state, held_by = self.machines.get(body.machine, (MachineState.REVERTING, None))
        trigger = _MACHINE_TRIGGERS.get((state, body.state))
        if trigger is None:
            raise Violation("a machine moves as its table says", f"it was {state}: {body}")
        self.hits[hits.machine_move(state, trigger)] += 1
        if body.state in BUSY_STATES:
            if held_by is not None and body.task_id != held_by:
                raise Violation("a machine serves one task at a time", f"task {held_by} held it: {body}")
            if any(name != body.machine and task_id == body.task_id for name, (_, task_id) in self.machines.items()):
                raise Violation("a task holds one machine at a time", f"{body}, beside {self.machines}")
            self.machines[body.machine] = (body.state, body.task_id)
        else:
            self.machines[body.machine] = (body.state, None)


def disagreement(told: ToldTask, row: Task) -> str | None:
    """Where a task's row differs from what its events tell; None when it doesn't."""
    pairs = {
        "state": (told.state, row.state),
        "priority": (told.priority, row.priority),
        "sha256": (told.sha256, row.sha256),
        "retry_of": (told.retry_of, row.retry_of),
        "worker": (told.worker, row.worker) if row.state.is_owned else (None, None),
        "machine": (told.machine, row.machine) if row.state.is_owned else (None, None),
        "ended_by": (told.ended_by, row.ended_by),
        "verdict": (told.verdict, row.verdict),
        "reason": (told.reason, row.reason) if told.reason is not None else (None, None),
        "crashes": (told.crashes, row.crashes) if told.crashes is not None else (None, None),
    }
    wrong = [f"{name} is {actual!r}, events say {said!r}" for name, (said, actual) in pairs.items() if said != actual]
    return "; ".join(wrong) or None
