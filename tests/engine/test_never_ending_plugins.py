"""Plugins that don't end when they are asked to: they are cut, and nothing else is lost with them."""

from __future__ import annotations

import pytest

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.model.commands import CancelTasks
from malbox_tui.model.report import PluginStatus
from malbox_tui.model.task import EndedBy, Task, TaskState
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, spec, states, with_engine

T = TaskState


def told(task: Task) -> tuple[TaskState, EndedBy | None, str]:
    return task.state, task.ended_by, task.reason or ""


@pytest.mark.parametrize(("cancel_grace_s", "flush_grace_s", "cut_s"), [(5.0, 12.0, 22.0), (15.0, 1.0, 25.0)])
def test_plugins_that_never_end_are_cut_and_the_worker_takes_its_next_task(
    cancel_grace_s: float, flush_grace_s: float, cut_s: float
) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        tasks = await rig.all_final()
        assert told(tasks[1]) == (T.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT, "The analysis timeout of 30 s ended it.")
        assert tasks[1].stages["running"] == pytest.approx(30.0 + cut_s)
        assert tasks[2].state is T.COMPLETED
        assert rig.runner.running == set()

    analysis = AnalysisSettings(timeout_s=30.0, cancel_grace_s=cancel_grace_s, flush_grace_s=flush_grace_s)
    with_engine(test, max_workers=1, runner=ScriptedRunner(hangs={1}), analysis=analysis)


def test_a_canceled_task_whose_plugins_never_end_is_cut_and_canceled() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.until_state(1, T.RUNNING)
        await rig.do(CancelTasks(task_ids=(1,)))
        assert states(await rig.all_final()) == [T.CANCELED, T.COMPLETED]
        assert (await rig.task(1)).stages["running"] == pytest.approx(20.0, abs=0.5)

    with_engine(test, max_workers=1, runner=ScriptedRunner(hangs={1}))


def test_what_was_found_in_the_guest_is_kept_when_the_plugins_here_never_end() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert told(task) == (T.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT, "The analysis timeout of 30 s ended it.")
        assert [(run.name, run.status) for run in task.plugins] == [("guest-run", PluginStatus.COMPLETED)]
        assert {"run", "report", "processes", "network.pcap"} <= {result.name for result in task.plugins[0].results}

    with_engine(test, machines=[spec("m1")], timeout_s=30.0, runner=ScriptedRunner(hangs={1}))
