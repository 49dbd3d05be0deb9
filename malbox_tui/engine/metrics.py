"""Counts that follow from events alone: folding the stored events of a task gives the same counts as its row."""

from __future__ import annotations

from malbox_tui.model.events import (
    EventBody,
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
        elif isinstance(body, TaskCompleted | TaskFailed | TaskTimedOut | TaskCanceled):
            self._move(body.task_id, _ENDS[type(body)])

    def _move(self, task_id: int, state: TaskState) -> None:
        self._counts[self._owned.pop(task_id, TaskState.PENDING)] -= 1
        self._counts[state] += 1
        if state.is_owned:
            self._owned[task_id] = state
