"""Who works on what: baseline workers always, demand workers under load, surplus ones until they have finished what they hold.

What holds after each step of the event loop:

1. busy ≤ active in each group, and active ≤ max once surplus workers have left; those that stay are at least min.
2. As many of those that stay as min are baseline; the others are demand workers and leave when idle.
3. No task is pending that could start: one for which a group that takes it has room or may grow, and, if it needs one, a machine is
   free. Unless the pool is paused or ending, or that group collects a batch, which it does for a bounded time.
4. A task goes to the group of the highest priority that takes it and has room or may grow.

Each decision is taken from the state of the moment, in one synchronous step (`balance`), after everything that could change it: a task
came, a worker or a machine became free, a group was resized, the pool was resumed. A task is handed to a worker, and its machine
reserved, in that step. So there is no wake-up to lose: there is only a state to look at.

A step does `MOST_A_STEP` of each at most, so that it never holds the loop up; 1 to 3 then hold after the steps that follow at
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from malbox_tui.config.settings import GroupSettings
from malbox_tui.engine import clock
from malbox_tui.engine.batch import Batch
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.hand_out import Collection, HandOut
from malbox_tui.engine.machine import MachineLease
from malbox_tui.engine.machine_fit import Terms
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.queue import TaskQueue
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.engine.worker import Assignment, Served, Worker
from malbox_tui.engine.worker_group import WorkerGroup, terms_of
from malbox_tui.model import events as news
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.overview import GroupView
from malbox_tui.model.task import RequirementClass
from malbox_tui.model.worker import StopReason, WorkerKind, WorkerView
from malbox_tui.ports import Clock, PendingEntry

MAX_WORKERS = 1024
MOST_A_STEP = 32
"""How many workers one step starts or makes another kind, and how many tasks it hands out, at most."""

Attempt = Callable[[Worker, Assignment], Awaitable[Served]]


class WorkerPool:
    """The worker groups over one queue. Not thread-safe: it belongs to the engine's loop.

    `attempt` drives one task for one worker; `batch` makes one of the tasks with these ids. `tokens` is kept here: by task id what ends
    its attempt, from the step in which it is handed out to the one in which its worker no longer holds it. `on_shrunk` is told how many
    tasks can be worked on at once after a worker has left.
    """

    def __init__(
        self,
        *,
        groups: Sequence[GroupSettings],
        queue: TaskQueue,
        machines: MachinePool,
        wall: Clock,
        tracker: TaskTracker,
        root: CancelToken,
        tokens: dict[int, CancelToken],
        attempt: Attempt,
        batch: Callable[[Sequence[int]], Batch],
        announce: Callable[[news.EventBody], None],
        on_shrunk: Callable[[int], None],
    ) -> None:
        self.groups = {settings.name: WorkerGroup(settings) for settings in groups}
        """By name, in the order of the configuration."""
        self._by_priority = sorted(self.groups.values(), key=lambda group: -group.settings.priority)
        self._queue = queue
        self._machines = machines
        self._wall = wall
        self._tracker = tracker
        self._root = root
        self._tokens = tokens
        self._attempt = attempt
        self._batch = batch
        self._announce = announce
        self._on_shrunk = on_shrunk
        self._holds: dict[str, str] = {}
        """What keeps tasks from being taken → why, for a person."""
        self._begun = False
        self._draining = False
        self._collection = Collection()
        self._batch_alarm: asyncio.TimerHandle | None = None
        """Rings when the batch is due that is collected and due first."""
        self._goes_on = False
        """The next step of the loop goes on where this one stopped."""
        self._emptied: asyncio.Future[None] | None = None

    def __repr__(self) -> str:
        return f"<WorkerPool {list(self.groups.values())}, {len(self._queue)} pending>"

    @property
    def paused(self) -> str | None:
        """Why no task is taken; None when tasks are."""
        return "; ".join(self._holds.values()) or None

    @property
    def is_ending(self) -> bool:
        """No task is taken any more."""
        return self._draining

    def views(self) -> tuple[GroupView, ...]:
        """All groups' numbers as they are now."""
        return tuple(group.view() for group in self.groups.values())

    def reach(self, requires: RequirementClass) -> tuple[Terms, ...]:
        """What those groups ask of machines that take such a task and may have workers."""
        return terms_of(group for group in self.groups.values() if group.max and group.takes(requires))

    def collecting(self, group: WorkerGroup, requires: RequirementClass) -> bool:
        """Tasks of this class wait there for their batch to fill."""
        return group.batches(requires) and self._queue.count(requires) < group.settings.batch_size

    def worker_views(self) -> tuple[WorkerView, ...]:
        """All workers, group by group, the oldest first."""
        found = []
        for group in self.groups.values():
            note = f"could take {group.takes_in_words()}" if self.paused is None else self.paused
            found += [worker.view(note) for worker in group.workers.values()]
        return tuple(found)

    # --- what an operator does ---------------------------------------------------------------------------------------------------

    def resize(self, name: str, min_workers: int | None, max_workers: int | None) -> str:
        """Set other limits at once; says what they are. Raises `RefusedCommand`, with nothing changed, when they make no sense."""
        if (group := self.groups.get(name)) is None:
            known = ", ".join(repr(known) for known in self.groups)
            raise RefusedCommand(f"There is no worker group {name!r}; there is {known}. Nothing was changed.")
        low = group.min if min_workers is None else min_workers
        high = group.max if max_workers is None else max_workers
        if not 0 <= low <= MAX_WORKERS or not 0 <= high <= MAX_WORKERS:
            raise RefusedCommand(f"min {low}, max {high}: each must be between 0 and {MAX_WORKERS}; nothing was changed.")
        if low > high:
            raise RefusedCommand(f"min {low} is above max {high}; nothing was changed.")
        if (low, high) != (group.min, group.max):
            group.min, group.max = low, high
            group.is_settled = False
            self._announce(news.GroupResized(group=name, min_workers=low, max_workers=high))
            self.balance()
        return f"{name}: min {low}, max {high}"

    def hold(self, cause: str, reason: str, *, is_news: bool = True) -> None:
        """Take no more tasks, for `reason`, until the same `cause` is lifted; what runs goes on."""
        if self._holds.get(cause) != reason:
            self._holds[cause] = reason
            if is_news:
                self._announce(news.PoolPaused(reason=self.paused or reason))

    def lift(self, cause: str) -> None:
        """This cause keeps no task from being taken any more."""
        if self._holds.pop(cause, None) is None:
            return
        self._announce(news.PoolResumed() if self.paused is None else news.PoolPaused(reason=self.paused))
        self.balance()

    # --- starting and ending -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start to work: before, nothing is balanced."""
        self._begun = True
        self.balance()

    def balance(self) -> None:
        """Bring workers in line with limits, and hand out every task that can start. One step, safe to repeat."""
        if not self._begun or self._draining:
            return
        for group in self.groups.values():
            if not group.is_settled:
                self._fit(group)
        if not self._holds and len(self._queue):
            self._hand_out()

    def drain(self) -> None:
        """Take no more tasks; workers leave when they hold none."""
        self._draining = True
        self._wait_for_batch(None)
        for group in self.groups.values():
            for worker in group.workers.values():
                worker.ask_to_leave(StopReason.REQUESTED)

    def emptied(self) -> asyncio.Future[None]:
        """A future that is resolved when no worker is left."""
        if self._emptied is None:
            self._emptied = asyncio.get_running_loop().create_future()
            self._tell_if_empty()
        return self._emptied

    # --- what a worker needs of its pool -----------------------------------------------------------------------------------------

    async def attempt(self, worker: Worker, assignment: Assignment) -> Served:
        """See `Crew`."""
        return await self._attempt(worker, assignment)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """See `Crew`."""
        self._tracker.spawn(work, name=name)

    def finished(self, worker: Worker, assignment: Assignment, again: PendingEntry | None) -> None:
        """See `Crew`. Only now may the task be handed out again: nobody holds anything of it any more."""
        del self._tokens[assignment.entry.task_id]
        if not worker.held:
            worker.since = self._wall.now()
        if worker.leaving is not None:
            self.groups[worker.group].is_settled = False
        if again is None:
            self._queue.forget(assignment.entry.task_id)
        else:
            self._queue.push(again)
        self.balance()

    # --- private -----------------------------------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        step = HandOut(self._queue, self._machines, self._by_priority, self._collection, clock.monotonic())
        handed_out = 0
        for requires, group, opening in step.startable():
            if handed_out >= MOST_A_STEP:
                self._go_on()
                return
            worker = opening.next() or opening.put(self._start(group, WorkerKind.DEMAND))
            if group.batches(requires):
                handed_out += self._hand_batch(worker, group, requires, step.now)
            else:
                handed_out += 1
                self._hand_one(worker, group, requires)
        self._wait_for_batch(step.wait_s)

    def _hand_one(self, worker: Worker, group: WorkerGroup, requires: RequirementClass) -> None:
        entry = self._queue.pop(requires)
        lease = None
        if requires.needs_machine:
            lease = self._machines.reserve(requires, group.terms, entry.task_id)
            assert lease is not None, "the group was chosen because a machine is free"
        self._hand(worker, entry, lease=lease)

    def _hand_batch(self, worker: Worker, group: WorkerGroup, requires: RequirementClass, now: float) -> int:
        size = min(group.settings.batch_size, self._queue.count(requires))
        self._collection.taken(requires, now)
        entries = [self._queue.pop(requires) for _ in range(size)]
        batch = self._batch([entry.task_id for entry in entries])
        for entry in entries:
            self._hand(worker, entry, batch=batch)
        return size

    def _hand(self, worker: Worker, entry: PendingEntry, lease: MachineLease | None = None, batch: Batch | None = None) -> None:
        token = self._tokens[entry.task_id] = worker.token.child()
        worker.hand(Assignment(entry, token, lease, batch), self._wall.now())

    def _wait_for_batch(self, seconds: float | None) -> None:
        if self._batch_alarm is not None:
            self._batch_alarm.cancel()
        self._batch_alarm = None if seconds is None else clock.alarm(seconds, self.balance)

    def _go_on(self) -> None:
        if not self._goes_on:
            self._goes_on = True
            asyncio.get_running_loop().call_soon(self._next_step)

    def _next_step(self) -> None:
        self._goes_on = False
        self.balance()

    def _fit(self, group: WorkerGroup) -> None:
        """As many workers stay as may, as many are baseline as must be."""
        group.is_settled = True
        staying = group.staying()
        if len(staying) > group.max:
            # Those that leave soonest go first: idle ones, then demand ones, then the youngest.
            leavers = list(reversed(staying))
            leavers.sort(key=lambda worker: (worker.is_busy, worker.kind is WorkerKind.BASELINE))
            for worker in leavers[: len(staying) - group.max]:
                worker.ask_to_leave(StopReason.SURPLUS)
        room = group.max - len(group.staying())
        surplus = [worker for worker in group.workers.values() if worker.leaving is StopReason.SURPLUS and worker.is_busy]
        for worker in surplus[:room]:
            worker.stay()
        changes = self._kinds_to_change(group)
        for worker, kind in changes[:MOST_A_STEP]:
            self._change_kind(worker, kind)
        lacking = max(0, min(group.min - len(group.staying()), group.max - group.active))
        for _ in range(min(lacking, MOST_A_STEP)):
            self._start(group, WorkerKind.BASELINE)
        if max(len(changes), lacking) > MOST_A_STEP:
            group.is_settled = False
            self._go_on()

    def _kinds_to_change(self, group: WorkerGroup) -> list[tuple[Worker, WorkerKind]]:
        staying = group.staying()
        baseline = [worker for worker in staying if worker.kind is WorkerKind.BASELINE]
        demand = [worker for worker in staying if worker.kind is WorkerKind.DEMAND]
        demoted = [(worker, WorkerKind.DEMAND) for worker in baseline[group.min :]]
        promoted = [(worker, WorkerKind.BASELINE) for worker in demand[: max(0, group.min - len(baseline))]]
        return demoted + promoted

    def _change_kind(self, worker: Worker, kind: WorkerKind) -> None:
        worker.become(kind)
        task_id = next(iter(worker.held), None)
        self._announce(news.WorkerChanged(worker=worker.id, kind=kind, state=worker.state, task_id=task_id))

    def _start(self, group: WorkerGroup, kind: WorkerKind) -> Worker:
        worker = group.start(kind, self._root.child(), self._wall.now())
        self._announce(news.WorkerStarted(worker=worker.id, group=group.name, kind=kind))
        self._tracker.spawn(self._life(group, worker), name=f"worker {worker.id[:8]}")
        return worker

    async def _life(self, group: WorkerGroup, worker: Worker) -> None:
        reason, detail = StopReason.ERROR, ""
        try:
            reason = await worker.run(self)
        except Exception as error:  # noqa: BLE001 - a worker that broke is replaced, and what broke it told at once
            detail = f"{type(error).__name__}: {error}"
            context = {"message": f"worker {worker.id[:8]} of {group.name} broke", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        except BaseException as error:
            detail = f"{type(error).__name__}: {error}"
            raise
        finally:
            group.forget(worker)
            group.is_settled = False
            self._announce(news.WorkerStopped(worker=worker.id, group=worker.group, reason=reason, detail=detail))
            self.balance()
            self._on_shrunk(sum(group.active * group.settings.slots for group in self.groups.values()))
            self._tell_if_empty()

    def _tell_if_empty(self) -> None:
        if self._emptied is not None and not self._emptied.done() and not any(group.active for group in self.groups.values()):
            self._emptied.set_result(None)
