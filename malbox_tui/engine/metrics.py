"""Counts that follow from events alone: folding the stored events of a task gives the same counts as its row."""

from __future__ import annotations

from collections import Counter

from malbox_tui.model.events import (
    Event,
    EventBody,
    SampleRemoved,
    TaskCanceled,
    TaskCompleted,
    TaskCreated,
    TaskFailed,
    TaskGivenBack,
    TaskStageChanged,
    TaskStarting,
    TaskTimedOut,
)
from malbox_tui.model.task import TaskState

_ENDS: dict[type, TaskState] = {
    TaskCompleted: TaskState.COMPLETED,
    TaskFailed: TaskState.FAILED,
    TaskTimedOut: TaskState.TIMED_OUT,
    TaskCanceled: TaskState.CANCELED,
}


class TaskCounts:
    """How many tasks are in each state. Remembers the states of owned tasks only: few, however many there are in all."""

    def __init__(self, counts: dict[TaskState, int], owned: dict[int, TaskState]) -> None:
        self._counts = {state: counts.get(state, 0) for state in TaskState}
        self._owned = dict(owned)

    def by_state(self) -> dict[TaskState, int]:
        """A copy of the counts; every state is there."""
        return dict(self._counts)

    def is_owned(self, task_id: int) -> bool:
        """Whether an attempt owns the task, by the events so far."""
        return task_id in self._owned

    def apply(self, body: EventBody) -> None:
        """Count one event; those that move no task change nothing."""
        if isinstance(body, TaskCreated):
            self._counts[TaskState.PENDING] += 1
        elif isinstance(body, TaskStarting):
            self._move(body.task_id, TaskState.INITIALIZING)
        elif isinstance(body, TaskStageChanged):
            self._move(body.task_id, body.state)
        elif isinstance(body, TaskGivenBack):
            self._move(body.task_id, TaskState.PENDING)
        elif isinstance(body, SampleRemoved):
            for state, count in body.states.items():
                self._counts[state] -= count
        elif isinstance(body, TaskCompleted | TaskFailed | TaskTimedOut | TaskCanceled):
            self._move(body.task_id, _ENDS[type(body)])

    def _move(self, task_id: int, state: TaskState) -> None:
        self._counts[self._owned.pop(task_id, TaskState.PENDING)] -= 1
        self._counts[state] += 1
        if state.is_owned:
            self._owned[task_id] = state


class Throughput:
    """How many tasks ended in each of the latest minutes."""

    def __init__(self, minutes: int = 15) -> None:
        self._minutes = minutes
        self._ended: Counter[int] = Counter()

    def apply(self, event: Event) -> None:
        """Count one event, by its own time; those that end no task change nothing."""
        if type(event.body) in _ENDS:
            self._ended[int(event.at // 60)] += 1

    def per_minute(self, now: float) -> tuple[int, ...]:
        """The counts, the current minute last; minutes long past are forgotten."""
        current = int(now // 60)
        for minute in [minute for minute in self._ended if minute <= current - self._minutes]:
            del self._ended[minute]
        return tuple(self._ended[minute] for minute in range(current - self._minutes + 1, current + 1))
