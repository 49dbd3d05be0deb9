"""Who could take a task, and which machine could serve it: worked out anew, so that a mistake of the engine is not repeated here."""

from __future__ import annotations

from collections.abc import Iterator

from malbox_tui.config.settings import GroupSettings
from malbox_tui.engine.batch import Batch
from malbox_tui.engine.machine import Machine
from malbox_tui.engine.worker import Assignment
from malbox_tui.engine.worker_group import WorkerGroup
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import RequirementClass
from tests.simulation.facts import Entry, Facts
from tests.simulation.view import View


def has_room(group: WorkerGroup) -> bool:
    """Whether one of its workers can be handed a task, or one more could be started."""
    return len(group.workers) < group.max or any(
        worker.leaving is None and len(worker.held) < worker.slots for worker in group.workers.values()
    )


def takes(group: GroupSettings, requires: RequirementClass) -> bool:
    """Whether a group's profile allows a task."""
    by_type = group.task_types is None or requires.task_type in group.task_types
    by_platform = group.platforms is None or requires.platform is None or requires.platform in group.platforms
    return by_type and by_platform


def machine_is_free(view: View, requires: RequirementClass, platforms: frozenset[str] | None) -> bool:
    """Whether workers that take these platforms could have a machine for a task now, or it needs none.

    One that failed the task before is used again only when no group that may work has another in service.
    """
    if not requires.needs_machine:
        return True
    out = (MachineState.QUARANTINED, MachineState.MISSING, MachineState.DISABLED)
    there_is_another = any(
        machine.state not in out and machine.spec.name not in requires.avoid and fits(machine, requires, group.settings.platforms)
        for machine in view.machines.values()
        for group in view.groups.values()
        if group.max and takes(group.settings, requires)
    )
    return any(
        machine.state is MachineState.READY
        and fits(machine, requires, platforms)
        and not (there_is_another and machine.spec.name in requires.avoid)
        for machine in view.machines.values()
    )


def fits(machine: Machine, requires: RequirementClass, platforms: frozenset[str] | None) -> bool:
    """Whether a machine could ever serve a task, for workers that take these platforms (None: all)."""
    spec = machine.spec
    return (
        requires.platform in (None, spec.platform)
        and (requires.arch in (None, spec.arch) or (requires.arch == "x86" and spec.arch == "x64"))
        and set(requires.tags) <= set(spec.tags)
        and requires.pin in (None, spec.name)
        and (platforms is None or spec.platform in platforms)
    )


def may_wait(facts: Facts, group: WorkerGroup, requires: RequirementClass) -> bool:
    """Whether a group may still collect the tasks of a class that it takes."""
    pending = sum(entry[1] == requires for entry in facts.view.queue.values())
    return takes(group.settings, requires) and facts.collected.may_wait(group.settings, requires, pending, facts.wall.moment())


def batch_or_task(assignment: Assignment) -> object:
    return assignment if assignment.batch is None else assignment.batch


def handed_out(facts: Facts) -> Iterator[tuple[Entry, WorkerGroup, Machine | None, Batch | None]]:
    """What was taken from the queue and put into a worker's hands since the state before, with its machine and its batch."""
    view = facts.view
    for task_id in facts.queue_before.keys() - view.queue.keys():
        if task_id in facts.holders:
            worker = facts.holders[task_id][0]
            assignment = worker.held[task_id]
            lease = assignment.lease
            machine = None if lease is None else view.machines[lease.machine.name]
            place, _ = facts.queue_before[task_id]
            # Its class may have changed, and it been handed out for that, in one and the same step.
            yield (place, assignment.entry.requires), view.groups[worker.group], machine, assignment.batch
