"""The pending tasks, in the order in which they are to be taken: priority first, then first in, first out.

It holds ids, priorities and requirement classes, never rows. There is one sorted list a requirement class, so a task that nobody can
take never stands before one that somebody can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sortedcontainers import SortedList

from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import PendingEntry

MAX_PRIORITY = 1_000_000
"""Priorities lie between this and its negative."""
Place = tuple[int, int]
"""(-priority, id): sorts as tasks are to be taken."""


class TaskQueue:
    """A priority queue of task ids. Synchronous: whoever takes an entry owns it in the same step."""

    def __init__(self) -> None:
        self._lists: dict[RequirementClass, SortedList[Place]] = {}
        self._entries: dict[int, tuple[Place, RequirementClass]] = {}
        self._priorities: dict[int, int] = {}
        self._ended: set[int] = set()
        """Of tasks that are not here yet, or not here again: what they will be."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, task_id: int) -> bool:
        return task_id in self._entries

    def __repr__(self) -> str:
        return f"<TaskQueue {len(self)} pending in {len(self._lists)} classes>"

    def load(self, entries: Iterable[PendingEntry]) -> None:
        """Add many tasks that are not here yet."""
        places: defaultdict[RequirementClass, list[Place]] = defaultdict(list)
        for entry in entries:
            place = (-entry.priority, entry.task_id)
            self._entries[entry.task_id] = (place, entry.requires)
            places[entry.requires].append(place)
        for requires, found in places.items():
            self._lists.setdefault(requires, SortedList()).update(found)

    def push(self, entry: PendingEntry) -> None:
        """Add a task; one that is here already only gets the entry's priority and class. What was said of it while it was not here
        (`reprioritize`, `end`) holds."""
        self.discard(entry.task_id)
        if entry.task_id in self._ended:
            self._ended.discard(entry.task_id)
            return
        priority = self._priorities.pop(entry.task_id, entry.priority)
        place = (-priority, entry.task_id)
        self._entries[entry.task_id] = (place, entry.requires)
        if (places := self._lists.get(entry.requires)) is None:
            places = self._lists[entry.requires] = SortedList()
        places.add(place)

    def count(self, requires: RequirementClass) -> int:
        """How many tasks of a class are pending."""
        places = self._lists.get(requires)
        return 0 if places is None else len(places)

    def line(self, requires: RequirementClass) -> object:
        """The same object as long as the class has never been without a pending task; None when it is."""
        return self._lists.get(requires)

    def first(self, requires: RequirementClass) -> Place | None:
        """Where the first task of a class stands; None when the class has none."""
        places = self._lists.get(requires)
        return None if places is None else places[0]

    def firsts(self) -> list[tuple[Place, RequirementClass]]:
        """The requirement classes of what is pending, each with the place of its first task, in no order. No two places are equal."""
        return [(places[0], requires) for requires, places in self._lists.items()]

    def pop(self, requires: RequirementClass) -> PendingEntry:
        """Take out the first task of a class. Raises KeyError when the class has none."""
        priority, task_id = self._lists[requires][0]
        self.discard(task_id)
        return PendingEntry(task_id, -priority, requires)

    def discard(self, task_id: int) -> bool:
        """Take a task out wherever it stands; False if it isn't here."""
        if (found := self._entries.pop(task_id, None)) is None:
            return False
        place, requires = found
        places = self._lists[requires]
        if len(places) == 1:
            del self._lists[requires]
        else:
            places.remove(place)
        return True

    def reprioritize(self, task_id: int, priority: int) -> bool:
        """Move a task to another priority; among equals it stands where its id puts it. False if it isn't here: it gets the priority
        when it comes."""
        if (found := self._entries.get(task_id)) is None:
            if task_id not in self._ended:
                self._priorities[task_id] = priority
            return False
        before, requires = found
        place = (-priority, task_id)
        places = self._lists[requires]
        places.remove(before)
        places.add(place)
        self._entries[task_id] = (place, requires)
        return True

    def reclassify(self, task_id: int, requires: RequirementClass) -> bool:
        """Move a task to another class, where its priority and id put it. False if it isn't here, or is of that class already: then it
        stays in line."""
        (negative, _), former = self._entries.get(task_id, ((0, task_id), requires))
        if former == requires:
            return False
        self.push(PendingEntry(task_id, -negative, requires))
        return True

    def end(self, task_id: int) -> None:
        """A pending task is final: it leaves, or never comes."""
        self._priorities.pop(task_id, None)
        if not self.discard(task_id):
            self._ended.add(task_id)

    def forget(self, task_id: int) -> None:
        """A task that isn't here doesn't come back with what was said of it."""
        self._priorities.pop(task_id, None)
        self._ended.discard(task_id)

    def position(self, task_id: int) -> int | None:
        """At which place the task stands among all that are pending; 1 is first. None if it isn't here."""
        if (found := self._entries.get(task_id)) is None:
            return None
        return 1 + sum(places.bisect_left(found[0]) for places in self._lists.values())
