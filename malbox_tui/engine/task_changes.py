"""Changes what waiting tasks ask for; what could not be served then, or makes no sense, is refused and changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Container

from malbox_tui.engine.lifecycle import Lifecycle
from malbox_tui.engine.profiles import Profiles
from malbox_tui.model.commands import ChangeTasks
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.task import RunOptions, Task, TaskState
from malbox_tui.model.task_change import changed_task


class TaskChanges:
    """Checks and makes changes of single tasks. `in_hand`: those that workers hold, which are pending no more."""

    def __init__(
        self, lifecycle: Lifecycle, profiles: Profiles, in_hand: Container[int], critical_timeout_s: Callable[[], float]
    ) -> None:
        self._lifecycle = lifecycle
        self._in_hand = in_hand
        self._profiles = profiles
        self._critical_timeout_s = critical_timeout_s

    def check(self, change: ChangeTasks) -> None:
        """Raises `RefusedCommand` for what makes no sense for any task."""
        if all(value is None for value in (change.task_type, change.platform, change.arch, change.tags, change.timeout_s)):
            raise RefusedCommand("Say what is to change: type, platform, arch, tags or timeout.")
        if (timeout_s := change.timeout_s) is None:
            return
        if not 0 < timeout_s < math.inf or timeout_s >= self._critical_timeout_s():
            bounds = f"it must be above 0, and below the critical timeout of {self._critical_timeout_s():g} s"
            raise RefusedCommand(f"An analysis timeout of {timeout_s:g} s: {bounds}.")

    async def carry_out(self, change: ChangeTasks, record: TaskRecord) -> str:
        """Change a task; what it asks for now, in a sentence. Raises `RefusedCommand`, `StaleTask`, `StoreError`."""
        task = record.task
        if task.state is not TaskState.PENDING or task.id in self._in_hand:
            raise RefusedCommand(f"Task {task.id} is {task.state}; only a waiting task can be changed.")
        changed = changed_task(task, change, self._profiles.of(task))
        requires = changed.requires
        problem = self._profiles.unserviceable(requires) if requires != task.requires else None
        if problem is None and not requires.needs_machine:
            problem = _needs_machine(task)
        if problem is not None:
            raise RefusedCommand(f"Task {task.id} can't be changed so: {problem}")
        await self._lifecycle.change(task, changed)
        return f"Task {task.id} is to be served as {requires}, for {changed.timeout_s:g} s."


def _needs_machine(task: Task) -> str | None:
    if task.run != RunOptions():
        return "its arguments, or the memory that is to be kept, need a machine."
    return "its machine is to be watched for the whole timeout." if task.enforce_timeout else None
