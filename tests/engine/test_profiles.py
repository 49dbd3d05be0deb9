"""Profiles: which one a task gets and why, what it is served as and what its plugins are told, and changing it while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from malbox_tui.config.profiles import ProfileSettings
from malbox_tui.config.settings import AnalysisSettings, PluginSettings, WorkerSettings
from malbox_tui.config.workers import PluginRestrictions
from malbox_tui.model.commands import PausePool, ReloadPlugins, ResumePool, RetryTasks, SetProfile
from malbox_tui.model.errors import ConfigError, StoreError
from malbox_tui.model.events import PluginsPlanned, TaskGivenBack, TaskProfileChanged
from malbox_tui.model.plan import PlannedPlugin
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.report import Identification, PluginRun, PluginStatus
from malbox_tui.model.task import ChosenBy, EndedBy, RequirementClass, RunOptions, Task, TaskState
from malbox_tui.ports import Change
from tests.support.rig import EngineRig, batching, spec, with_engine
from tests.support.scripted import CLEAN_RUN, ScriptedRunner

NAMES = ("unpacker", "scanner", "aside")
PLANNED = (
    PlannedPlugin(name="unpacker", gives=("unpacked",)),
    PlannedPlugin(name="scanner", needs=("unpacked",)),
    PlannedPlugin(name="aside"),
)
OFFICE = ProfileSettings(
    name="office",
    plugins=("scanner",),
    kinds=("ole",),
    timeout_s=70.0,
    options={"scanner": {"depth": "3"}},
)
IN_WINDOWS = ProfileSettings(name="programs", kinds=("pe",), platform="linux", tags=("office",))
PROFILES = (OFFICE, IN_WINDOWS)
OLE, PE = Identification("ole"), Identification("pe")


def runner(identification: Identification | None = None) -> ScriptedRunner:
    return ScriptedRunner(planned=PLANNED, plugins=NAMES, identification=identification)


def profile(task: Task) -> str:
    return str(task.profile or "")


def broken(name: str) -> PluginRun:
    return msgspec.structs.replace(CLEAN_RUN, name=name, status=PluginStatus.FAILED, reason="it crashed")


def test_one_that_is_chosen_by_hand_says_which_plugins_take_part_with_which_options_and_for_how_long() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample", profile="office")
        task = (await rig.all_final())[1]
        assert (task.state, profile(task), task.timeout_s) == (TaskState.COMPLETED, "office, chosen by hand", 70.0)
        (job,) = rig.runner.jobs
        assert job.kept_out == {"aside": "The profile office is without it."}, "what the scanner needs takes part"
        assert job.options == {"scanner": {"depth": "3"}}
        assert job.timeout_s == 70.0
        (planned,) = [event.body for event in rig.events if isinstance(event.body, PluginsPlanned)]
        assert {step.plugin: step.takes_part for step in planned.steps} == {"unpacker": True, "scanner": True, "aside": False}

    with_engine(test, runner=runner(), profiles=PROFILES)


def test_what_is_asked_of_the_task_itself_goes_before_the_profile() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample", profile="programs", timeout_s=30.0, requires=RequirementClass("dynamic", platform="windows"))
        task = (await rig.all_final())[1]
        assert task.requires == RequirementClass("dynamic", platform="windows", tags=("office",))
        assert (task.timeout_s, task.machine) == (30.0, "w1")

    machines = [spec("w1", platform="windows", tags=("office",)), spec("l1", tags=("office",))]
    with_engine(test, runner=runner(), profiles=PROFILES, machines=machines)


def test_one_with_a_platform_and_tags_has_its_samples_run_in_such_a_machine() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample", profile="programs")
        task = (await rig.all_final())[1]
        assert task.requires == RequirementClass("dynamic", platform="linux", tags=("office",))
        assert (task.type, task.machine) == ("dynamic", "l2")

    with_engine(test, runner=runner(), profiles=PROFILES, machines=[spec("l1"), spec("l2", tags=("office",))])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("ofice", "There is no profile 'ofice'; did you mean office."),
        ("x\n", "There is no profile 'x\\\\x0a'; there is office, programs."),
        ("programs", "It needs a machine (linux, tag office), and none is configured."),
    ],
)
def test_one_that_there_is_not_and_one_that_nothing_could_serve_are_refused(name: str, problem: str) -> None:
    async def test(rig: EngineRig) -> None:
        (refused,) = (await rig.add("sample", profile=name)).refused
        assert problem in refused.refusal.reason
        assert await rig.tasks() == {}

    with_engine(test, runner=runner(), profiles=PROFILES)


def test_without_profiles_nothing_is_chosen() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        assert (await rig.all_final())[1].profile is None
        (refused,) = (await rig.add("other", profile="office")).refused
        assert refused.refusal.reason == "There is no profile 'office'; the configuration has none."

    with_engine(test, runner=runner())


@pytest.mark.parametrize(("crashed", "failed"), [("scanner", 1), ("aside", 2)])
def test_the_plugins_that_it_requires_are_required_in_place_of_the_usual_ones(crashed: str, failed: int) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", profile="strict")
        await rig.add("two")
        tasks = await rig.all_final()
        assert [task_id for task_id, task in tasks.items() if task.state is TaskState.FAILED] == [failed]

    scripted = ScriptedRunner(planned=PLANNED, plugins=NAMES, runs=(broken(crashed), CLEAN_RUN))
    strict = ProfileSettings(name="strict", required=("scanner",))
    with_engine(test, runner=scripted, profiles=[strict], plugins=PluginSettings(required=("aside",)))


def test_a_group_can_not_deny_what_a_profile_requires() -> None:
    group = WorkerSettings(name="small", plugin_restrictions=PluginRestrictions(deny=("scanner",)))
    strict = ProfileSettings(name="strict", required=("scanner",))
    with pytest.raises(ConfigError, match=r"'scanner' is required by the profile strict; take it out of one of them"):
        with_engine(lambda rig: None, groups=[group], runner=runner(), profiles=[strict])  # type: ignore[arg-type, return-value]


# --- by kind ---------------------------------------------------------------------------------------------------------------------


def test_the_kind_of_the_content_chooses_where_nobody_did() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.add("two", profile="everything")
        await rig.add("three", timeout_s=30.0)
        tasks = await rig.all_final()
        assert [profile(task) for task in tasks.values()] == [
            "office, for kind ole",
            "everything, chosen by hand",
            "office, for kind ole",
        ]
        assert [task.timeout_s for task in tasks.values()] == [70.0, 60.0, 30.0]
        assert sorted(job.timeout_s for job in rig.runner.jobs) == [30.0, 60.0, 70.0]

    profiles = (*PROFILES, ProfileSettings(name="everything"))
    with_engine(test, runner=runner(OLE), profiles=profiles, analysis=AnalysisSettings(timeout_s=60.0))


def test_the_kind_that_was_found_out_is_kept_also_where_no_plugin_that_takes_part_tells_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.all_final()
        page = await rig.engine.query(TaskQuery())
        assert page.rows[0].sample.identification == OLE

    with_engine(test, runner=runner(OLE), profiles=PROFILES)


def test_a_kind_that_is_known_is_not_asked_for() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample", profile="programs", hold=True)
        await rig.store.identify((await rig.tasks())[1].sha256, OLE)
        assert (await rig.do(SetProfile(task_ids=(1,), profile=""))).done
        task = (await rig.all_final())[1]
        assert (task.state, profile(task)) == (TaskState.COMPLETED, "office, for kind ole")

    with_engine(test, runner=runner(PE), profiles=PROFILES)


@pytest.mark.parametrize(
    ("found", "why"), [(PE, "usual, the default"), (None, "usual, the default"), (OLE, "office, for kind ole")]
)
def test_the_default_is_for_tasks_for_which_none_is_chosen(found: Identification | None, why: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        assert profile((await rig.all_final())[1]) == why

    profiles = (OFFICE, ProfileSettings(name="usual"))
    with_engine(test, runner=runner(found), profiles=profiles, analysis=AnalysisSettings(profile="usual"))


def test_a_task_whose_kind_needs_a_machine_goes_back_once_and_gets_one() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert (task.state, task.machine, task.attempts, task.crashes) == (TaskState.COMPLETED, "l1", 1, 0)
        assert (profile(task), task.type) == ("programs, for kind pe", "dynamic")
        (back,) = [event.body for event in rig.events if isinstance(event.body, TaskGivenBack)]
        assert back.reason == "Its profile is programs, for kind pe: it is to be served as linux, tag office."

    with_engine(test, runner=runner(PE), profiles=PROFILES, machines=[spec("l1", tags=("office",))])


def test_a_task_whose_kind_needs_a_machine_that_there_is_not_fails_and_says_so() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (TaskState.FAILED, EndedBy.UNSERVICEABLE)
        assert task.reason.startswith("Its profile is programs, for kind pe. It needs a machine (linux, tag office)")
        assert rig.runner.jobs == []

    with_engine(test, runner=runner(PE), profiles=PROFILES)


def test_tasks_of_one_batch_each_get_the_profile_of_their_kind() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        tasks = await rig.all_final()
        assert {profile(task) for task in tasks.values()} == {"office, for kind ole"}
        assert {job.timeout_s for job in rig.runner.jobs} == {70.0}
        assert rig.runner.batches

    group = WorkerSettings(
        name="batches",
        priority=9,
        execution_mode="Batch",
        max_batch_size=3,
        batch_timeout_ms=100,  # type: ignore[arg-type]
    )
    with_engine(test, runner=runner(OLE), profiles=PROFILES, groups=[group])


def test_a_profile_that_is_there_no_more_fails_its_task() -> None:
    async def first(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("sample", profile="office")

    async def second(rig: EngineRig) -> None:
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (TaskState.FAILED, EndedBy.UNSERVICEABLE)
        assert task.reason == "There is no profile 'office'; there is programs."

    rig = with_engine(first, runner=runner(), profiles=PROFILES, leaves=True)
    with_engine(second, runner=runner(), profiles=[IN_WINDOWS], store=rig.store)


# --- while it waits --------------------------------------------------------------------------------------------------------------


async def paused(rig: EngineRig, *contents: str, **options: object) -> None:
    await rig.do(PausePool())
    await rig.add(*contents, **options)


def test_a_waiting_task_is_given_another_and_is_served_as_that_says() -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample", "other")
        outcome = await rig.do(SetProfile(task_ids=(1,), profile="programs"))
        assert (outcome.done, outcome.message) == (True, "Task 1 has the profile programs, chosen by hand.")
        changed = [event for event in rig.events if isinstance(event.body, TaskProfileChanged)]
        assert [event.body for event in changed] == [
            TaskProfileChanged(
                task_id=1,
                profile="programs, chosen by hand",
                requires=RequirementClass("dynamic", platform="linux", tags=("office",)),
            )
        ]
        await rig.do(ResumePool())
        tasks = await rig.all_final()
        assert (tasks[1].machine, tasks[1].attempts, tasks[2].machine) == ("l1", 1, None)
        assert not [event for event in rig.events if isinstance(event.body, TaskGivenBack)], "it is handed out as what it is"

    with_engine(test, runner=runner(), profiles=PROFILES, machines=[spec("l1", tags=("office",))])


def test_taking_a_profile_away_brings_back_what_was_asked_of_the_task_itself() -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample", profile="office", timeout_s=None)
        await rig.do(SetProfile(task_ids=(1,), profile="programs"))
        await rig.do(SetProfile(task_ids=(1,), profile=""))
        task = await rig.task(1)
        assert (task.requires, task.timeout_s, profile(task)) == (RequirementClass(), 60.0, "")
        assert task.profile is not None
        assert task.profile.by is ChosenBy.DEFAULT

    with_engine(
        test,
        runner=runner(),
        profiles=PROFILES,
        machines=[spec("l1", tags=("office",))],
        analysis=AnalysisSettings(timeout_s=60.0),
        leaves=True,
    )


@pytest.mark.parametrize(
    ("name", "ids", "problem"),
    [
        ("nothing", (1,), "There is no profile 'nothing'; there is office, programs, windows."),
        ("windows", (1,), "Task 1 can't have that profile: No machine"),
        ("office", (1,), "Task 1 can't have that profile: its arguments, or the memory that is to be kept, need a machine"),
        ("office", (9,), "There is no task 9"),
    ],
)
def test_what_can_not_be_is_refused_and_changes_nothing(name: str, ids: Sequence[int], problem: str) -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample", profile="programs", run=RunOptions(("-x",)))
        before = await rig.task(1)
        outcome = await rig.do(SetProfile(task_ids=tuple(ids), profile=name))
        assert not outcome.done
        assert problem in outcome.message
        assert await rig.task(1) == before

    windows = ProfileSettings(name="windows", platform="windows")
    machines = [spec("l1", tags=("office",))]
    with_engine(test, runner=runner(), profiles=(*PROFILES, windows), machines=machines, leaves=True)


def test_a_task_that_runs_or_has_ended_keeps_its_profile() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample", profile="office")
        await rig.until_state(1, TaskState.RUNNING)
        outcome = await rig.do(SetProfile(task_ids=(1,), profile="programs"))
        assert outcome.message == "Task 1 is running; only a waiting task can be given another profile."
        await rig.all_final()
        outcome = await rig.do(SetProfile(task_ids=(1,), profile="programs"))
        assert outcome.message == "Task 1 is completed; only a waiting task can be given another profile."

    with_engine(test, runner=runner(), profiles=PROFILES, machines=[spec("l1", tags=("office",))])


@pytest.mark.parametrize("first", ["profile", "resume"])
def test_a_change_and_a_worker_that_takes_the_task_agree_whoever_comes_first(first: str) -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample")
        actions = [SetProfile(task_ids=(1,), profile="programs"), ResumePool()]
        answers = await asyncio.gather(*(rig.do(action) for action in (actions if first == "profile" else actions[::-1])))
        changed = answers[0 if first == "profile" else 1]
        task = (await rig.all_final())[1]
        assert task.state is TaskState.COMPLETED
        assert (task.machine == "l1") is changed.done is (profile(task) != "")

    with_engine(test, runner=runner(), profiles=PROFILES, machines=[spec("l1", tags=("office",))])


def test_a_task_that_was_handed_out_as_what_it_is_no_more_goes_back_and_is_served_as_what_it_is() -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample")
        task = await rig.task(1)
        changed = rig.engine._profiles.chosen_by_hand(task, "programs")
        body = TaskProfileChanged(task_id=1, profile="programs", requires=task.requires)  # the queue keeps it where it was
        await rig.store.write(Change(task, changed, body, 0.0))
        await rig.do(ResumePool())
        task = (await rig.all_final())[1]
        assert (task.machine, task.attempts) == ("l1", 1)
        assert len([event for event in rig.events if isinstance(event.body, TaskGivenBack)]) == 1

    with_engine(test, runner=runner(), profiles=PROFILES, machines=[spec("l1", tags=("office",))])


def test_a_task_of_a_batch_whose_kind_needs_a_machine_leaves_it_alone() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        tasks = await rig.all_final()
        assert {(task.state, task.machine) for task in tasks.values()} == {(TaskState.COMPLETED, "l1")}

    with_engine(
        test, runner=runner(PE), profiles=PROFILES, groups=[batching(3, max_workers=1)], machines=[spec("l1", tags=("office",))]
    )


def test_a_retry_has_the_profile_of_the_task_that_it_retries() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.all_final()
        await rig.do(RetryTasks(task_ids=(1,)))
        tasks = await rig.all_final()
        assert profile(tasks[2]) == profile(tasks[1]) == "office, for kind ole"
        assert rig.runner.jobs[1].options == rig.runner.jobs[0].options == {"scanner": {"depth": "3"}}

    with_engine(test, runner=runner(OLE), profiles=PROFILES)


def test_a_change_that_the_store_does_not_take_leaves_the_task_where_it_was() -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample")
        rig.store.broken = {None: StoreError("The disk is gone.")}
        outcome = await rig.do(SetProfile(task_ids=(1,), profile="programs"))
        assert not outcome.done
        rig.store.broken = {}
        await asyncio.sleep(100)  # noqa: TID251 - turned time
        await rig.do(ResumePool())
        task = (await rig.all_final())[1]
        assert (task.machine, profile(task)) == (None, "")

    with_engine(test, runner=runner(), profiles=PROFILES, machines=[spec("l1", tags=("office",))])


def test_whoever_looks_sees_which_kinds_a_profile_is_for_and_which_one_is_the_default() -> None:
    async def test(rig: EngineRig) -> None:
        views = (await rig.engine.overview()).profiles
        assert [(view.name, view.kinds) for view in views] == [(given.name, given.kinds) for given in PROFILES]
        assert any(view.kinds for view in views)

    with_engine(test, runner=runner(), profiles=PROFILES, machines=[spec("l1", tags=("office",))])


# --- read again ------------------------------------------------------------------------------------------------------------------


def test_profiles_that_are_read_again_count_at_once_and_what_a_task_was_asked_by_the_former_ones_stays() -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample", profile="office")
        assert [answer.refusal.reason for answer in (await rig.add("early", profile="new")).refused]
        deeper = ProfileSettings(name="office", plugins=("scanner",), timeout_s=90.0, options={"scanner": {"depth": "9"}})
        analysis = AnalysisSettings(profile="new")
        rig.engine.reload(
            msgspec.structs.replace(rig.engine._settings, profiles=(deeper, ProfileSettings(name="new")), analysis=analysis)
        )
        views = (await rig.engine.overview()).profiles
        assert [(view.name, view.about) for view in views] == [("office", "scanner; 90 s"), ("new", "all plugins")]
        assert [(view.kinds, view.is_default) for view in views] == [((), False), ((), True)]
        await rig.add("late")
        await rig.do(ResumePool())
        tasks = await rig.all_final()
        assert [profile(task) for task in tasks.values()] == ["office, chosen by hand", "new, the default"]
        assert {job.task_id: (job.options, job.timeout_s) for job in rig.runner.jobs} == {
            1: ({"scanner": {"depth": "9"}}, 70.0),
            2: ({}, 300.0),
        }

    with_engine(test, runner=runner(), profiles=[OFFICE])


def test_a_waiting_task_whose_profile_is_gone_says_so() -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample", profile="office")
        rig.engine.reload(msgspec.structs.replace(rig.engine._settings, profiles=()))
        await rig.do(ResumePool())
        task = (await rig.all_final())[1]
        assert (task.state, task.reason) == (TaskState.FAILED, "There is no profile 'office'; the configuration has none.")

    with_engine(test, runner=runner(), profiles=[OFFICE])


def test_plugins_that_are_read_again_have_to_fit_the_profiles_of_now() -> None:
    async def test(rig: EngineRig) -> None:
        rig.engine.reload(msgspec.structs.replace(rig.engine._settings, profiles=(OFFICE,)))
        assert (await rig.do(ReloadPlugins())).done
        assert rig.runner.fitted == [[OFFICE.profile()]]

    with_engine(test, runner=runner())


# --- what a profile has no say in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["hand", "kind"])
@pytest.mark.parametrize(("stays_static", "machine"), [(False, "l1"), (True, None)])
def test_a_task_that_was_asked_to_be_static_is_not_run_in_a_machine_by_its_profile(
    by: str, stays_static: bool, machine: str | None
) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample", profile="programs" if by == "hand" else "", stays_static=stays_static)
        task = (await rig.all_final())[1]
        assert (task.state, task.machine) == (TaskState.COMPLETED, machine)
        assert task.profile is not None
        assert task.profile.name == "programs"

    with_engine(test, runner=runner(PE), profiles=PROFILES, machines=[spec("l1", tags=("office",))])


@pytest.mark.parametrize(
    ("usually", "asked", "enforced"), [(True, None, True), (True, False, False), (False, None, False), (False, True, True)]
)
def test_whether_a_guest_is_watched_to_the_end_is_as_asked_or_as_usual_also_where_a_profile_brings_the_machine(
    usually: bool, asked: bool | None, enforced: bool
) -> None:
    async def test(rig: EngineRig) -> None:
        await paused(rig, "sample", profile="" if asked is None else "programs", enforce_timeout=asked)
        before = (await rig.task(1)).enforce_timeout
        assert before is (enforced and asked is not None)
        await rig.do(SetProfile(task_ids=(1,), profile="programs"))
        assert (await rig.task(1)).enforce_timeout is enforced
        await rig.do(SetProfile(task_ids=(1,), profile=""))
        assert (await rig.task(1)).enforce_timeout is False
        await rig.do(ResumePool())
        task = (await rig.all_final())[1]
        assert (task.machine, task.enforce_timeout) == ("l1", enforced)

    analysis = AnalysisSettings(enforce_timeout=usually, timeout_s=20.0)
    machines = [spec("l1", tags=("office",))]
    with_engine(test, runner=runner(PE), profiles=PROFILES, machines=machines, analysis=analysis)
