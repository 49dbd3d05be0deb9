"""The pending tasks, in the order in which they are to be taken: priority first, then first in, first out.

It holds ids, priorities and requirement classes, never rows. There is one heap a requirement class, so a task that nobody can take
never stands before one that somebody can. An entry that was discarded or re-ordered stays in its heap as a stale pair until it
comes up or until stale pairs are the majority.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import PendingEntry

Accepts = Callable[[RequirementClass], bool]


class TaskQueue:
    """A priority queue of task ids. Synchronous: whoever takes an entry owns it in the same step."""

    def __init__(self) -> None:
        self._heaps: dict[RequirementClass, list[tuple[int, int]]] = {}
        self._entries: dict[int, tuple[int, RequirementClass]] = {}
        self._counts: dict[RequirementClass, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, task_id: int) -> bool:
        return task_id in self._entries

    def __repr__(self) -> str:
        return f"<TaskQueue {len(self)} pending in {len(self._heaps)} classes>"

    def push(self, entry: PendingEntry) -> None:
        """Add a task; one that is here already only gets the entry's priority and class."""
        self.discard(entry.task_id)
        self._entries[entry.task_id] = (entry.priority, entry.requires)
        self._counts[entry.requires] = self._counts.get(entry.requires, 0) + 1
        heapq.heappush(self._heaps.setdefault(entry.requires, []), (-entry.priority, entry.task_id))

    def pop(self, accepts: Accepts) -> PendingEntry | None:
        """Take out the first task of an accepted class; None if there is none."""
        best = min(
            (head for requires in self._classes(accepts) if (head := self._head(requires)) is not None),
            default=None,
        )
        if best is None:
            return None
        priority, requires = self._entries[best[1]]
        heapq.heappop(self._heaps[requires])
        self._forget(best[1])
        return PendingEntry(best[1], priority, requires)

    def discard(self, task_id: int) -> bool:
        """Take a task out wherever it stands; False if it isn't here."""
        if task_id not in self._entries:
            return False
        requires = self._forget(task_id)
        if requires in self._heaps and len(self._heaps[requires]) > 2 * self._counts.get(requires, 0) + 16:
            self._compact(requires)
        return True

    def reprioritize(self, task_id: int, priority: int) -> bool:
        """Move a task to another priority; among equals it stands where its id puts it. False if it isn't here."""
        if task_id not in self._entries:
            return False
        self.push(PendingEntry(task_id, priority, self._entries[task_id][1]))
        return True

    def count(self, accepts: Accepts) -> int:
        """How many tasks are of an accepted class."""
        return sum(self._counts[requires] for requires in self._classes(accepts))

    def _classes(self, accepts: Accepts) -> Iterator[RequirementClass]:
        return (requires for requires in self._counts if accepts(requires))

    def _head(self, requires: RequirementClass) -> tuple[int, int] | None:
        heap = self._heaps[requires]
        while heap and not self._is_live(heap[0], requires):
            heapq.heappop(heap)
        return heap[0] if heap else None

    def _is_live(self, pair: tuple[int, int], requires: RequirementClass) -> bool:
        return self._entries.get(pair[1]) == (-pair[0], requires)

    def _forget(self, task_id: int) -> RequirementClass:
        _, requires = self._entries.pop(task_id)
        self._counts[requires] -= 1
        if not self._counts[requires]:
            del self._counts[requires], self._heaps[requires]
        return requires

    def _compact(self, requires: RequirementClass) -> None:
        live = {pair for pair in self._heaps[requires] if self._is_live(pair, requires)}
        self._heaps[requires] = sorted(live)
