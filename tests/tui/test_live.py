"""The live picture follows from events alone, and agrees with the engine's own rows."""

from __future__ import annotations

import msgspec

from malbox_tui.model.commands import CancelTasks, PausePool, ResizeGroup, ResumePool
from malbox_tui.model.events import (
    Event,
    FolderTold,
    PlannedStep,
    PluginProgress,
    PluginsPlanned,
    PluginStarted,
    PluginStopped,
    Position,
    TaskCreated,
    TaskStarting,
)
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.report import PluginStatus
from malbox_tui.model.task import TaskState
from malbox_tui.tui.live import KEPT_TASKS, LivePicture
from tests.support.rig import EngineRig, ScriptedRunner, with_engine
from tests.support.virtual_time import settle_loop


def _event(at: float, body: object) -> Event:
    return Event(Position("e", 1, 1), at, body)  # type: ignore[arg-type]


def _created(task_id: int) -> TaskCreated:
    return TaskCreated(task_id=task_id, sha256="ab" * 32, type="static", priority=1, name=f"s{task_id}")


def test_folding_all_events_gives_the_states_and_times_that_the_engine_has() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four", "five", "six")
        await rig.do(CancelTasks(task_ids=(6,)))
        await rig.pass_time(15.0)
        await settle_loop()
        picture = LivePicture()
        for event in rig.events:
            picture.apply(event)
        rows = await rig.tasks()
        assert {task.id: task.state for task in picture.tasks.values()} == {task.id: task.state for task in rows.values()}
        for task in picture.tasks.values():
            assert task.since == rows[task.id].stage_since

        seeded = LivePicture()
        seeded.seed(await rig.engine.overview(), (await rig.engine.query(TaskQuery())).rows)
        for task in seeded.tasks.values():
            assert task.state is picture.tasks[task.id].state
            assert [span.state for span in task.spans] == [span.state for span in picture.tasks[task.id].spans]
        assert list(seeded.tasks) == sorted(seeded.tasks), "whatever order they were given in"

    with_engine(test, max_workers=2, runner=ScriptedRunner(seconds=10.0))


def test_the_log_says_what_an_operator_did_and_what_came_of_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.do(PausePool())
        await rig.do(ResumePool())
        await rig.do(ResizeGroup(max_workers=2))
        await rig.all_final()
        await settle_loop()

    rig = with_engine(test)
    picture = LivePicture()
    for event in rig.events:
        picture.apply(event)
    subjects = [line.subject for line in picture.log]
    assert [s for s in subjects if " worker " not in s] == [
        "#1 added",
        "operator submitted 1 sample",
        "no task is taken",
        "ana paused the pool",
        "resumed",
        "ana resumed the pool",
        "default: min 1, max 2",
        "ana resized default to max 2",
        "#1 completed",
        "engine stopping (give back)",
    ]


def test_only_a_bounded_number_of_tasks_is_kept_and_those_at_work_always_are() -> None:
    picture = LivePicture()
    picture.apply(_event(0.0, _created(1)))
    picture.apply(_event(0.0, TaskStarting(task_id=1, worker="w", attempt=1)))
    for task_id in range(2, 3 * KEPT_TASKS):
        picture.apply(_event(1.0, _created(task_id)))
    assert len(picture.tasks) == KEPT_TASKS
    assert picture.tasks[1].state is TaskState.INITIALIZING


def test_plugins_are_shown_with_their_progress_and_their_end() -> None:
    picture = LivePicture()
    picture.apply(_event(0.0, _created(1)))
    picture.apply(_event(1.0, PluginStarted(task_id=1, plugin="yara-x")))
    picture.apply(_event(2.0, PluginProgress(task_id=1, plugin="yara-x", fraction=0.5, message="half")))
    work = picture.tasks[1].plugins["yara-x"]
    assert (work.started_at, work.fraction, work.message, work.outcome) == (1.0, 0.5, "half", None)
    picture.apply(_event(3.0, PluginStopped(task_id=1, plugin="yara-x", status=PluginStatus.FAILED, seconds=2.0)))
    assert (work.outcome, work.seconds) == ("failed", 2.0)


def test_plugins_that_have_not_begun_are_shown_with_what_they_wait_for() -> None:
    picture = LivePicture()
    picture.apply(_event(0.0, _created(1)))
    steps = (PlannedStep("file-type", "at once"), PlannedStep("pe", "after file-type"), PlannedStep("x", "denied", False))
    picture.apply(_event(1.0, PluginsPlanned(task_id=1, steps=steps)))
    plugins = picture.tasks[1].plugins
    assert {work.name: work.waits for work in plugins.values()} == {
        "file-type": "runs at once",
        "pe": "runs after file-type",
        "x": "left out: denied",
    }
    picture.apply(_event(2.0, PluginStarted(task_id=1, plugin="file-type")))
    assert plugins["file-type"].waits == ""
    skipped = PluginStopped(task_id=1, plugin="pe", status=PluginStatus.SKIPPED, seconds=0.0, reason="this is pdf")
    picture.apply(_event(3.0, skipped))
    assert (plugins["pe"].waits, plugins["pe"].outcome, plugins["pe"].message) == ("", "skipped", "this is pdf")


def test_news_of_tasks_that_are_not_kept_changes_nothing() -> None:
    picture = LivePicture()
    picture.apply(_event(1.0, PluginStarted(task_id=9, plugin="p")))
    picture.apply(_event(1.0, TaskStarting(task_id=9, worker="w", attempt=1)))
    assert picture.tasks == {}
    assert msgspec.structs.asdict(_event(1.0, _created(1)))["durable"]


def test_the_log_says_what_there_is_to_say_of_a_watched_folder() -> None:
    picture = LivePicture()
    picture.apply(_event(1.0, FolderTold(folder="/in\n", message="It can't be looked into: gone.", bad=True)))
    picture.apply(_event(2.0, FolderTold(folder="/in", message="It is there again.", bad=False)))
    assert [(line.tone, line.subject, line.detail) for line in picture.log] == [
        ("late", "watched folder /in\\x0a", "It can't be looked into: gone."),
        ("good", "watched folder /in", "It is there again."),
    ]
