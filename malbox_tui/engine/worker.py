"""A worker: a loop that takes tasks from the queue and drives each through one attempt.

It waits for work without polling. It looks at the queue before it waits and before it leaves, and both looks are in one step with
what follows, so no wake-up is lost. What it does when is decided here; who may start and stay is decided in `worker_pool`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol
from uuid import uuid4

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.model.worker import StopReason, WorkerKind, WorkerState, WorkerView
from malbox_tui.ports import PendingEntry


class Wake(Enum):
    """Why a waiting worker was woken."""

    LOOK_AGAIN = auto()
    """Something changed: a task came, the pool was resized, resumed or told to stop."""
    IDLE_TIMEOUT = auto()


class Crew(Protocol):
    """What a worker needs of its pool."""

    def must_leave(self, worker: Worker) -> StopReason | None:
        """Whether the worker is to go now: it was asked to, or there are more workers than may be."""
        ...

    def take(self, worker: Worker) -> PendingEntry | None:
        """The next task for this worker, which is busy from this moment on."""
        ...

    def has_work(self, worker: Worker) -> bool:
        """Whether `take` would give something now."""
        ...

    async def wait(self, worker: Worker) -> Wake:
        """Until there may be something to do, or the worker's idle time is over."""
        ...

    async def attempt(self, worker: Worker, entry: PendingEntry) -> bool:
        """Drive the task through one attempt; False if another worker had it."""
        ...

    def finished(self, worker: Worker) -> None:
        """The worker holds nothing any more."""
        ...


class Worker:
    """One member of a worker group."""

    def __init__(self, group: str, kind: WorkerKind, token: CancelToken, at: float) -> None:
        self.id = str(uuid4())
        self.group = group
        self.kind = kind
        self.token = token
        self.started_at = at
        self.since = at
        self.idle_since = clock.monotonic()
        self.task_id: int | None = None
        self.leaving: StopReason | None = None
        self.tasks_done = 0

    def __repr__(self) -> str:
        return f"<Worker {self.id[:8]} {self.kind} {self.state} task {self.task_id}>"

    @property
    def state(self) -> WorkerState:
        """Busy from the step in which it took a task until the step in which it holds none."""
        if self.leaving is not None:
            return WorkerState.LEAVING
        return WorkerState.IDLE if self.task_id is None else WorkerState.BUSY

    def view(self) -> WorkerView:
        """The worker as it is now."""
        return WorkerView(
            id=self.id,
            group=self.group,
            kind=self.kind,
            state=self.state,
            since=self.since,
            started_at=self.started_at,
            task_ids=() if self.task_id is None else (self.task_id,),
            tasks_done=self.tasks_done,
        )

    async def run(self, crew: Crew) -> StopReason:
        """Work until there is a reason to leave; returns it. An error in an attempt ends the worker, never the task."""
        while True:
            if (reason := crew.must_leave(self)) is not None:
                return reason
            entry = crew.take(self)
            if entry is not None:
                try:
                    if await crew.attempt(self, entry):
                        self.tasks_done += 1
                finally:
                    crew.finished(self)
            elif await crew.wait(self) is Wake.IDLE_TIMEOUT and not crew.has_work(self):
                return StopReason.IDLE
