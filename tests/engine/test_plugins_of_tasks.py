"""What the engine makes of the plan of its plugins: what is told, which plugins a task can't do without, and reading them again."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from malbox_tui.config.settings import PluginSettings, WorkerSettings
from malbox_tui.config.workers import PluginRestrictions
from malbox_tui.model.commands import ReloadPlugins
from malbox_tui.model.errors import ConfigError, ManifestError
from malbox_tui.model.events import ConfigReloaded, PlannedStep, PluginsPlanned, TaskCompleted, TaskStarting
from malbox_tui.model.plan import PlannedPlugin
from malbox_tui.model.report import Identification, PluginRun, PluginStatus
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from malbox_tui.ports import GuestPlugin
from tests.support.rig import EngineRig, spec, with_engine
from tests.support.scripted import CLEAN_RUN, ScriptedRunner

PLANNED = (
    PlannedPlugin(name="unpacker", gives=("unpacked",)),
    PlannedPlugin(name="scanner", needs=("unpacked",)),
    PlannedPlugin(name="aside", kinds=("pe",)),
)


def run(name: str, status: PluginStatus = PluginStatus.COMPLETED, reason: str = "") -> PluginRun:
    return msgspec.structs.replace(CLEAN_RUN, name=name, status=status, reason=reason)


CRASHED = run("unpacker", PluginStatus.FAILED, "it crashed")
SKIPPED = run("scanner", PluginStatus.SKIPPED, "it needs unpacked, and unpacker failed")
LATE = run("unpacker", PluginStatus.TIMED_OUT, "it took longer than its own limit of 3 s")


@pytest.mark.parametrize(
    ("required", "runs", "state", "reason"),
    [
        ((), (CRASHED, run("aside")), TaskState.COMPLETED, "Finished; 1 of 2 plugins failed: unpacker: it crashed."),
        ((), (CRASHED,), TaskState.FAILED, "Every plugin failed: unpacker: it crashed."),
        (("unpacker",), (CRASHED, run("aside")), TaskState.FAILED, "A required plugin failed: unpacker: it crashed."),
        (("scanner",), (CRASHED, SKIPPED, run("aside")), TaskState.FAILED, "A required plugin failed: unpacker: it crashed."),
        (("unpacker",), (LATE, run("aside")), TaskState.FAILED, f"A required plugin failed: unpacker: {LATE.reason}."),
        (
            ("aside",),
            (CRASHED, SKIPPED, run("aside")),
            TaskState.COMPLETED,
            "Finished; 1 of 2 plugins failed: unpacker: it crashed.",
        ),
        (
            ("scanner",),
            (run("unpacker"), msgspec.structs.replace(SKIPPED, reason="it needs unpacked, and unpacker found none")),
            TaskState.COMPLETED,
            "Finished.",
        ),
        (
            ("unpacker", "aside"),
            (CRASHED, run("aside", PluginStatus.FAILED, "no")),
            TaskState.FAILED,
            "Required plugins failed: unpacker: it crashed; aside: no.",
        ),
    ],
)
def test_a_task_fails_only_by_plugins_that_are_required(
    required: tuple[str, ...], runs: tuple[PluginRun, ...], state: TaskState, reason: str
) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert (task.state, task.reason) == (state, reason)
        assert task.ended_by is (EndedBy.FINISHED if state is TaskState.COMPLETED else EndedBy.PLUGIN_ERROR)

    names = ("unpacker", "scanner", "aside")
    runner = ScriptedRunner(runs=runs, planned=PLANNED, plugins=names)
    with_engine(test, runner=runner, plugins=PluginSettings(required=required))


def test_the_plan_is_told_before_a_task_begins() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.all_final()
        (planned,) = [event for event in rig.events if isinstance(event.body, PluginsPlanned)]
        assert planned.body == PluginsPlanned(
            task_id=1,
            steps=(
                PlannedStep("aside", "for pe only, at once"),
                PlannedStep("unpacker", "at once"),
                PlannedStep("scanner", "Worker group default denies it.", takes_part=False),
            ),
        )
        assert not planned.durable
        kinds = [type(event.body) for event in rig.events]
        assert kinds.index(TaskStarting) < kinds.index(PluginsPlanned) < kinds.index(TaskCompleted)

    def deny(rig: EngineRig) -> None:
        rig.engine._driver._kept_out = lambda group: {"scanner": f"Worker group {group} denies it."}

    with_engine(test, runner=ScriptedRunner(planned=PLANNED), prepare=deny)


def test_what_was_known_of_a_samples_kind_is_told_where_plugins_ask_for_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.all_final()
        await rig.store.identify((await rig.tasks())[1].sha256, Identification("pe"))
        await rig.add("sample", again=True)
        await rig.all_final()
        assert [job.identification for job in rig.runner.jobs] == [None, Identification("pe")]
        assert {job.task_type for job in rig.runner.jobs} == {"static"}

    with_engine(test, runner=ScriptedRunner(planned=PLANNED))


def test_the_clock_of_a_task_stands_while_its_plugins_wait_for_those_of_others() -> None:
    class Waiting(ScriptedRunner):
        async def work(self, job, stop):  # type: ignore[no-untyped-def]
            job.on_wait(True)
            self.seconds, seconds = 60.0, self.seconds
            await self._finish(job.task_id, stop)
            self.seconds = seconds
            job.on_wait(False)
            return await super().work(job, stop)

    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        assert (await rig.all_final())[1].state is TaskState.COMPLETED

    with_engine(test, runner=Waiting(), timeout_s=10.0)


def test_plugins_are_read_again_on_request() -> None:
    async def test(rig: EngineRig) -> None:
        outcome = await rig.do(ReloadPlugins())
        assert outcome.done
        assert outcome.message == (
            "The plugins were read again: x 1 was added, y was removed. Tasks that begin from now on have them as they are."
        )
        await rig.add("sample", requires=RequirementClass(task_type="dynamic", platform="linux"))
        await rig.all_final()
        assert "watcher" in [found.name for found in (await rig.tasks())[1].plugins]

    watcher = GuestPlugin("watcher", "1", Path("/nowhere/watcher"))
    runner = ScriptedRunner(reloaded=("x 1 was added", "y was removed"), new_guests=(watcher,))
    with_engine(test, runner=runner, machines=[spec("m1")])


def test_a_plugin_that_can_not_be_read_changes_nothing_and_is_told() -> None:
    async def test(rig: EngineRig) -> None:
        outcome = await rig.do(ReloadPlugins())
        assert not outcome.done
        assert outcome.message == "/p/plugin.toml: plugin.name: is missing. Nothing was changed."

    with_engine(test, runner=ScriptedRunner(reload_fails=ManifestError("/p/plugin.toml", "plugin.name", "is missing.")))


def test_what_is_wrong_with_plugins_is_told_as_long_as_it_lasts() -> None:
    async def test(rig: EngineRig) -> None:
        assert (await rig.engine.overview()).troubles == ("The plugin x was given up.",)
        rig.runner.troubles = ()
        assert (await rig.engine.overview()).troubles == ()

    with_engine(test, runner=ScriptedRunner(troubles=("The plugin x was given up.",)))


def test_plugins_are_told_what_happens() -> None:
    async def test(rig: EngineRig) -> None:
        rig.engine.reload(rig.engine._settings)
        await rig.add("sample")
        await rig.all_final()
        assert {TaskStarting, TaskCompleted, ConfigReloaded} <= {type(body) for body in rig.runner.told}

    with_engine(test)


def test_a_group_can_not_deny_what_is_required() -> None:
    group = WorkerSettings(name="small", plugin_restrictions=PluginRestrictions(deny=("scripted",)))
    with pytest.raises(ConfigError, match=r"'scripted' is named in plugins\.required; take it out of one of them"):
        with_engine(lambda rig: None, groups=[group], plugins=PluginSettings(required=("scripted",)))  # type: ignore[arg-type, return-value]
