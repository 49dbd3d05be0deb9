"""How long tasks have waited for their batch, by a clock of our own, and what has to hold of a batch that is handed out."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from malbox_tui.config.settings import GroupSettings
from malbox_tui.model.task import RequirementClass

EPSILON_S = 1e-6
Queue = Mapping[int, tuple[tuple[int, int], RequirementClass]]
"""Task id → its place and its class."""


class CollectionWatch:
    """Since when each class waits: since the first of its tasks came, or since the latest batch of it was handed out."""

    def __init__(self) -> None:
        self._since: dict[RequirementClass, float] = {}
        self._since_before: dict[RequirementClass, float] = {}
        """Before the latest change of the queue."""
        self._held_until = 0.0

    def look(self, before: Queue, queue: Queue, moment: float) -> None:
        """The queue has changed."""
        there, stayed = set(), set()
        for task_id, entry in queue.items():
            there.add(entry[1])
            if task_id in before:
                stayed.add(entry[1])
        self._since_before = self._since
        self._since = {requires: self._since.get(requires, moment) if requires in stayed else moment for requires in there}

    def handed_out(self, requires: RequirementClass, moment: float) -> None:
        """A batch of this class was handed out: what is left of it begins anew."""
        if requires in self._since:
            self._since[requires] = moment

    def held(self, moment: float) -> None:
        """No task is taken at this moment, whatever waits."""
        self._held_until = moment

    def waited_s(self, requires: RequirementClass, moment: float) -> float:
        """How long a class had waited for its batch when the queue changed."""
        return moment - self._since_before.get(requires, moment)

    def may_wait(self, group: GroupSettings, requires: RequirementClass, pending: int, moment: float) -> bool:
        """Whether a group that has room for these may still collect them."""
        if group.batch_size == 1 or requires.needs_machine or pending >= group.batch_size:
            return False
        since = max(self._since[requires], self._held_until)
        return moment - since < group.batch_wait_s + EPSILON_S


def fault_of_batch(group: GroupSettings, classes: Collection[RequirementClass], size: int, waited_s: float) -> str | None:
    """What is wrong with a batch of so many tasks of `classes`, of which the first waited so long; None if nothing is."""
    if len(classes) > 1 or any(requires.needs_machine for requires in classes):
        return f"a batch holds {classes}"
    if size > group.batch_size:
        return f"a batch of {group.name} has {size} tasks, of {group.batch_size} at most"
    if size < group.batch_size and waited_s < group.batch_wait_s - EPSILON_S:
        return f"a batch of {size} tasks was run after {waited_s:g} s, of {group.batch_wait_s:g} s that it may be waited for"
    return None
