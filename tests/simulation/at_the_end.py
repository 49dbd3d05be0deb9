"""What has to hold when an engine has ended in good order, one function a sentence. Each gives None, or what is seen instead."""

from __future__ import annotations

import hashlib

from malbox_tui.model.report import GUEST_RUN, PluginStatus
from malbox_tui.model.task import TaskState
from malbox_tui.simulated.store import RIVAL
from tests.simulation.facts import Check, Facts
from tests.simulation.safety import rows_are_as_events_tell


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


def what_a_completed_task_found_is_kept(facts: Facts) -> str | None:
    """Each result that the runs of a task in a final state refer to is in the result store, as it was."""
    for row in facts.rows.values():
        for result in (result for run in row.plugins for result in run.results):
            content = facts.results.get(result.path)
            if content is None or hashlib.sha256(content).hexdigest() != result.sha256:
                return f"task {row.id} ({row.state}): {result}"
    return None


def no_task_that_lost_its_guest_is_completed(facts: Facts) -> str | None:
    """What is completed ran in its guest to an end; nothing but results that can't be kept fails its run there."""
    for row in facts.rows.values():
        in_guest = [run for run in row.plugins if run.name == GUEST_RUN]
        if row.state is TaskState.COMPLETED and any(
            run.status is not PluginStatus.COMPLETED and "could not be kept" not in run.reason for run in in_guest
        ):
            return f"task {row.id}: {in_guest}"
    return None


AT_THE_END: tuple[Check, ...] = (
    each_task_is_final_or_pending,
    nothing_is_left_running,
    each_machine_is_given_back,
    every_row_is_as_events_tell,
    what_a_completed_task_found_is_kept,
    no_task_that_lost_its_guest_is_completed,
)
