"""Which pending task can start now, and where: asked in one step of the loop, answered from the state of the moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace

from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.queue import TaskQueue
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


def startable(
    queue: TaskQueue, machines: MachinePool, by_priority: Sequence[WorkerGroup]
) -> Iterator[tuple[RequirementClass, WorkerGroup, Opening]]:
    """The class of the first task that can start, and the group that takes it, again and again until none can.

    Each is to be handed out before the next is asked for, and all in one step. Handing out only uses room and machines up, so a class
    that can't start is not looked at again.
    """
    openings = {group: Opening(group) for group in by_priority if group.may_take_one_more()}
    if not openings:
        return
    firsts = queue.firsts()
    if not machines.some_are_ready():
        firsts = [first for first in firsts if not first[1].needs_machine]
    heapify(firsts)
    while firsts:
        requires = firsts[0][1]
        if (group := _group_for(requires, openings, machines)) is None:
            heappop(firsts)
            continue
        yield requires, group, openings[group]
        if (first := queue.first(requires)) is None:
            heappop(firsts)
        else:
            heapreplace(firsts, (first, requires))


def _group_for(requires: RequirementClass, openings: dict[WorkerGroup, Opening], machines: MachinePool) -> WorkerGroup | None:
    for group, opening in openings.items():
        if (
            opening.is_open
            and group.takes(requires)
            and (not requires.needs_machine or machines.has_free(requires, group.settings.platforms))
        ):
            return group
    return None
