"""What has to hold between any two steps of the loop, one function a sentence. Each gives None, or what is seen instead."""

from __future__ import annotations

from malbox_tui.engine.batch import Batch
from malbox_tui.engine.worker_group import WorkerGroup
from malbox_tui.model.machine import BUSY_STATES
from malbox_tui.model.task import RequirementClass
from tests.simulation import hits
from tests.simulation.batch_rules import fault_of_batch
from tests.simulation.deciding import batch_or_task, fits, handed_out, has_room, machine_is_free, may_wait, takes
from tests.simulation.facts import Check, Facts
from tests.simulation.mirror import disagreement
from tests.simulation.view import listeners


def each_task_has_one_owner(facts: Facts) -> str | None:
    """No task is held by two workers, or held and waiting in the queue at the same time."""
    for task_id, holders in facts.holders.items():
        if len(holders) > 1:
            return f"task {task_id} is held by {holders}"
        if task_id in facts.view.queue:
            return f"task {task_id} is held by {holders[0]!r} and waits in the queue"
    return None


def a_worker_holds_no_more_than_its_slots(facts: Facts) -> str | None:
    """So running tasks never outnumber the slots of busy workers. A batch takes one, and is taken only while there is one."""
    for _, worker in facts.view.workers():
        if len({batch_or_task(assignment) for assignment in worker.held.values()}) > worker.slots:
            return f"{worker!r} has {worker.slots} slots"
    return None


def each_batch_is_of_one_class_and_full_or_due(facts: Facts) -> str | None:
    """Tasks run together only where they may, no more of them than may, and fewer only after they were waited for."""
    moment = facts.wall.moment()
    batches: dict[Batch, tuple[WorkerGroup, set[RequirementClass]]] = {}
    for (_, requires), group, _, batch in handed_out(facts):
        if batch is not None:
            batches.setdefault(batch, (group, set()))[1].add(requires)
        elif group.settings.batch_size > 1 and not requires.needs_machine:
            return f"a task ({requires}) was handed to {group!r} by itself"
    for batch, (group, classes) in batches.items():
        requires = next(iter(classes))
        waited_s = facts.collected.waited_s(requires, moment)
        facts.collected.handed_out(requires, moment)
        facts.mirror.hits[hits.BATCHES[len(batch.task_ids) < group.settings.batch_size]] += 1
        if (fault := fault_of_batch(group.settings, classes, len(batch.task_ids), waited_s)) is not None:
            return fault
    return None


def what_runs_is_held(facts: Facts) -> str | None:
    """Each task that is being driven is held by a worker, unless the engine is cutting what did not stop in time."""
    if facts.view.is_closed:
        return None
    loose = facts.view.tokens.keys() - facts.holders.keys()
    return f"tasks {sorted(loose)} are driven and held by nobody" if loose else None


def those_that_stay_fit_the_limits(facts: Facts) -> str | None:
    """Of each group no more workers stay than its maximum; surplus ones have been asked to leave."""
    for group in facts.view.groups.values():
        staying = len(group.staying())
        if staying > group.max:
            return f"{staying} of {group!r} stay"
    return None


def each_machine_serves_one_task(facts: Facts) -> str | None:
    """A machine is held by a task exactly while it is busy, and no task holds two."""
    holders: dict[int, str] = {}
    for name, machine in facts.view.machines.items():
        lease = machine.lease
        if (lease is not None) != (machine.state in BUSY_STATES):
            return f"{machine!r}"
        if lease is not None:
            if lease.task_id in holders:
                return f"task {lease.task_id} holds {holders[lease.task_id]} and {name}"
            holders[lease.task_id] = name
    return None


def a_machine_is_held_by_a_task_in_hand(facts: Facts) -> str | None:
    """Whoever holds a machine is held by a worker: nothing in the queue, and nothing that has ended, keeps one."""
    if facts.view.is_closed:
        return None
    for machine in facts.view.machines.values():
        if machine.lease is not None and machine.lease.task_id not in facts.holders:
            return f"{machine!r} is held for a task that nobody holds"
    return None


def the_best_startable_task_goes_first(facts: Facts) -> str | None:
    """A task is never handed out before one that waited, stands before it, and could have had its worker and a machine."""
    view = facts.view
    for (place, _), group, machine, batch in handed_out(facts):
        if batch is not None and place[1] != batch.task_ids[0]:
            # Whoever is in a batch beside the first takes nobody's place.
            continue
        for other, (other_place, requires) in view.queue.items():
            if (
                other_place > place
                or facts.queue_before.get(other) != (other_place, requires)
                or not takes(group.settings, requires)
                or any(may_wait(facts, other_group, requires) for other_group in view.groups.values())
            ):
                continue
            platforms = group.settings.platforms
            in_its_place = machine is not None and machine.spec.name not in requires.avoid and fits(machine, requires, platforms)
            if in_its_place or machine_is_free(view, requires, platforms):
                return f"task {place[1]} {place} was handed to {group!r} before task {other} {other_place} ({requires})"
    return None


def the_preferred_group_is_used(facts: Facts) -> str | None:
    """A task goes to the group of the highest priority that takes it and had room for it."""
    for (place, requires), group, machine, _ in handed_out(facts):
        for other in facts.view.groups.values():
            if (
                other.settings.priority > group.settings.priority
                and takes(other.settings, requires)
                and has_room(other)
                and (machine is None or fits(machine, requires, other.settings.platforms))
            ):
                return f"task {place[1]} went to {group!r}, and {other!r} could have taken it"
    return None


def children_are_done_before_their_token_is_dropped(facts: Facts) -> str | None:
    """Nobody listens to the token of an attempt that has ended, nor to one below it. A bench that a batch shares may, as long as others
    are on it."""
    tokens = facts.view.tokens
    for task_id, token in facts.tokens_before.items():
        if tokens.get(task_id) is token:
            continue
        if task_id in facts.batches_before:
            facts.let_go.append((task_id, token, facts.batches_before[task_id]))
        elif count := listeners(token):
            return f"{count} still listen to the token of task {task_id}"
    return None


def a_stop_reaches_every_attempt(facts: Facts) -> str | None:
    """Once tasks are to be given back or canceled, each attempt has been told to end."""
    if not facts.view.attempts_are_to_end:
        return None
    untold = sorted(task_id for task_id, token in facts.view.tokens.items() if token.reason is None)
    return f"the attempts at tasks {untold} were not told" if untold else None


def rows_are_as_events_tell(facts: Facts) -> str | None:
    """Whoever replays the stored events has the same tasks as the store."""
    mirror = facts.mirror
    while mirror.changed:
        task_id = mirror.changed.pop()
        row = facts.rows.get(task_id)
        if row is None:
            return f"task {task_id} is told of and not stored"
        if (difference := disagreement(mirror.tasks[task_id], row)) is not None:
            return f"task {task_id}: {difference}"
    return None


AFTER_EACH_STEP: tuple[Check, ...] = (
    each_task_has_one_owner,
    a_worker_holds_no_more_than_its_slots,
    each_batch_is_of_one_class_and_full_or_due,
    what_runs_is_held,
    those_that_stay_fit_the_limits,
    each_machine_serves_one_task,
    a_machine_is_held_by_a_task_in_hand,
    the_best_startable_task_goes_first,
    the_preferred_group_is_used,
    children_are_done_before_their_token_is_dropped,
    a_stop_reaches_every_attempt,
)
"""Checked whenever something has changed that they depend on."""

AFTER_EACH_COMMIT: tuple[Check, ...] = (rows_are_as_events_tell,)
