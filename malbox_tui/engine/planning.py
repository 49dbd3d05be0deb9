"""What the plan of the plugins means for one task: what it is told of, what the plugins are told, and which it can't do without."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from malbox_tui.engine.guest_order import GuestFindings
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import EventBody, PlannedStep, PluginResultAvailable, PluginsPlanned, PluginStopped
from malbox_tui.model.plan import Plan
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.report import GUEST_RUN, Identification, PluginStatus
from malbox_tui.model.task import Task
from malbox_tui.ports import Store

log = logging.getLogger(__name__)


def required_by(plan: Plan, names: Iterable[str]) -> frozenset[str]:
    """These plugins, and those whose results they need."""
    required = frozenset(names)
    return required | plan.needed_by(required)


def planned(task: Task, plan: Plan, kept_out: Mapping[str, str]) -> PluginsPlanned:
    """The plan of a task, those named that don't take part in it."""
    steps = (PlannedStep(step.plugin, kept_out.get(step.plugin) or str(step), step.plugin not in kept_out) for step in plan.steps)
    return PluginsPlanned(task_id=task.id, steps=tuple(steps))


def told_of_sample(task_id: int, found: GuestFindings | None, seconds: float) -> Iterator[EventBody]:
    """What plugins of this host are told when the run of the sample in its guest is over: its results, and its end."""
    run = next((run for run in found.runs if run.name == GUEST_RUN), None) if found is not None else None
    for result in run.results if run is not None else ():
        yield PluginResultAvailable(task_id=task_id, plugin=GUEST_RUN, result_name=result.name)
    status = PluginStatus.CANCELED if run is None else run.status
    yield PluginStopped(task_id=task_id, plugin=GUEST_RUN, status=status, seconds=seconds)


async def known_kind(task: Task, plan: Plan, store: Store) -> Identification | None:
    """What kind its content is, as the store knows it; None where no plugin asks for that, and where nobody knows."""
    if not any(step.kinds for step in plan.steps):
        return None
    try:
        page = await store.tasks(TaskQuery(where=TaskFilter(task_ids=(task.id,)), limit=1), 0.0)
    except StoreError as error:
        log.warning("task %d: what kind of content its sample is can't be looked up: %s", task.id, error)
        return None
    return next((record.sample.identification for record in page.rows), None)
