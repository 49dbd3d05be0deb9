"""The watched folders on the screen, and the dialog that adds one: on whichever host the engine runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.model.commands import AddWatch, Command, CommandOutcome, RemoveWatch, ShutdownMode
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.watching import WatchSpec, WatchState, WatchView
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens.dialogs import Question
from malbox_tui.tui.screens.watches import FIELDS, WatchesScreen, WatchForm
from malbox_tui.tui.watch_lines import watch_line, watches_header
from tests.tui.hostile import NAMES
from tests.tui.machines_shown import shown
from tests.tui.playing import until
from tests.tui.scripted import NOW, ScriptedAttachment, ScriptedClient, record, surroundings

MOMENT = Moment(NOW)


def view(path: str = "/srv/in", state: WatchState = WatchState.WATCHING, **values: int | str) -> WatchView:
    return WatchView(path=path, state=state, afterwards="move", recursive=False, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [120, 30, 1])
def test_hostile_paths_and_problems_are_text_that_fits(name: bytes, width: int) -> None:
    path = "/" + name.decode("utf-8", "surrogateescape")
    for text in (watch_line(view(path, problem=f"It is {path}."), MOMENT, width), watches_header(MOMENT, width)):
        assert text.plain.isprintable()
        assert text.cell_len == width


def test_a_line_says_how_it_is_with_a_folder() -> None:
    away = view("/missing", WatchState.AWAY, problem="It can't be looked into: No such file or directory.")
    said = [line.plain.rstrip() for line in (watches_header(MOMENT, 130), watch_line(view(added=1234, waiting=2), MOMENT, 130))]
    assert said == [
        "state         added    known  refused  waiting left out afterwards folder",
        "▸ watching    1,234        ·        ·        2        · move       /srv/in",
    ]
    assert watch_line(away, MOMENT, 140).plain.rstrip().endswith("/missing – It can't be looked into: No such file or directory.")


def test_what_is_asked_for_is_of_a_watched_folder() -> None:
    assert {field.name for field in FIELDS} <= set(WatchSpec.__struct_fields__)


@asynccontextmanager
async def on_the_list(
    *watches: WatchView,
    answer: Callable[[Command], CommandOutcome | MalboxError] | None = None,
    attachment: ScriptedAttachment | None = None,
) -> AsyncIterator[tuple[MalboxApp, Pilot[ShutdownMode], ScriptedClient]]:
    client = ScriptedClient([record(1)], watches=watches, answer=answer)
    app = MalboxApp(surroundings(client, attachment=attachment))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.dashboard.tasks.total > 0)
        await pilot.press("W")
        await until(pilot, lambda: isinstance(app.screen, WatchesScreen))
        await pilot.pause()
        yield app, pilot, client


@pytest.mark.slow
async def test_a_folder_is_added_as_it_was_typed() -> None:
    async with on_the_list() as (app, pilot, client):
        await pilot.press(
            "n", *"/srv/in", "tab", *"yes", "tab", "ctrl+u", *"move", "tab", *"*.exe, *.dll", "tab", "ctrl+u", *"0.5"
        )
        await pilot.press("tab", *"deep", "tab", "ctrl+u", *"-3", "enter")
        await until(pilot, lambda: isinstance(app.screen, WatchesScreen))
        await pilot.pause()
    asked = WatchSpec(
        path="/srv/in",
        recursive=True,
        afterwards="move",
        patterns=("*.exe", "*.dll"),
        settle_s=0.5,
        profile="deep",
        priority=-3,
    )
    assert [command.action for command in client.commands] == [AddWatch(watch=asked)]


@pytest.mark.slow
async def test_what_the_engine_refuses_stays_to_be_corrected() -> None:
    def answered(command: Command) -> CommandOutcome:
        assert isinstance(command.action, AddWatch)
        return CommandOutcome(done=command.action.watch.path.startswith("/"), message="path: expected an absolute one [/]")

    async with on_the_list(answer=answered) as (app, pilot, _client):
        await pilot.press("n", *"in", "enter")
        await until(pilot, lambda: "expected an absolute one [/]" in shown(app))
        assert app.screen.query(Input).first().value == "in"
        await pilot.press("home", "/", "enter")
        await until(pilot, lambda: isinstance(app.screen, WatchesScreen))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "typed", "problem"),
    [
        (1, "perhaps", "below: perhaps is neither yes nor no."),
        (4, "1e5", "settling: 1e5 is no number of seconds."),
        (4, "1.2.3", "settling: 1.2.3 is no number of seconds."),
        (6, "--1", "priority: --1 is no whole number."),
    ],
)
async def test_what_can_not_be_read_is_told_and_not_sent(row: int, typed: str, problem: str) -> None:
    async with on_the_list() as (app, pilot, client):
        await pilot.press("n", *["tab"] * row, "ctrl+u", *typed, "enter")
        await until(pilot, lambda: problem in shown(app))
        assert client.commands == []


@pytest.mark.slow
async def test_an_attached_console_says_on_which_host_the_folder_is() -> None:
    async with on_the_list(attachment=ScriptedAttachment()) as (app, pilot, _client):
        assert isinstance(app.screen, WatchesScreen)
        assert str(app.screen.rows.border_title) == "Watched folders of sbx-01"
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, WatchForm))
        await pilot.pause()
        assert "Watch a folder of sbx-01" in shown(app)
        assert "The folder is one of sbx-01, where the engine runs" in shown(app)


@pytest.mark.slow
async def test_a_console_with_the_engine_inside_names_its_own_host_and_warns_of_nothing() -> None:
    async with on_the_list() as (app, pilot, _client):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, WatchForm))
        await pilot.pause()
        assert "Watch a folder of sandbox-1" in shown(app)
        assert "where the engine runs" not in shown(app)


@pytest.mark.slow
async def test_a_console_that_may_only_look_adds_and_removes_none() -> None:
    async with on_the_list(view(), attachment=ScriptedAttachment(read_only=True)) as (app, pilot, client):
        await pilot.press("n", "x")
        await pilot.pause()
        assert isinstance(app.screen, WatchesScreen)
        assert client.commands == []


@pytest.mark.slow
async def test_removing_one_asks_and_names_it() -> None:
    async with on_the_list(view("/srv/in"), view("/srv/too", added=7)) as (app, pilot, client):
        await pilot.press("down", "x")
        await until(pilot, lambda: isinstance(app.screen, Question))
        assert isinstance(app.screen, Question)
        assert "Folder /srv/too: 7 files of it were added." in " ".join(str(line) for line in app.screen._lines)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, WatchesScreen))
        assert client.commands == []
        await pilot.press("x", "down", "enter")
        await until(pilot, lambda: len(client.commands) == 1)
    assert client.commands[0].action == RemoveWatch(path="/srv/too")


@pytest.mark.slow
async def test_nothing_is_removed_where_nothing_is_watched() -> None:
    async with on_the_list() as (app, pilot, client):
        await pilot.press("x", "escape")
        await pilot.pause()
        assert app.screen is app.dashboard
        assert client.commands == []
