"""What has to hold, one function a sentence. Each gives None, or what is seen instead.

`AFTER_EACH_STEP` is safety: it holds between any two steps of the loop. `AT_REST` is liveness: it holds whenever nothing is ready, and
before time moves. `AT_THE_END` holds when an engine has ended in good order. They read the engine through `view.py` and decide for
themselves what could start and who could take it: a mistake in the engine's own tables is not repeated here. (Long because they stand
together: it is the list of what the engine promises.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from malbox_tui.config.settings import GroupSettings
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.machine import Machine
from malbox_tui.engine.worker import Worker
from malbox_tui.engine.worker_group import WorkerGroup
from malbox_tui.model.machine import BUSY_STATES, MachineState
from malbox_tui.model.task import RequirementClass, Task, TaskState
from malbox_tui.model.worker import WorkerKind
from malbox_tui.simulated.store import RIVAL
from tests.simulation.mirror import Mirror, disagreement
from tests.simulation.view import View, listeners
from tests.simulation.watched_store import WatchedStore

SLOW_S = 15.0
"""What slow disks may add to the time in which an orphan is put right."""


class Time(Protocol):
    """Wall time, the loop's time, and how long leases last."""

    lease_s: float

    def now(self) -> float: ...

    def moment(self) -> float: ...


Entry = tuple[tuple[int, int], RequirementClass]
"""Of a pending task: its place in the queue, the smallest first, and what it requires."""


@dataclass(slots=True)
class Facts:
    """What the checks look at: the engine, the rows of the store, what the events say, and what was there before the latest change."""

    view: View
    rows: Mapping[int, Task]
    mirror: Mirror
    store: WatchedStore
    wall: Time
    left: frozenset[int] = frozenset()
    """Tasks that the engine said it could not stop in time."""
    holders: dict[int, list[Worker]] = field(default_factory=dict)
    """Task id → the workers that hold it."""
    queue_before: dict[int, Entry] = field(default_factory=dict)
    tokens_before: dict[int, CancelToken] = field(default_factory=dict)
    orphans: dict[int, float] = field(default_factory=dict)
    """Tasks whose lease ran out and that nobody holds → since when, on the loop's clock."""
    _seen: tuple[object, ...] = ()

    def look(self) -> bool:
        """Take a look; False when nothing has changed that a check after a step depends on. Cheap, since most steps change nothing."""
        view = self.view
        workers = [(worker, worker.leaving, *worker.held) for group in view.groups.values() for worker in group.workers.values()]
        machines = [(machine.state, machine.lease) for machine in view.machines.values()]
        limits = [group.max for group in view.groups.values()]
        seen = (workers, machines, limits, len(view.tokens), len(view.queue))
        if seen == self._seen and view.tokens == self.tokens_before and view.queue == self.queue_before:
            return False
        self._seen = seen
        self.holders = {}
        for worker, _, *held in workers:
            for task_id in held:
                self.holders.setdefault(task_id, []).append(worker)
        return True

    def remember(self) -> None:
        """Keep what was looked at as the state before."""
        self.queue_before = dict(self.view.queue)
        self.tokens_before = dict(self.view.tokens)


Check = Callable[[Facts], str | None]


# --- after each step ----------------------------------------------------------------------------------------------------------------


def each_task_has_one_owner(facts: Facts) -> str | None:
    """No task is held by two workers, or held and waiting in the queue at the same time."""
    for task_id, holders in facts.holders.items():
        if len(holders) > 1:
            return f"task {task_id} is held by {holders}"
        if task_id in facts.view.queue:
            return f"task {task_id} is held by {holders[0]!r} and waits in the queue"
    return None


def a_worker_holds_no_more_than_its_slots(facts: Facts) -> str | None:
    """So running tasks never outnumber the slots of busy workers."""
    for _, worker in facts.view.workers():
        if len(worker.held) > worker.slots:
            return f"{worker!r} has {worker.slots} slots"
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
    for (place, _), group, machine in _handed_out(facts):
        for other, (other_place, requires) in view.queue.items():
            if (
                other_place > place
                or facts.queue_before.get(other) != (other_place, requires)
                or not takes(group.settings, requires)
            ):
                continue
            platforms = group.settings.platforms
            in_its_place = machine is not None and machine.spec.name not in requires.avoid and fits(machine, requires, platforms)
            if in_its_place or machine_is_free(view, requires, platforms):
                return f"task {place[1]} {place} was handed to {group!r} before task {other} {other_place} ({requires})"
    return None


