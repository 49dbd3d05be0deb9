"""What submissions ask of plugins, and whose they are: honoured, or refused by name."""

from __future__ import annotations

import pytest

from malbox_tui.config.settings import PluginSettings, ProfileSettings
from malbox_tui.config.workers import PluginRestrictions, WorkerSettings
from malbox_tui.model.commands import RetryTasks
from malbox_tui.model.plan import PlannedPlugin
from malbox_tui.model.plugin_wishes import PluginWishes
from malbox_tui.model.report import PluginStatus
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from tests.engine.test_guest_plugins import WATCHER, prepared
from tests.support.rig import EngineRig, ScriptedRunner, spec, states, with_engine

NAMES = ("scanner", "strings", "unpacker")
PLANNED = (
    PlannedPlugin(name="scanner", needs=("layers",)),
    PlannedPlugin(name="strings"),
    PlannedPlugin(name="unpacker", gives=("layers",)),
)
OPTIONS = {"scanner": {"rules": "", "depth": "1"}, "strings": {"min_length": "4", "depth": "2"}}


def runner(**fields: object) -> ScriptedRunner:
    given = {"plugins": NAMES, "planned": PLANNED, "options": OPTIONS, "host_paths": frozenset({"rules"}), **fields}
    return ScriptedRunner(**given)  # type: ignore[arg-type]


def test_only_the_plugins_that_are_asked_for_run_and_what_they_need() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample", plugins=("scanner",))
        task = (await rig.all_final())[1]
        assert task.wishes == PluginWishes(("scanner",))
        assert rig.runner.jobs[0].kept_out == {"strings": "The task is to be looked at by scanner only."}

    with_engine(test, runner=runner())


def test_what_a_task_asks_for_goes_before_its_profile_and_a_group_that_denies_it_before_both() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample", plugins=("strings", "unpacker"), profile="deep", plugin_options=("min_length=9",))
        await rig.all_final()
        (job,) = rig.runner.jobs
        assert job.kept_out == {
            "scanner": "The task is to be looked at by strings, unpacker only.",
            "unpacker": "The worker group picky denies it.",
        }
        assert job.options == {"strings": {"min_length": "9", "depth": "7"}}

    deep = ProfileSettings(name="deep", plugins=("scanner",), options={"strings": {"min_length": "6", "depth": "7"}})
    groups = (WorkerSettings(name="picky", priority=9, plugin_restrictions=PluginRestrictions(deny=("unpacker",))),)
    with_engine(test, runner=runner(), profiles=(deep,), groups=groups)


def test_a_task_without_the_required_plugins_completes_when_it_asked_for_that() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", plugins=("strings",))
        assert states(await rig.all_final()) == [TaskState.COMPLETED]

    with_engine(test, runner=runner(), plugins=PluginSettings(required=("scanner",)))


REFUSED = [
    ({"plugins": ("strngs",)}, "There is no plugin 'strngs'; did you mean strings."),
    ({"plugins": ("\x1b[1m",)}, "There is no plugin '\\x1b[1m'; there is scanner, strings, unpacker."),
    ({"plugin_options": ("min_len=3",)}, "No plugin has the option 'min_len'; did you mean min_length."),
    ({"plugin_options": ("depth=3",)}, "The option depth is of 2 plugins; write scanner.depth or strings.depth."),
    ({"plugin_options": ("min_length",)}, "The option 'min_length' is not written as PLUGIN.KEY=VALUE, or KEY=VALUE."),
    ({"plugin_options": ("=3",)}, "The option '=3' is not written as PLUGIN.KEY=VALUE, or KEY=VALUE."),
    (
        {"plugin_options": ("min_length=3", "strings.min_length=4")},
        "The option min_length of the plugin strings is given twice.",
    ),
    ({"plugin_options": ("min_length=\0",)}, "The option min_length has a value that is no text."),
    ({"plugin_options": ("min_length=\udcff",)}, "The option min_length has a value that is no text."),
    ({"plugin_options": (f"min_length={'9' * 5000}",)}, "The option min_length has a value of more than 4096 characters."),
    ({"plugin_options": ("min_length=1",) * 101}, "101 options of plugins: 100 are the most."),
    (
        {"plugin_options": ("rules=/etc/shadow",)},
        "The option rules of the plugin scanner is a path of the engine's host; only its configuration sets it.",
    ),
    (
        {"plugins": ("unpacker",), "plugin_options": ("min_length=3",)},
        "The plugin strings was given options, and doesn't take part: only unpacker does.",
    ),
    ({"unique": True, "again": True}, "What is known can't be both left out (unique) and analysed again."),
    ({"owner": "ana\n"}, "The owner 'ana\\x0a' has characters that can't be printed, or blanks around it."),
    ({"owner": "a" * 101}, "An owner of 101 characters: 100 are the most."),
]


