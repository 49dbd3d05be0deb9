"""Why a task waits, in words: from the state of the moment, the first thing that keeps it."""

from __future__ import annotations

import msgspec

from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.queue import TaskQueue
from malbox_tui.engine.worker_group import WorkerGroup, terms_of
from malbox_tui.engine.worker_pool import WorkerPool
from malbox_tui.model.queries import TaskPage, Waiting
from malbox_tui.model.task import HOST_ONLY_TYPES, RequirementClass, TaskState


class WaitingRoom:
    """Looks at queue, workers and machines, and says what a pending task waits for."""

    def __init__(self, queue: TaskQueue, pool: WorkerPool, machines: MachinePool) -> None:
        self._queue = queue
        self._pool = pool
        self._machines = machines

    def explain(self, page: TaskPage) -> TaskPage:
        """The page, with what each of its pending tasks waits for."""
        reasons: dict[RequirementClass, str] = {}
        rows = []
        for row in page.rows:
            task = row.task
            if task.state is TaskState.PENDING:
                position = self._queue.position(task.id)
                if position is None:
                    reason = "a worker is taking it"
                elif (reason := reasons.get(task.requires, "")) == "":
                    reason = reasons[task.requires] = self.reason(task.requires)
                waiting = Waiting(reason, position, len(self._queue), task.stage_since)
                row = msgspec.structs.replace(row, waiting=waiting)
            rows.append(row)
        return msgspec.structs.replace(page, rows=tuple(rows))

    def reason(self, requires: RequirementClass) -> str:
        """The first thing that keeps a task of this class from being taken."""
        if self._pool.is_ending:
            return "the engine is stopping; the next start goes on with it"
        if (paused := self._pool.paused) is not None:
            return paused
        if (impossible := self.impossible(requires)) is not None:
            return f"held: {impossible}"
        groups = [group for group in self._pool.groups.values() if group.takes(requires)]
        possible = [group for group in groups if not requires.needs_machine or self._serves(requires, group)]
        if not any(group.max or group.active for group in possible):
            return f"{_named(possible)} may have no worker: max is 0"
        if with_room := [group for group in possible if group.may_take_one_more()]:
            if requires.needs_machine:
                return self._machines.waiting(requires, terms_of(with_room))
            return self._collected(requires, with_room) or "next in line"
        busy = sum(group.busy for group in possible)
        return f"all workers of {_named(possible)} are busy ({busy} of {sum(group.max for group in possible)})"

    def impossible(self, requires: RequirementClass) -> str | None:
        """Why nothing that is configured could ever serve such a task, a sentence; None when something could."""
        groups = [group for group in self._pool.groups.values() if group.takes(requires)]
        if not groups:
            takes = "; ".join(f"{group.name} takes {group.takes_in_words()}" for group in self._pool.groups.values())
            return f"No worker group takes {_kind(requires)}: {takes}."
        if not requires.needs_machine:
            return None
        reasons = [self._machines.impossible(requires, group.terms) for group in groups]
        return None if any(reason is None for reason in reasons) else reasons[0]

    def refusal(self, requires: RequirementClass) -> str | None:
        """Why there is no use in such a task, a sentence; None when there is."""
        return self.nonsense(requires) or self.impossible(requires)

    def nonsense(self, requires: RequirementClass) -> str | None:
        """Why such a task makes no sense, whatever is configured later, a sentence; None when it does."""
        if requires.task_type in HOST_ONLY_TYPES and requires.asks_for_machine:
            return f"A {requires.task_type} task needs no machine, so it can't ask for {_demands(requires)}. Make it dynamic."
        known = {"static", "dynamic"}.union(*(group.settings.task_types or () for group in self._pool.groups.values()))
        if requires.task_type not in known:
            return f"There is no task type {requires.task_type!r}; there is {', '.join(sorted(known))}."
        return None

    def _collected(self, requires: RequirementClass, with_room: list[WorkerGroup]) -> str | None:
        """That a batch is being collected, if the group that is asked first runs batches."""
        first = max(with_room, key=lambda group: group.settings.priority)
        if not self._pool.collecting(first, requires):
            return None
        there, size, wait_s = self._queue.count(requires), first.settings.batch_size, first.settings.batch_wait_s
        return f"{first.name} collects a batch: {there} of {size}, for {wait_s:g} s at most"

    def _serves(self, requires: RequirementClass, group: WorkerGroup) -> bool:
        return self._machines.impossible(requires, group.terms) is None


def _named(groups: list[WorkerGroup]) -> str:
    return " and ".join(group.name for group in groups)


def _kind(requires: RequirementClass) -> str:
    return f"{requires.task_type} tasks{f' on {requires.platform}' if requires.platform else ''}"


def _demands(requires: RequirementClass) -> str:
    parts = [f"platform {requires.platform}" if requires.platform else "", f"arch {requires.arch}" if requires.arch else ""]
    parts += [f"tag {tag}" for tag in requires.tags]
    parts.append(f"machine {requires.pin}" if requires.pin else "")
    return ", ".join(part for part in parts if part)