def the_preferred_group_is_used(facts: Facts) -> str | None:
    """A task goes to the group of the highest priority that takes it and had room for it."""
    for (place, requires), group, machine in _handed_out(facts):
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
    """Nobody listens to the token of an attempt that has ended, nor to one below it."""
    tokens = facts.view.tokens
    for task_id, token in facts.tokens_before.items():
        if tokens.get(task_id) is not token and (count := listeners(token)):
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


# --- at rest ------------------------------------------------------------------------------------------------------------------------


def no_startable_task_waits(facts: Facts) -> str | None:
    """No task is pending while a worker that may take it has room or could still be started, and a machine that it needs is free.

    A wake-up that was lost shows here.
    """
    view = facts.view
    if view.is_paused or view.is_ending:
        return None
    with_room = [group for group in view.groups.values() if has_room(group)]
    for requires in {requires for _, requires in view.queue.values()} if with_room else ():
        for group in with_room:
            if takes(group.settings, requires) and machine_is_free(view, requires, group.settings.platforms):
                waiting = sorted(task_id for task_id, entry in view.queue.items() if entry[1] == requires)
                return f"tasks {waiting} ({requires}) wait, and {group!r} could take them"
    return None


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
    """What stands in the queue is pending, and stands where its stored priority puts it. A store that is slow to answer delays that."""
    if facts.store.answers_due:
        return None
    for task_id, (place, _) in facts.view.queue.items():
        told = facts.mirror.tasks[task_id]
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


# --- at the end ---------------------------------------------------------------------------------------------------------------------


def each_task_is_final_or_pending(facts: Facts) -> str | None:
    """Nothing is owned by an engine that has ended, but what it said it leaves."""
    owned = [row for row in facts.rows.values() if row.state.is_owned and row.worker != RIVAL and row.id not in facts.left]
    return f"{owned}" if owned else None


def nothing_is_left_running(facts: Facts) -> str | None:
    """The engine owns no asyncio task, no worker, no token and no reader any more."""
    view = facts.view
    left = [*view.tracked(), *(repr(worker) for _, worker in view.workers()), *map(str, view.tokens)]
    if view.subscriptions():
        left.append(f"{view.subscriptions()} subscriptions")
    return ", ".join(left) or None


def each_machine_is_given_back(facts: Facts) -> str | None:
    """No machine is held by a task."""
    held = [repr(machine) for machine in facts.view.machines.values() if machine.lease is not None]
    return ", ".join(held) or None


def every_row_is_as_events_tell(facts: Facts) -> str | None:
    """All rows, those included that did not change lately, follow from the events."""
    if set(facts.rows) != set(facts.mirror.tasks):
        return f"rows {sorted(facts.rows)}, told {sorted(facts.mirror.tasks)}"
    facts.mirror.changed.update(facts.rows)
    return rows_are_as_events_tell(facts)


# --- deciding for ourselves -----------------------------------------------------------------------------------------------------------


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


def _handed_out(facts: Facts) -> Iterator[tuple[Entry, WorkerGroup, Machine | None]]:
    """What was taken from the queue and put into a worker's hands since the state before, with its machine."""
    view = facts.view
    for task_id in facts.queue_before.keys() - view.queue.keys():
        if task_id in facts.holders:
            worker = facts.holders[task_id][0]
            lease = worker.held[task_id].lease
            machine = None if lease is None else view.machines[lease.machine.name]
            yield facts.queue_before[task_id], view.groups[worker.group], machine


AFTER_EACH_STEP: tuple[Check, ...] = (
    each_task_has_one_owner,
    a_worker_holds_no_more_than_its_slots,
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

AT_REST: tuple[Check, ...] = (
    no_startable_task_waits,
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

AT_THE_END: tuple[Check, ...] = (
    each_task_is_final_or_pending,
    nothing_is_left_running,
    each_machine_is_given_back,
    every_row_is_as_events_tell,
)
