"""Which pending task can start now, and where: asked in one step of the loop, answered from the state of the moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from malbox_tui.engine import clock
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.queue import Place, TaskQueue
from malbox_tui.engine.worker import Worker
from malbox_tui.engine.worker_group import WorkerGroup
from malbox_tui.model.task import RequirementClass


class Opening:
    """Who of a group can be handed tasks in this step: read once, and used up."""

    def __init__(self, group: WorkerGroup) -> None:
        self._group = group
        self._with_room = group.with_room()
        self._with_room.reverse()

    @property
    def is_open(self) -> bool:
        """The group can be handed one more task."""
        return self._group.can_grow or self.next() is not None

    def next(self) -> Worker | None:
        """Who is handed the next task; None: nobody has room, a worker more is to be started for it."""
        while self._with_room and not self._with_room[-1].has_room:
            self._with_room.pop()
        return self._with_room[-1] if self._with_room else None

    def put(self, worker: Worker) -> Worker:
        """Add a worker that was started in this step."""
        self._with_room.append(worker)
        return worker


class Collection:
    """Since when the tasks of each class wait for the batch that they are to be in, whether a worker is free for it or not.

    They stay in the queue meanwhile: they can be canceled and re-ordered, and no worker holds them. Times are the loop's.
    """

    def __init__(self) -> None:
        self._since: dict[RequirementClass, tuple[object, float]] = {}
        """With the line they stand in: a class of which nothing was pending in between begins anew."""

    def look(self, queue: TaskQueue, pending: Sequence[RequirementClass], now: float) -> None:
        """Take note of the classes that are pending, all of them."""
        for requires in pending:
            line = queue.line(requires)
            known = self._since.get(requires)
            if known is None or known[0] is not line:
                self._since[requires] = (line, now)
        if len(self._since) > len(pending):
            self._since = {requires: self._since[requires] for requires in pending}

    def due_in(self, group: WorkerGroup, requires: RequirementClass, pending: int, now: float) -> float:
        """In how many seconds the batch is to be run; 0 when it is full, or has been waited for as long as it may."""
        if pending >= group.settings.batch_size:
            return 0.0
        left_s = self._since[requires][1] + group.settings.batch_wait_s - now
        return left_s if left_s > clock.RESOLUTION_S else 0.0

    def taken(self, requires: RequirementClass, now: float) -> None:
        """A batch was handed out: what is left of the class is the beginning of another."""
        self._since[requires] = (self._since[requires][0], now)


class HandOut:
    """One step's answers."""

    def __init__(
        self, queue: TaskQueue, machines: MachinePool, by_priority: Sequence[WorkerGroup], collection: Collection, now: float
    ) -> None:
        self.now = now
        self._queue = queue
        self._machines = machines
        self._collection = collection
        self._openings = {group: Opening(group) for group in by_priority if group.may_take_one_more()}
        self._batches = any(group.settings.batch_size > 1 for group in by_priority)
        self._collected: dict[WorkerGroup, list[tuple[Place, RequirementClass]]] = {}
        """The classes that wait for their batch, by the group that collects them, each with the place of its first task."""

    @property
    def wait_s(self) -> float | None:
        """The time until a batch that is collected now is due; None: none is."""
        waits = [self._due_in(group, requires) for group, collected in self._collected.items() for _, requires in collected]
        return min(waits, default=None)

    def startable(self) -> Iterator[tuple[RequirementClass, WorkerGroup, Opening]]:
        """The class of the first task that can start, and the group that takes it, again and again until none can.

        Each is to be handed out, alone or with as many as make a batch, before the next is asked for, and all in one step. Handing out
        only uses room and machines up, so a class that can't start is not looked at again; one that a group collects is, when that
        group has no room any more, since then it is another's.
        """
        if self._batches:
            host_only = [requires for _, requires in self._queue.firsts() if not requires.needs_machine]
            self._collection.look(self._queue, host_only, self.now)
        if not self._openings:
            return
        firsts = self._queue.firsts()
        if not self._machines.some_are_ready():
            firsts = [first for first in firsts if not first[1].needs_machine]
        heapify(firsts)
        while firsts:
            requires = firsts[0][1]
            if (group := self._group_for(requires)) is None:
                heappop(firsts)
                continue
            if self._due_in(group, requires) > 0:
                self._collected.setdefault(group, []).append(heappop(firsts))
                continue
            opening = self._openings[group]
            yield requires, group, opening
            if (first := self._queue.first(requires)) is None:
                heappop(firsts)
            else:
                heapreplace(firsts, (first, requires))
            if not opening.is_open:
                for collected in self._collected.pop(group, ()):
                    heappush(firsts, collected)

    def _group_for(self, requires: RequirementClass) -> WorkerGroup | None:
        """The first group that takes it. While that one collects a batch, no other gets the tasks."""
        for group, opening in self._openings.items():
            if (
                opening.is_open
                and group.takes(requires)
                and (not requires.needs_machine or self._machines.has_free(requires, group.terms))
            ):
                return group
        return None

    def _due_in(self, group: WorkerGroup, requires: RequirementClass) -> float:
        """In how many seconds the group may run such tasks; 0 when it collects none of them."""
        if not group.batches(requires):
            return 0.0
        return self._collection.due_in(group, requires, self._queue.count(requires), self.now)
