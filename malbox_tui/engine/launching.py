"""How the sample of a task is to be started: what kind of content it is, as the store knows it or else the plugins say, decides."""

from __future__ import annotations

import logging

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.launch import Launch, NoLaunch, launch_of
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.report import Identification
from malbox_tui.model.task import Task
from malbox_tui.ports import PluginBench, Store

log = logging.getLogger(__name__)


class CannotStart(Exception):
    """The task's machine can't start such a sample; the text says why, in a sentence."""


async def find_launch(task: Task, platform: str, store: Store, bench: PluginBench, sample_name: str) -> Launch:
    """The way to start the sample that lies in the bench's inbox, on a machine of this platform. Raises `CannotStart`."""
    launch = launch_of(await find_kind(task, store, bench, sample_name), platform)
    if isinstance(launch, NoLaunch):
        raise CannotStart(launch.reason)
    return launch


async def find_kind(task: Task, store: Store, bench: PluginBench, sample_name: str) -> Identification | None:
    """What kind of content it is, from the store or else from the plugins; None: nobody knows it, or can be asked."""
    try:
        page = await store.tasks(TaskQuery(where=TaskFilter(task_ids=(task.id,)), limit=1), 0.0)
        known = next((record.sample.identification for record in page.rows), None)
        return known or await bench.identify(sample_name)
    except MalboxError as error:
        log.warning("task %d: what kind of content its sample is can't be found out: %s", task.id, error)
        return None