@pytest.mark.parametrize(("asked", "reason"), REFUSED, ids=[reason[:40] for _, reason in REFUSED])
def test_what_can_not_be_honoured_is_refused_by_name(asked: dict[str, object], reason: str) -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("sample", **asked)
        assert [(one.refusal.code, one.refusal.reason) for one in account.refused] == [("nonsense", reason)]
        assert not await rig.tasks()

    with_engine(test, runner=runner())


def test_a_plugin_that_every_worker_group_keeps_out_is_refused() -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("sample", plugins=("strings",))
        (refused,) = account.refused
        assert refused.refusal.reason == "The plugin strings would not run: The worker group picky denies it."

    group = WorkerSettings(name="picky", max_workers=1, plugin_restrictions=PluginRestrictions(deny=("strings",)))
    with_engine(test, runner=runner(), groups=(group,), min_workers=0, max_workers=0)


def test_options_reach_the_plugins_of_the_task_and_of_no_other() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", plugin_options=("min_length=8", "scanner.depth=a=b"))
        await rig.add("b")
        tasks = await rig.all_final()
        asked = {"strings": {"min_length": "8"}, "scanner": {"depth": "a=b"}}
        assert tasks[1].wishes.options == asked
        assert {job.task_id: job.options for job in rig.runner.jobs} == {1: asked, 2: {}}

    with_engine(test, runner=runner())


def test_a_task_whose_plugin_is_gone_by_then_fails_and_says_so() -> None:
    async def test(rig: EngineRig) -> None:
        rig.runner.seconds = 50
        await rig.add("a")
        await rig.add("b", plugins=("strings",))
        await rig.add("c", plugin_options=("min_length=8",))
        rig.engine._roster.names = ("scanner", "unpacker")
        tasks = await rig.all_final()
        assert [tasks[number].ended_by for number in (2, 3)] == [EndedBy.UNSERVICEABLE] * 2
        assert tasks[2].reason.startswith("It asks for the plugin strings, which there is no more.")

    with_engine(test, runner=runner(), max_workers=1)


def test_a_retry_asks_for_the_same_and_belongs_to_the_same() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", plugins=("strings",), owner="ana", plugin_options=("min_length=8",))
        await rig.all_final()
        await rig.do(RetryTasks(task_ids=(1,)))
        tasks = await rig.all_final()
        assert (tasks[2].owner, tasks[2].wishes) == ("ana", tasks[1].wishes)

    with_engine(test, runner=runner())


def test_known_content_is_a_duplicate_where_samples_are_to_be_unique_however_its_task_ended() -> None:
    async def test(rig: EngineRig) -> None:
        rig.runner.runs = ()
        await rig.add("a", plugins=("strings",))
        await rig.all_final()
        account = await rig.add("a", "b", unique=True)
        assert [(one.task_id, one.state) for one in account.duplicates] == [(1, (await rig.task(1)).state)]
        assert len(account.accepted) == 1

    with_engine(test, runner=runner())


def test_a_guest_plugin_is_for_tasks_with_a_machine() -> None:
    async def test(rig: EngineRig) -> None:
        (refused,) = (await rig.add("a", plugins=(WATCHER.name,))).refused
        assert refused.refusal.reason == f"The plugin {WATCHER.name} runs in machines, and a static task needs none."
        await rig.add("a", plugins=(WATCHER.name,), requires=RequirementClass("dynamic"))
        task = (await rig.all_final())[1]
        assert {run.name for run in task.plugins if run.status is PluginStatus.SKIPPED} == {*NAMES}

    with_engine(test, runner=runner(), guest_plugins=(WATCHER,), machines=[spec("m")], prepare=prepared())
