"""What the rules look at: the engine, the rows of the store, what the events say, and what was there before the latest change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from malbox_tui.engine.batch import Batch
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.worker import Worker
from malbox_tui.model.task import RequirementClass, Task
from tests.simulation.attempt_rules import AttemptWatch
from tests.simulation.batch_rules import CollectionWatch
from tests.simulation.mirror import Mirror
from tests.simulation.view import View
from tests.simulation.watched_store import WatchedStore


class Time(Protocol):
    """Wall time, the loop's time, and how long leases last."""

    lease_s: float

    def now(self) -> float: ...

    def moment(self) -> float: ...


Entry = tuple[tuple[int, int], RequirementClass]
"""Of a pending task: its place in the queue, the smallest first, and what it requires."""


@dataclass(slots=True)
class Facts:
    """What the checks look at: the engine, the rows of the store, what the events say, and what was there before the latest change."""

    view: View
    rows: Mapping[int, Task]
    mirror: Mirror
    store: WatchedStore
    wall: Time
    attempts: AttemptWatch
    collected: CollectionWatch = field(default_factory=CollectionWatch)
    left: frozenset[int] = frozenset()
    """Tasks that the engine said it could not stop in time."""
    results: Mapping[str, bytes] = field(default_factory=dict)
    """What is in the result store, by path; filled in at the end."""
    holders: dict[int, list[Worker]] = field(default_factory=dict)
    """Task id → the workers that hold it."""
    queue_before: dict[int, Entry] = field(default_factory=dict)
    tokens_before: dict[int, CancelToken] = field(default_factory=dict)
    batches_before: dict[int, Batch] = field(default_factory=dict)
    """Of the tasks that were held and in one."""
    let_go: list[tuple[int, CancelToken, Batch]] = field(default_factory=list)
    """Tasks that ended while their batch may have gone on, with their tokens."""
    orphans: dict[int, float] = field(default_factory=dict)
    """Tasks whose lease ran out and that nobody holds → since when, on the loop's clock."""
    _seen: tuple[object, ...] = ()

    def look(self) -> bool:
        """Take a look; False when nothing has changed that a check after a step depends on. Cheap, since most steps change nothing."""
        view = self.view
        workers = [(worker, worker.leaving, *worker.held) for group in view.groups.values() for worker in group.workers.values()]
        machines = [(machine.state, machine.lease) for machine in view.machines.values()]
        limits = [group.max for group in view.groups.values()]
        seen = (workers, machines, limits, len(view.tokens), len(view.queue))
        if seen == self._seen and view.tokens == self.tokens_before and view.queue == self.queue_before:
            return False
        self._seen = seen
        self.collected.look(self.queue_before, view.queue, self.wall.moment())
        self.holders = {}
        for worker, _, *held in workers:
            for task_id in held:
                self.holders.setdefault(task_id, []).append(worker)
        return True

    def remember(self) -> None:
        """Keep what was looked at as the state before."""
        self.queue_before = dict(self.view.queue)
        self.tokens_before = dict(self.view.tokens)
        self.batches_before = {
            task_id: assignment.batch
            for _, worker in self.view.workers()
            for task_id, assignment in worker.held.items()
            if assignment.batch is not None
        }


Check = Callable[[Facts], str | None]
"""A rule: None, or what is seen instead."""
