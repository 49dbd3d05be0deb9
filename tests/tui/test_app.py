"""What keys do: each through the app, down to the command that the engine gets."""

from __future__ import annotations

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from malbox_tui.model.commands import (
    CancelTasks,
    ChangeTasks,
    IdentifySamples,
    PausePool,
    ResizeGroup,
    ResumePool,
    RetryTasks,
    SetPriority,
    SetProfile,
    ShutdownMode,
)
from malbox_tui.model.overview import ProfileView
from malbox_tui.model.queries import TaskFilter, TaskSort
from malbox_tui.model.task import TaskState
from malbox_tui.tui import keys
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.screens.dialogs import Help, Prompt, Question
from malbox_tui.tui.screens.intakes import AccountScreen, IntakesScreen
from malbox_tui.tui.screens.report import ReportScreen
from malbox_tui.tui.screens.task import TaskScreen
from malbox_tui.tui.widgets.report_view import ReportView
from tests.tui.playing import played, until
from tests.tui.scripted import ScriptedClient, record, surroundings, worker


@pytest.mark.parametrize(
    ("pressed", "action"),
    [
        (["p"], PausePool()),
        (["right_square_bracket"], ResizeGroup(max_workers=5)),
        (["left_square_bracket"], ResizeGroup(max_workers=3)),
        (["right_curly_bracket"], ResizeGroup(min_workers=3)),
        (["left_curly_bracket"], ResizeGroup(min_workers=1)),
        (["plus"], SetPriority(task_ids=(3,), priority=2)),
        (["minus"], SetPriority(task_ids=(3,), priority=0)),
        (["f", *"office", "enter"], SetProfile(task_ids=(3,), profile="office")),
        (["f", "enter"], SetProfile(task_ids=(3,), profile="")),
        (["f", *"auto", "enter"], SetProfile(task_ids=(3,), profile="")),
        (["enter", "f", *"office", "enter"], SetProfile(task_ids=(3,), profile="office")),
        (["E", *"timeout=3000", "enter"], ChangeTasks(task_ids=(3,), timeout_s=3000.0)),
        (["enter", "E", "end", *"0", "enter"], ChangeTasks(task_ids=(3,), timeout_s=3000.0)),
        (["I"], IdentifySamples(task_ids=(3,))),
        (["down", "down", "r"], RetryTasks(task_ids=(1,))),
        (["c", "down", "enter"], CancelTasks(task_ids=(3,), expected=TaskState.PENDING)),
        (["down", "c", "down", "enter"], CancelTasks(task_ids=(2,), expected=None)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else type(value).__name__,
)
async def test_a_key_becomes_a_command(pressed: list[str], action: object) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*pressed)
        await pilot.pause()

    _, client = await played(play)
    assert [command.action for command in client.commands] == [action]
    assert client.commands[0].actor == "operator"
    assert client.commands[0].key


async def test_the_profiles_that_there_are_are_shown_where_one_is_asked_for_and_completed() -> None:
    many = [ProfileView(name=f"more-{number}", about="all plugins") for number in range(12)]
    profiles = (ProfileView(name="documents", about="for ole; file-type [b]x[/]\x1b; 60 s"), *many)

    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        overview = app.picture.overview
        assert overview is not None
        app.picture.see(msgspec.structs.replace(overview, profiles=profiles))
        await pilot.press("f")
        await pilot.pause()
        lines = "\n".join(str(widget.content) for widget in app.screen.query(Static))
        assert "documents  for ole; file-type [b]x[/]\\x1b; 60 s" in lines
        assert "and 3 more" in lines
        await pilot.press("d")
        await until(pilot, lambda: app.screen.query_one(Input)._suggestion == "documents")
        await pilot.press("right", "enter")
        await pilot.pause()

    _, client = await played(play)
    assert [command.action for command in client.commands] == [SetProfile(task_ids=(3,), profile="documents")]


async def test_only_a_waiting_task_is_asked_for_another_profile() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "f")
        await pilot.pause()
        assert not isinstance(app.screen, Prompt)

    _, client = await played(play)
    assert client.commands == []


async def test_a_paused_pool_is_resumed_by_the_same_key() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("p")
        await pilot.pause()

    _, client = await played(play, ScriptedClient([record(1)], paused="paused by ana"))
    assert [command.action for command in client.commands] == [ResumePool()]


@pytest.mark.slow
@pytest.mark.parametrize("pressed", [["c", "enter"], ["c", "escape"]])
async def test_the_harmless_answer_has_the_focus(pressed: list[str]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(pressed[0])
        assert isinstance(app.screen, Question)
        await pilot.press(*pressed[1:])
        await pilot.pause()
        assert not isinstance(app.screen, Question)

    _, client = await played(play)
    assert client.commands == []


@pytest.mark.slow
async def test_a_cancel_hits_the_task_that_was_asked_about_also_when_rows_moved_meanwhile() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "down", "up", "c")
        client.put(record(4, TaskState.PENDING), record(5, TaskState.PENDING))
        await app.dashboard.tasks.fetch()
        await pilot.press("down", "enter")
        await pilot.pause()

    client = ScriptedClient([record(1), record(2, TaskState.PENDING), record(3, TaskState.PENDING)])
    await played(play, client)
    assert [command.action for command in client.commands] == [CancelTasks(task_ids=(2,), expected=TaskState.PENDING)]


