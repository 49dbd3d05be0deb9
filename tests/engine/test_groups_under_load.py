"""Plugin lists and slots of several groups, with hundreds of tasks, cancels and resizes among them: each keeps to its own."""

from __future__ import annotations

import asyncio
from collections import Counter

from malbox_tui.config.workers import ExecutionMode, PluginRestrictions, WorkerSettings
from malbox_tui.model.commands import CancelTasks, ResizeGroup
from malbox_tui.model.report import PluginStatus
from malbox_tui.model.task import TaskState
from tests.support.rig import EngineRig, ScriptedRunner, with_engine

TASKS = 300
WIDE, LEAN, BULK = "wide", "lean", "bulk"
GROUPS = (
    WorkerSettings(
        name=WIDE,
        priority=9,
        max_workers=3,
        max_concurrent_tasks=4,
        plugin_restrictions=PluginRestrictions(deny=("yara",)),
    ),
    WorkerSettings(name=LEAN, priority=7, max_workers=2, plugin_restrictions=PluginRestrictions(allow=("magic",))),
    WorkerSettings(
        name=BULK,
        priority=6,
        max_workers=2,
        execution_mode=ExecutionMode.BATCH,
        max_batch_size=5,
        plugin_restrictions=PluginRestrictions(allow=("magic", "strings"), deny=("strings",)),
    ),
)
KEPT_OUT = {
    WIDE: {"yara": "The worker group wide denies it."},
    LEAN: dict.fromkeys(("yara", "strings"), "The worker group lean allows magic only."),
    BULK: {
        "yara": "The worker group bulk allows magic, strings only.",
        "strings": "The worker group bulk denies it.",
    },
    "default": {},
}


def test_every_task_says_which_plugins_its_group_kept_out_and_no_worker_holds_more_than_it_may() -> None:
    group_of: dict[int, str] = {}
    most_held: Counter[str] = Counter()

    async def watch(rig: EngineRig) -> None:
        while True:
            for worker in (await rig.engine.overview()).workers:
                most_held[worker.group] = max(most_held[worker.group], len(worker.task_ids))
                group_of.update(dict.fromkeys(worker.task_ids, worker.group))
            await rig.pass_time(0.05)

    async def test(rig: EngineRig) -> None:
        async with asyncio.TaskGroup() as beside:
            watching = beside.create_task(watch(rig))
            await rig.add(*[f"sample {number}" for number in range(TASKS)])
            await rig.pass_time(5.0)
            await rig.do(CancelTasks(task_ids=tuple(range(20, TASKS, 17))))
            await rig.do(ResizeGroup(group=WIDE, max_workers=1))
            await rig.pass_time(5.0)
            await rig.do(ResizeGroup(group=WIDE, max_workers=3))
            tasks = await rig.all_final()
            watching.cancel()
        assert {task.state for task in tasks.values()} == {TaskState.COMPLETED, TaskState.CANCELED}
        completed = [task for task in tasks.values() if task.state is TaskState.COMPLETED]
        assert len(completed) > 0.9 * TASKS
        for task in completed:
            skipped = {run.name: run.reason for run in task.plugins if run.status is PluginStatus.SKIPPED}
            assert skipped == KEPT_OUT[group_of[task.id]], f"task {task.id} of {group_of[task.id]}"

    rig = with_engine(test, max_workers=2, groups=GROUPS, runner=ScriptedRunner(plugins=("magic", "yara", "strings")))
    assert set(group_of.values()) == set(KEPT_OUT), "every group had work"
    assert most_held == {WIDE: 4, LEAN: 1, BULK: 5, "default": 1}
    assert max(map(len, rig.runner.batches)) == 5
