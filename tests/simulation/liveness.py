"""What has to hold whenever nothing is ready, before time moves, one function a sentence. Each gives None, or what is seen instead."""

from __future__ import annotations

from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import TaskState
from malbox_tui.model.worker import WorkerKind
from malbox_tui.simulated.store import RIVAL
from tests.simulation.deciding import has_room, machine_is_free, may_wait, takes
from tests.simulation.facts import Check, Facts
from tests.simulation.view import listeners

SLOW_S = 15.0
"""What slow disks may add to the time in which an orphan is put right."""


def no_startable_task_waits(facts: Facts) -> str | None:
    """No task is pending while a worker that may take it has room or could still be started, and a machine that it needs is free;
    unless the group that is preferred collects a batch, and for no longer than it may.

    A wake-up that was lost shows here.
    """
    view = facts.view
    if view.is_paused or view.is_ending:
        return None
    with_room = [group for group in view.groups.values() if has_room(group)]
    for requires in {requires for _, requires in view.queue.values()} if with_room else ():
        able = [
            group
            for group in with_room
            if takes(group.settings, requires) and machine_is_free(view, requires, group.settings.platforms)
        ]
        if able and not may_wait(facts, group := max(able, key=lambda group: group.settings.priority), requires):
            waiting = sorted(task_id for task_id, entry in view.queue.items() if entry[1] == requires)
            return f"tasks {waiting} ({requires}) wait, and {group!r} could take them"
    return None


def a_batch_that_has_ended_listens_to_nobody(facts: Facts) -> str | None:
    """Its bench lets go of the tokens of all that were in it."""
    there = {assignment.batch for _, worker in facts.view.workers() for assignment in worker.held.values()}
    for task_id, token, batch in facts.let_go:
        if batch not in there and (count := listeners(token)):
            return f"{count} still listen to the token of task {task_id}, of which {batch!r} has ended"
    facts.let_go = [entry for entry in facts.let_go if entry[2] in there]
    return None


def no_attempt_goes_on_for_ever(facts: Facts) -> str | None:
    """Each ends when it has had the time that it may take; what its plugins and its clean-up may take comes on top."""
    return None if facts.view.store_fails or facts.store.answers_due else facts.attempts.too_late(facts.wall.moment())


def clocks_stand_for_a_reason(facts: Facts) -> str | None:
    """The clock of an attempt stands while it shares a bench with others, or waits for a full disk."""
    return None if facts.view.store_fails else facts.attempts.stands_alone()


def baseline_is_the_minimum(facts: Facts) -> str | None:
    """As many workers as the minimum says are baseline and stay; no more are."""
    view = facts.view
    if view.is_ending:
        return None
    for group in view.groups.values():
        baseline = sum(worker.kind is WorkerKind.BASELINE for worker in group.staying())
        room = max(0, group.max - (len(group.workers) - len(group.staying())))
        if baseline != group.min and not baseline == min(group.min, room) < group.min:
            return f"{baseline} baseline workers stay in {group!r}"
    return None


def only_busy_workers_linger(facts: Facts) -> str | None:
    """A worker that was asked to leave is there for nothing but the tasks it holds."""
    for _, worker in facts.view.workers():
        if worker.leaving is not None and not worker.held:
            return f"{worker!r} holds nothing and has not left"
    return None


def workers_are_as_events_tell(facts: Facts) -> str | None:
    """Whoever reads the news knows which workers there are, and of which kind."""
    there = {worker.id: worker.kind for _, worker in facts.view.workers()}
    return f"there are {there}, told was {facts.mirror.workers}" if there != facts.mirror.workers else None


def machines_are_as_events_tell(facts: Facts) -> str | None:
    """Whoever reads the news knows what each machine is at, and for whom."""
    for name, machine in facts.view.machines.items():
        told = facts.mirror.machines.get(name, (MachineState.REVERTING, None))
        is_at = (machine.state, None if machine.lease is None else machine.lease.task_id)
        if told != is_at:
            return f"{machine!r}, told was {told}"
    return None


def the_queue_holds_what_is_pending(facts: Facts) -> str | None:
    """What stands in the queue is pending, and stands where its stored priority puts it. A store that is slow to answer delays that;
    what another engine took in the step in which it was given back here is found to be gone only when it is claimed."""
    if facts.store.answers_due:
        return None
    for task_id, (place, _) in facts.view.queue.items():
        told = facts.mirror.tasks[task_id]
        if told.worker == RIVAL:
            continue
        if told.state is not TaskState.PENDING or place != (-told.priority, task_id):
            return f"task {task_id} stands at {place}, stored is {told}"
    return None


def the_queue_remembers_nothing_in_vain(facts: Facts) -> str | None:
    """What it keeps for tasks that are not in it is for those that a worker may bring back; else it would grow for ever."""
    if facts.view.is_closed or facts.store.answers_due:
        return None
    forgotten = facts.view.said_of_absent - facts.holders.keys()
    return f"something is kept for {sorted(forgotten)}" if forgotten else None


def the_pool_waits_for_the_store_while_it_fails(facts: Facts) -> str | None:
    """And goes on by itself when it works again."""
    view = facts.view
    if view.waits_for_store != view.store_fails and not view.is_closed:
        return f"the store fails: {view.store_fails}, the pool waits for it: {view.waits_for_store}"
    return None


def orphans_are_put_right(facts: Facts) -> str | None:
    """A task whose lease ran out, and that no worker here holds, doesn't stay so for longer than leases last."""
    if facts.view.was_told_to_stop or facts.view.store_fails or facts.store.answers_due:
        facts.orphans.clear()
        return None
    now, moment = facts.wall.now(), facts.wall.moment()
    ran_out = {
        task_id
        for task_id, row in facts.rows.items()
        if row.lease_until is not None and row.lease_until < now and task_id not in facts.holders
    }
    facts.orphans = {task_id: facts.orphans.get(task_id, moment) for task_id in ran_out}
    late = sorted(task_id for task_id, since in facts.orphans.items() if moment - since > facts.wall.lease_s + SLOW_S)
    return f"tasks {late} are owned by nobody here, and their leases ran out long ago" if late else None


def each_pending_task_is_somewhere(facts: Facts) -> str | None:
    """A pending task stands in the queue, or is about to be claimed or put back by whoever holds it; or the store has yet to answer."""
    view = facts.view
    if view.was_told_to_stop or facts.store.answers_due:
        return None
    for task_id in facts.mirror.pending:
        if task_id not in view.queue and task_id not in facts.holders:
            return f"task {task_id} is pending and stands nowhere"
    return None


AT_REST: tuple[Check, ...] = (
    no_startable_task_waits,
    a_batch_that_has_ended_listens_to_nobody,
    no_attempt_goes_on_for_ever,
    clocks_stand_for_a_reason,
    baseline_is_the_minimum,
    only_busy_workers_linger,
    workers_are_as_events_tell,
    machines_are_as_events_tell,
    the_queue_holds_what_is_pending,
    the_queue_remembers_nothing_in_vain,
    the_pool_waits_for_the_store_while_it_fails,
    orphans_are_put_right,
    each_pending_task_is_somewhere,
)