@pytest.mark.slow
async def test_an_ended_task_is_not_canceled() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("end", "c")
        assert not isinstance(app.screen, Question)

    _, client = await played(play)
    assert client.commands == []


@pytest.mark.slow
async def test_enter_opens_a_task_and_escape_goes_back() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "enter")
        assert isinstance(app.screen, TaskScreen)
        assert app.screen.task_id == 2
        await pilot.press("escape")
        assert app.screen is app.dashboard

    await played(play)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pressed", "mode"),
    [
        (["q", "down", "enter"], ShutdownMode.DRAIN),
        (["q", "down", "down", "enter"], ShutdownMode.GIVE_BACK),
        (["q", "down", "down", "down", "enter"], ShutdownMode.CANCEL),
        (["ctrl+q", "down", "enter"], ShutdownMode.DRAIN),
    ],
)
async def test_leaving_with_tasks_at_work_asks_what_becomes_of_them(pressed: list[str], mode: ShutdownMode) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*pressed)
        await pilot.pause()

    app, _ = await played(play)
    assert app.return_value is mode


async def test_leaving_an_idle_console_asks_nothing() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("q")
        await pilot.pause()

    app, _ = await played(play, ScriptedClient([record(1)]))
    assert app.return_value is ShutdownMode.GIVE_BACK


@pytest.mark.slow
async def test_leaving_looks_anew_whether_anything_runs() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        client.put(record(2), record(3))
        await pilot.press("q")
        await pilot.pause()

    client = ScriptedClient([record(1), record(2, TaskState.RUNNING)], [worker(1, 2)])
    app, _ = await played(play, client)
    assert app.return_value is ShutdownMode.GIVE_BACK


async def test_a_key_pressed_before_the_first_window_is_there_waits_for_it() -> None:
    app = MalboxApp(surroundings(ScriptedClient([record(7)])))
    async with app.run_test(size=(120, 40)) as pilot:
        app.dashboard.tasks.show(TaskFilter(task_ids=(7,)), TaskSort.NEWEST)
        await pilot.press("enter")
        assert isinstance(app.screen, TaskScreen)
        assert app.screen.task_id == 7


async def test_the_first_window_is_there_as_soon_as_the_engine_is_known() -> None:
    app = MalboxApp(surroundings(ScriptedClient([record(7)])))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        await pilot.pause()
        assert app.dashboard.tasks.total == 1


@pytest.mark.slow
async def test_enter_after_a_filter_opens_what_the_filter_shows() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("slash", *"needle", "enter", "enter")
        assert isinstance(app.screen, TaskScreen)
        assert app.screen.task_id == 2

    await played(play, ScriptedClient([record(1), record(2, TaskState.COMPLETED, b"a needle.exe"), record(3)]))


@pytest.mark.slow
async def test_a_lost_event_makes_the_console_read_everything_anew() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        client.put(record(4, TaskState.RUNNING))
        client.loses_events()
        await until(pilot, lambda: 4 in app.picture.tasks)
        assert app.picture.gaps == 1

    client = ScriptedClient([record(1)])
    await played(play, client)


@pytest.mark.slow
async def test_help_names_every_key_and_every_key_has_an_action() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        await pilot.press("escape")
        screens = {"One task": TaskScreen, "Reports": ReportScreen, "Intakes": IntakesScreen, "One account": AccountScreen}
        for title, group in keys.GROUPS:
            for key in group:
                namespace, _, name = key.action.partition("(")[0].rpartition(".")
                screen = screens.get(title, app.dashboard)
                owner = {"app": app, "screen": screen, "": ReportView if title == "Reports" else app.dashboard.tasks}[namespace]
                assert hasattr(owner, f"action_{name}"), key.id

    await played(play)
    ids = [key.id for _, group in keys.GROUPS for key in group]
    assert len(ids) == len(set(ids))


async def test_no_key_does_two_things_on_one_screen() -> None:
    on_machines = tuple(key for key in keys.DASHBOARD if key.id not in ("task.open", "samples.stop")) + keys.MACHINES
    for group in (keys.DASHBOARD + keys.TABLE, on_machines + keys.TABLE, keys.TASK_SCREEN, keys.MACHINE_SCREEN):
        group = group + keys.EVERYWHERE
        pressed = [one for key in group for one in key.keys.split(",")]
        assert len(pressed) == len(set(pressed))
