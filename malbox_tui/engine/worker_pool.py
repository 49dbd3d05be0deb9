"""Who works: baseline workers always, demand workers under load, surplus ones until they have finished what they hold.

What holds whenever the event loop has nothing left to do:

1. busy ≤ active, and active ≤ max once surplus workers have left; active ≥ min.
2. As many workers as min (or as there are, if fewer) are baseline; the others are demand workers and leave when idle.
3. No worker idles, and none could still be started, while a task that it may take is pending and the pool is not paused.

Each decision is taken from the state of the moment, in one synchronous step (`balance`), after everything that could change it:
a task came, a worker left, the pool was resized, paused or resumed. So there is no wake-up to lose: there is only a state to look at.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.queue import TaskQueue
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.engine.worker import Wake, Worker
from malbox_tui.model import events as news
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.overview import GroupView
from malbox_tui.model.task import RequirementClass
from malbox_tui.model.worker import StopReason, WorkerKind, WorkerView
from malbox_tui.ports import Clock, PendingEntry

MAX_WORKERS = 1024
DEFAULT_GROUP = "default"

Attempt = Callable[[Worker, PendingEntry], Awaitable[bool]]


class WorkerPool:
    """One worker group over one queue. Not thread-safe: it belongs to the engine's loop."""

    def __init__(
        self,
        *,
        queue: TaskQueue,
        wall: Clock,
        tracker: TaskTracker,
        root: CancelToken,
        attempt: Attempt,
        announce: Callable[[news.EventBody], None],
        on_shrunk: Callable[[int], None],
        min_workers: int,
        max_workers: int,
        idle_timeout_s: float,
    ) -> None:
        self._queue = queue
        self._wall = wall
        self._tracker = tracker
        self._root = root
        self._attempt = attempt
        self._announce = announce
        self._on_shrunk = on_shrunk
        self._min = min_workers
        self._max = max_workers
        self._idle_timeout_s = idle_timeout_s
        self._workers: dict[str, Worker] = {}
        self._waiting: deque[tuple[Worker, asyncio.Future[Wake]]] = deque()
        self._paused: str | None = None
        self._draining = False
        self._emptied: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<WorkerPool {self.busy} busy / {self.active} active / {self._min}–{self._max}, {len(self._queue)} pending>"

    @property
    def active(self) -> int:
        """Workers that have not left."""
        return len(self._workers)

    @property
    def busy(self) -> int:
        """Workers that hold a task."""
        return sum(worker.task_id is not None for worker in self._workers.values())

    @property
    def paused(self) -> str | None:
        """Why no task is taken; None when tasks are."""
        return self._paused

    def group(self) -> GroupView:
        """The group's numbers as they are now."""
        return GroupView(
            name=DEFAULT_GROUP,
            min_workers=self._min,
            max_workers=self._max,
            active=self.active,
            busy=self.busy,
            idle_timeout_s=self._idle_timeout_s,
        )

    def views(self) -> tuple[WorkerView, ...]:
        """All workers, the oldest first."""
        return tuple(worker.view() for worker in self._workers.values())

    # --- what an operator does -----------------------------------------------------------------------------------------------

    def resize(self, group: str, min_workers: int | None, max_workers: int | None) -> str:
        """Set other limits at once; says what they are. Raises `RefusedCommand`, with nothing changed, when they make no sense."""
        if group != DEFAULT_GROUP:
            raise RefusedCommand(f"There is no worker group {group!r}; there is {DEFAULT_GROUP!r}. Nothing was changed.")
        low = self._min if min_workers is None else min_workers
        high = self._max if max_workers is None else max_workers
        if not 0 <= low <= MAX_WORKERS or not 0 <= high <= MAX_WORKERS:
            raise RefusedCommand(f"min {low}, max {high}: each must be between 0 and {MAX_WORKERS}; nothing was changed.")
        if low > high:
            raise RefusedCommand(f"min {low} is above max {high}; nothing was changed.")
        if (low, high) != (self._min, self._max):
            self._min, self._max = low, high
            self._announce(news.GroupResized(group=DEFAULT_GROUP, min_workers=low, max_workers=high))
            self.balance()
            self._wake_all()
        return f"{DEFAULT_GROUP}: min {low}, max {high}"

    def pause(self, reason: str) -> None:
        """Take no more tasks; what runs goes on."""
        if self._paused is None:
            self._announce(news.PoolPaused(reason=reason))
        self._paused = reason

    def resume(self) -> None:
        """Take tasks again."""
        if self._paused is not None:
            self._paused = None
            self._announce(news.PoolResumed())
            self.balance()

    # --- starting and ending ---------------------------------------------------------------------------------------------------

    def balance(self) -> None:
        """Bring workers in line with limits and load: kinds, baseline, wake-ups, demand workers. One step, safe to repeat."""
        if self._draining or self._root.reason is not None:
            self._wake_all()
            return
        self._assign_kinds()
        while self.active < self._min:
            self._start(WorkerKind.BASELINE)
        startable = self._startable()
        for _ in range(min(startable, len(self._waiting))):
            self._wake_first()
        free = self.active - self.busy
        for _ in range(min(startable - free, self._max - self.active)):
            self._start(WorkerKind.DEMAND)

    def drain(self) -> None:
        """Take no more tasks; workers leave when they hold none."""
        self._draining = True
        self._wake_all()

    def emptied(self) -> asyncio.Future[None]:
        """A future that is resolved when no worker is left."""
        if self._emptied is None:
            self._emptied = asyncio.get_running_loop().create_future()
            self._tell_if_empty()
        return self._emptied

    # --- what a worker needs of its pool ------------------------------------------------------------------------------------------

    def must_leave(self, worker: Worker) -> StopReason | None:
        """See `Crew`. Of surplus workers the first to look leaves; `balance` then promotes whom the baseline needs."""
        if self._draining or worker.token.reason is not None:
            worker.leaving = StopReason.REQUESTED
        elif self.active - self._leaving() > self._max and worker.leaving is None:
            worker.leaving = StopReason.SURPLUS
        return worker.leaving

    def take(self, worker: Worker) -> PendingEntry | None:
        """See `Crew`."""
        if self._paused is not None:
            return None
        entry = self._queue.pop(self._accepts)
        if entry is not None:
            worker.task_id = entry.task_id
            worker.since = self._wall.now()
        return entry

    def has_work(self, worker: Worker) -> bool:
        """See `Crew`."""
        return self._startable() > 0

    async def wait(self, worker: Worker) -> Wake:
        """See `Crew`. Cancelled: the worker waits no more, and whom it was woken for is looked after by `balance`."""
        waiter: asyncio.Future[Wake] = asyncio.get_running_loop().create_future()
        place = (worker, waiter)
        self._waiting.append(place)
        alarm = None
        if worker.kind is WorkerKind.DEMAND:
            idle_s = clock.monotonic() - worker.idle_since
            alarm = clock.alarm(max(0.0, self._idle_timeout_s - idle_s), lambda: _resolve(waiter, Wake.IDLE_TIMEOUT))
        try:
            return await waiter
        finally:
            if alarm is not None:
                alarm.cancel()
            if place in self._waiting:
                self._waiting.remove(place)

    async def attempt(self, worker: Worker, entry: PendingEntry) -> bool:
        """See `Crew`."""
        return await self._attempt(worker, entry)

    def finished(self, worker: Worker) -> None:
        """See `Crew`."""
        worker.task_id = None
        worker.since = self._wall.now()
        worker.idle_since = clock.monotonic()

    # --- private -----------------------------------------------------------------------------------------------------------------

    def _start(self, kind: WorkerKind) -> None:
        worker = Worker(DEFAULT_GROUP, kind, self._root.child(), self._wall.now())
        self._workers[worker.id] = worker
        self._announce(news.WorkerStarted(worker=worker.id, group=DEFAULT_GROUP, kind=kind))
        self._tracker.spawn(self._life(worker), name=f"worker {worker.id[:8]}")

    async def _life(self, worker: Worker) -> None:
        reason, detail = StopReason.ERROR, ""
        try:
            reason = await worker.run(self)
        except BaseException as error:
            # A worker that broke is replaced; what broke it reaches the loop's exception handler through the tracker.
            detail = f"{type(error).__name__}: {error}"
            raise
        finally:
            del self._workers[worker.id]
            self._announce(news.WorkerStopped(worker=worker.id, group=worker.group, reason=reason, detail=detail))
            self.balance()
            self._on_shrunk(self.active)
            self._tell_if_empty()

    def _assign_kinds(self) -> None:
        staying = [worker for worker in self._workers.values() if worker.leaving is None]
        baseline = [worker for worker in staying if worker.kind is WorkerKind.BASELINE]
        for worker in baseline[self._min :]:
            self._change_kind(worker, WorkerKind.DEMAND)
        demand = [worker for worker in staying if worker.kind is WorkerKind.DEMAND]
        for worker in demand[: max(0, self._min - len(baseline))]:
            self._change_kind(worker, WorkerKind.BASELINE)

    def _change_kind(self, worker: Worker, kind: WorkerKind) -> None:
        worker.kind = kind
        worker.idle_since = clock.monotonic()
        self._announce(news.WorkerChanged(worker=worker.id, kind=kind, state=worker.state, task_id=worker.task_id))
        for waiting, waiter in self._waiting:
            if waiting is worker:
                _resolve(waiter, Wake.LOOK_AGAIN)

    def _tell_if_empty(self) -> None:
        if not self._workers and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _startable(self) -> int:
        return 0 if self._paused is not None else self._queue.count(self._accepts)

    def _accepts(self, requires: RequirementClass) -> bool:
        return requires.task_type == "static"

    def _leaving(self) -> int:
        return sum(worker.leaving is not None for worker in self._workers.values())

    def _wake_first(self) -> None:
        _, waiter = self._waiting.popleft()
        _resolve(waiter, Wake.LOOK_AGAIN)

    def _wake_all(self) -> None:
        while self._waiting:
            self._wake_first()


def _resolve(waiter: asyncio.Future[Wake], wake: Wake) -> None:
    if not waiter.done():
        waiter.set_result(wake)
