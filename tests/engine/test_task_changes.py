"""What a waiting task asks for can be changed, and is kept, queued and served as changed; what makes no sense changes nothing."""

from __future__ import annotations

import pytest

from malbox_tui.config.settings import ProfileSettings
from malbox_tui.model.commands import ChangeTasks, PausePool, ResumePool, SetProfile
from malbox_tui.model.events import TaskChanged
from malbox_tui.model.task import RequirementClass, RunOptions, TaskState
from malbox_tui.model.task_change import changed_class
from tests.support.rig import LINUX, EngineRig, spec, with_engine

WINDOWS = RequirementClass("dynamic", "windows", "x64", ("de", "office"))


@pytest.mark.parametrize(
    ("own", "change", "expected"),
    [
        (RequirementClass(), {"platform": "linux"}, LINUX),
        (RequirementClass(), {"tags": ("b", "a", "b")}, RequirementClass("dynamic", tags=("a", "b"))),
        (WINDOWS, {"platform": "", "tags": ()}, RequirementClass("dynamic", arch="x64")),
        (WINDOWS, {"task_type": "static"}, RequirementClass()),
        (WINDOWS, {"task_type": "static", "platform": "linux"}, RequirementClass("static", "linux", "x64", ("de", "office"))),
        (WINDOWS, {"arch": "arm64"}, RequirementClass("dynamic", "windows", "arm64", ("de", "office"))),
        (RequirementClass("dynamic", pin="m"), {"timeout_s": 5.0}, RequirementClass("dynamic", pin="m")),
    ],
)
def test_what_is_changed_and_what_stays(own: RequirementClass, change: dict[str, object], expected: RequirementClass) -> None:
    assert changed_class(own, ChangeTasks(task_ids=(1,), **change)) == expected  # type: ignore[arg-type]


def test_a_waiting_task_is_served_as_it_was_changed() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("a", "b")
        outcome = await rig.do(ChangeTasks(task_ids=(1,), platform="linux", timeout_s=20.0))
        assert outcome.targets[0].message == "Task 1 is to be served as linux, for 20 s."
        assert rig.bodies(TaskChanged) == [TaskChanged(task_id=1, requires=LINUX, timeout_s=20.0)]
        await rig.do(ResumePool())
        tasks = await rig.all_final()
        assert (tasks[1].type, tasks[1].machine, tasks[1].timeout_s) == ("dynamic", "m1", 20.0)
        assert (tasks[2].type, tasks[2].machine, tasks[2].timeout_s) == ("static", None, 300.0)

    with_engine(test, machines=[spec("m1")])


def test_what_is_changed_by_hand_goes_before_the_profile_and_outlives_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("a", profile="office")
        await rig.do(ChangeTasks(task_ids=(1,), platform="linux", tags=(), timeout_s=20.0))
        task = await rig.task(1)
        assert (task.requires, task.timeout_s) == (LINUX, 20.0)
        await rig.do(SetProfile(task_ids=(1,), profile="slow"))
        task = await rig.task(1)
        assert (task.requires.platform, task.timeout_s, str(task.profile)) == ("linux", 20.0, "slow, chosen by hand")

    office = ProfileSettings(name="office", platform="windows", tags=("office",), timeout_s=90)
    slow = ProfileSettings(name="slow", timeout_s=200)
    with_engine(test, profiles=(office, slow), machines=[spec("m1"), spec("w1", platform="windows", tags=("office",))])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "Say what is to change: type, platform, arch, tags or timeout."),
        ({"timeout_s": 0.0}, "An analysis timeout of 0 s: it must be above 0, and below the critical timeout of 1800 s."),
        ({"timeout_s": float("nan")}, "An analysis timeout of nan s: it must be above 0"),
        ({"timeout_s": 3600.0}, "An analysis timeout of 3600 s: it must be above 0"),
        ({"platform": "beos"}, "Task 1 can't be changed so: "),
        ({"task_type": "nonsense"}, "Task 1 can't be changed so: There is no task type 'nonsense'"),
        ({"task_type": "static", "platform": "linux"}, "can't ask for platform linux. Make it dynamic."),
        ({"task_type": "static"}, "its arguments, or the memory that is to be kept, need a machine."),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(change: dict[str, object], message: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("a", requires=LINUX, run=RunOptions(("x",)))
        before = await rig.task(1)
        outcome = await rig.do(ChangeTasks(task_ids=(1,), **change))  # type: ignore[arg-type]
        said = outcome.targets[0].message if outcome.targets else outcome.message
        assert not outcome.done
        assert message in said
        assert await rig.task(1) == before

    with_engine(test, machines=[spec("m1")])


def test_a_task_at_work_and_one_that_is_not_there_are_left_alone() -> None:
    async def test(rig: EngineRig) -> None:
        rig.runner.seconds = 50
        await rig.add("a")
        await rig.until_state(1, TaskState.RUNNING)
        outcome = await rig.do(ChangeTasks(task_ids=(1, 9), timeout_s=20.0))
        assert [target.done for target in outcome.targets] == [False, False]
        assert outcome.targets[0].message == "Task 1 is running; only a waiting task can be changed."

    with_engine(test)
