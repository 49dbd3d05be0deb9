"""A worker: a loop that drives the tasks it was handed, each through one attempt, and leaves when it is asked to or idles too long.

Who is handed what, and who is to leave, is decided in `worker_pool`, in one step with the state it is decided from. The worker holds a
task from that step on, so it is busy before it runs, and an idle timeout that fires in the same turn finds the task and stays.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol
from uuid import uuid4

from malbox_tui.engine import clock
from malbox_tui.engine.batch import Batch
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.machine import MachineLease
from malbox_tui.model.worker import StopReason, WorkerKind, WorkerState, WorkerView
from malbox_tui.ports import PendingEntry


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """A task for one worker, with what ends its attempt, the machine that is reserved for it (None for a host-only one), and the tasks
    that it runs together with, if any."""

    entry: PendingEntry
    token: CancelToken
    lease: MachineLease | None = None
    batch: Batch | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """What became of an assignment: whether this worker got the task, and what is to be queued again, if the task came back."""

    took: bool
    again: PendingEntry | None = None


class Wake(Enum):
    """Why a waiting worker was woken."""

    LOOK_AGAIN = auto()
    """It was handed a task, one it held ended, it is another kind now, or it is to leave."""
    IDLE_TIMEOUT = auto()


class Crew(Protocol):
    """What a worker needs of its pool."""

    async def attempt(self, worker: Worker, assignment: Assignment) -> Served:
        """Drive the task through one attempt."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Let `work` run beside the worker."""
        ...

    def finished(self, worker: Worker, assignment: Assignment, again: PendingEntry | None) -> None:
        """The worker no longer holds the task; `again` is to be queued."""
        ...


class Worker:
    """One member of a worker group, with `slots` tasks at most at the same time. `number` grows with each that a group starts.

    `on_room` is called after each change that may have given it room for a task, or taken that.
    """

    def __init__(
        self,
        *,
        number: int,
        group: str,
        kind: WorkerKind,
        slots: int,
        idle_timeout_s: float,
        token: CancelToken,
        at: float,
        on_room: Callable[[Worker], None],
    ) -> None:
        self.id = str(uuid4())
        self.number = number
        self.group = group
        self.kind = kind
        self.slots = slots
        self.token = token
        self.started_at = at
        self.since = at
        self.leaving: StopReason | None = None
        self.tasks_done = 0
        self.held: dict[int, Assignment] = {}
        """By task id, in the order they were handed."""
        self._on_room = on_room
        self._idle_timeout_s = idle_timeout_s
        self._idle_since = clock.monotonic()
        self._handed: deque[Assignment] = deque()
        self._waiter: asyncio.Future[Wake] | None = None
        self._error: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Worker {self.id[:8]} of {self.group} {self.kind} {self.state} tasks {list(self.held)}>"

    @property
    def is_busy(self) -> bool:
        """It holds a task, from the step in which it was handed one until the step in which it holds none."""
        return bool(self.held)

    @property
    def has_room(self) -> bool:
        """It can be handed a task."""
        return self.leaving is None and len(self.held) < self.slots

    @property
    def state(self) -> WorkerState:
        """What it does at the moment."""
        if self.leaving is not None:
            return WorkerState.LEAVING
        return WorkerState.BUSY if self.held else WorkerState.IDLE

    def view(self, note: str) -> WorkerView:
        """The worker as it is now; `note` is said of an idle one."""
        return WorkerView(
            id=self.id,
            group=self.group,
            kind=self.kind,
            state=self.state,
            since=self.since,
            started_at=self.started_at,
            task_ids=tuple(self.held),
            slots=max(self.slots, len(self.held)),
            tasks_done=self.tasks_done,
            note="" if self.held else note,
        )

    # --- what its pool decides ---

    def hand(self, assignment: Assignment, at: float) -> None:
        """Give it a task; it holds it from now on."""
        if not self.held:
            self.since = at
        self.held[assignment.entry.task_id] = assignment
        self._handed.append(assignment)
        self._on_room(self)
        self.wake()

    def ask_to_leave(self, reason: StopReason) -> None:
        """Let it finish what it holds and go. The first reason stays, unless it broke."""
        if self.leaving is None or reason is StopReason.ERROR:
            self.leaving = reason
            self._on_room(self)
            self.wake()

    def stay(self) -> None:
        """Take back that it was asked to leave: there is room for it again."""
        self.leaving = None
        self._on_room(self)

    def become(self, kind: WorkerKind) -> None:
        """Make it another kind; its idle time begins anew."""
        self.kind = kind
        self._idle_since = clock.monotonic()
        self.wake()

    def wake(self, why: Wake = Wake.LOOK_AGAIN) -> None:
        """Let it look at what it is to do."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(why)

    # --- what it does ---

    async def run(self, crew: Crew) -> StopReason:
        """Work until there is a reason to leave; returns it. Raises what broke an attempt, when it holds nothing any more."""
        while True:
            while self._handed:
                assignment = self._handed.popleft()
                if self.slots == 1 and assignment.batch is None:
                    # It holds nothing else, so there is nothing to do beside it.
                    await self._serve(crew, assignment)
                    continue
                crew.spawn(self._serve(crew, assignment), name=f"worker {self.id[:8]} task {assignment.entry.task_id}")
            if self.leaving is not None and not self.held:
                if self._error is not None:
                    raise self._error
                return self.leaving
            if await self._wait() is Wake.IDLE_TIMEOUT and self._may_idle_out():
                return StopReason.IDLE

    def _may_idle_out(self) -> bool:
        """What is decided about it in the turn of its idle timeout goes first."""
        return not self.held and self.leaving is None and self.kind is WorkerKind.DEMAND

    async def _serve(self, crew: Crew, assignment: Assignment) -> None:
        again = None
        try:
            served = await crew.attempt(self, assignment)
            self.tasks_done += served.took
            again = served.again
        except Exception as error:  # noqa: BLE001 - it ends the worker, which raises it
            self._error = error
            self.ask_to_leave(StopReason.ERROR)
        finally:
            del self.held[assignment.entry.task_id]
            self._on_room(self)
            self._idle_since = clock.monotonic()
            self.wake()
            crew.finished(self, assignment, again)

    async def _wait(self) -> Wake:
        """Until there may be something to do, or the idle time of a demand worker is over."""
        self._waiter = asyncio.get_running_loop().create_future()
        alarm = None
        if self.kind is WorkerKind.DEMAND and not self.held:
            idle_s = clock.monotonic() - self._idle_since
            alarm = clock.alarm(max(0.0, self._idle_timeout_s - idle_s), lambda: self.wake(Wake.IDLE_TIMEOUT))
        try:
            return await self._waiter
        finally:
            self._waiter = None
            if alarm is not None:
                alarm.cancel()
