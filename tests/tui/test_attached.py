"""The console on an engine elsewhere: without a connection, with leave to look only, with others, and how it is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets._footer import FooterKey
from textual.widgets._toast import Toast

from malbox_tui.model.commands import PausePool, ShutdownMode
from malbox_tui.model.errors import Disconnected
from malbox_tui.model.events import EngineStarted, Event, Position, TaskCreated, TaskGivenBack
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Away
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.banner import away_notice
from malbox_tui.tui.glyphs import tone
from malbox_tui.tui.header import header_line
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens import report
from malbox_tui.tui.screens.dialogs import Question
from malbox_tui.tui.screens.task import TaskScreen
from malbox_tui.tui.widgets.away_bar import AwayBar
from malbox_tui.tui.widgets.report_view import ReportView
from tests.tui.playing import until
from tests.tui.scripted import (
    ENGINE_ID,
    NOW,
    ScriptedAttachment,
    ScriptedClient,
    ScriptedIntake,
    console,
    group,
    overview,
    record,
    surroundings,
    worker,
)

Playing = tuple[MalboxApp, Pilot[ShutdownMode], ScriptedClient, ScriptedAttachment]


@asynccontextmanager
async def attached(*, read_only: bool = False, **around: Any) -> AsyncIterator[Playing]:
    """A console on an engine with three tasks and two consoles."""
    rows = [record(1), record(2, TaskState.RUNNING), record(3, TaskState.PENDING)]
    client = ScriptedClient(rows, [worker(1, 2), worker(2)], consoles=(console(), console("ben", ago_s=60.0, read_only=True)))
    way = ScriptedAttachment(read_only=read_only)
    intake = ScriptedIntake(b"/in/a.exe")
    app = MalboxApp(surroundings(client, intake, **{"attachment": way, **around}))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: app.picture.overview is not None and app.dashboard.tasks.total == 3)
        yield app, pilot, client, way


async def frame(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
    await app.showing.show_frame()
    await pilot.pause()


def said(app: MalboxApp) -> list[str]:
    return [str(toast._notification.message) for toast in app.screen.query(Toast)]


def banner(app: MalboxApp) -> str:
    return "\n".join(line.plain for line in app.dashboard.banner._lines)


# --- while there is no connection ----------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_lost_connection_can_not_be_missed() -> None:
    async with attached() as (app, pilot, _, way):
        assert banner(app) == ""
        way.breaks("the engine has ended")
        await frame(app, pilot)
        assert banner(app).startswith(
            " NOT CONNECTED  since 08:59:30: the engine has ended; trying again in 4 s; what you see is of"
        )
        assert "not connected" in app.dashboard.header.line(0, 120).plain


@pytest.mark.slow
@pytest.mark.parametrize("pages", ["enter", "enter s", "enter v"])
async def test_nor_can_it_on_a_page_that_is_open(pages: str) -> None:
    async with attached() as (app, pilot, _, way):
        await pilot.press("end")
        await frame(app, pilot)
        for key in pages.split():
            before = app.screen
            await pilot.press(key)
            await until(pilot, lambda before=before: app.screen is not before)
        way.breaks("the engine has ended")
        await frame(app, pilot)
        bars = [str(bar.render()) for screen in app.screen_stack for bar in screen.query(AwayBar)]
        assert len(bars) == len(pages.split())
        assert all(bar.startswith(" NOT CONNECTED  since 08:59:30: the engine has ended; trying again in 4 s;") for bar in bars)
        assert app.screen.query_one(AwayBar).region.y == 0
        way.comes_back()
        await frame(app, pilot)
        assert not list(app.screen.query(AwayBar))


@pytest.mark.slow
async def test_reports_that_were_asked_for_meanwhile_are_read_when_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "READ_AGAIN_S", 0.01)
    async with attached() as (app, pilot, client, way):
        path = record(1).task.plugins[0].results[0].path
        client.results[path] = Disconnected("sbx-01", "gone")
        await pilot.press("end", "enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and app.screen.record is not None)
        way.breaks()
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, report.ReportScreen))
        await pilot.pause()
        assert "Reading" in str(app.screen.query_one(ReportView).line(0, 80))
        client.results[path] = b'{"sections": [{"id": "s", "title": "At last", "blocks": []}]}'
        way.comes_back()
        view = app.screen.query_one(ReportView)
        await until(pilot, lambda: any("At last" in str(view.line(index, 80)) for index in range(view.line_count())))


@pytest.mark.parametrize(
    ("left_s", "words"), [(None, "trying again now"), (0.2, "trying again now"), (3.6, "trying again in 4 s")]
)
def test_it_says_when_it_tries_again(left_s: float | None, words: str) -> None:
    assert f"; {words}; " in away_notice(Away(NOW, "gone", left_s), lambda at: "noon").words


async def test_time_stands_while_there_is_no_connection() -> None:
    seconds = 0.0
    async with attached(monotonic=lambda: seconds) as (app, _, _, way):
        assert app.moment().now == NOW
        way.breaks()
        seconds = 100.0
        assert app.moment().now == NOW
        way.comes_back()
        assert app.moment().now == NOW + 100


@pytest.mark.slow
async def test_nothing_is_asked_of_an_engine_that_can_not_be_reached_and_everything_when_it_is_back() -> None:
    async with attached() as (app, pilot, client, way):
        way.breaks()
        client.happens(TaskCreated(task_id=4, sha256="0" * 64, type="static", priority=1, name="x"))
        client.queries.clear()
        await frame(app, pilot)
        assert client.queries == []
        client.put(record(4, TaskState.PENDING))
        way.comes_back()
        await frame(app, pilot)
        await until(pilot, lambda: app.dashboard.tasks.total == 4)
        await frame(app, pilot)
        assert banner(app) == ""


@pytest.mark.slow
async def test_what_fails_for_want_of_a_connection_leaves_what_was_seen_last() -> None:
    async with attached() as (app, pilot, client, _):
        client.fails = Disconnected("sbx-01", "gone")
        app.feed.changes.anything = app.feed.changes.tasks = True
        await frame(app, pilot)
        assert app.dashboard.tasks.total == 3
        assert app.dashboard.tasks.problem is None


@pytest.mark.slow
async def test_keys_that_need_the_engine_say_so_meanwhile() -> None:
    async with attached() as (app, pilot, client, way):
        way.breaks()
        await frame(app, pilot)
        for key in ("p", "r", "enter", "slash"):
            await pilot.press(key)
        await pilot.pause()
        assert client.commands == []
        assert app.screen is app.dashboard
        assert said(app).count("Not connected since 08:59:30: this key needs the engine.") == 4
        assert way.hurried == 4


async def test_a_drop_says_so_too() -> None:
    async with attached() as (app, pilot, client, way):
        way.breaks()
        await app.on_event(events.Paste("/in/a.exe"))
        await pilot.pause()
        assert client.offered == []
        assert said(app) == ["1 path not added. Not connected since 08:59:30: this key needs the engine."]


async def test_an_engine_that_was_started_again_is_told_and_read_anew() -> None:
    async with attached() as (app, pilot, client, _):
        client._engine["position"] = Position(ENGINE_ID, 2, 7)
        client._tell(Event(Position(ENGINE_ID, 2, 7), NOW, EngineStarted(recovered=1)))
        await until(pilot, lambda: app.picture.overview is not None and app.picture.overview.position.epoch == 2)
        await frame(app, pilot)
        assert said(app) == ["The engine was started again; everything was read anew."]


async def test_what_happened_while_an_engine_was_started_again_is_in_the_log() -> None:
    async with attached() as (app, pilot, client, _):
        client.happens(TaskGivenBack(task_id=2, reason="before", crashes=0))
        await until(pilot, lambda: len(app.picture.log) == 1)
        client._engine["position"] = Position(ENGINE_ID, 2, 4)
        for seq, body in enumerate(
            (
                TaskGivenBack(task_id=1, reason="interrupted", crashes=1),
                TaskGivenBack(task_id=2, reason="interrupted", crashes=1),
                EngineStarted(recovered=2),
                TaskGivenBack(task_id=1, reason="after", crashes=1),
            ),
            2,
        ):
            client._tell(Event(Position(ENGINE_ID, 2, seq), NOW, body))
        await until(pilot, lambda: app.picture.log[-1].detail == "after")
        assert [(line.subject, line.detail) for line in app.picture.log] == [
            ("#2 given back", "before"),
            ("#1 given back", "interrupted"),
            ("#2 given back", "interrupted"),
            ("engine started", "2 tasks recovered"),
            ("#1 given back", "after"),
        ]
        assert app.picture.tasks[2].state is TaskState.RUNNING, "as it was read, which is later than what is in the log"


@pytest.mark.parametrize("key", ["c", "enter"])
async def test_a_question_about_a_task_of_another_engine_is_closed_unanswered(key: str) -> None:
    async with attached() as (app, pilot, client, _):
        await pilot.press(key)
        await until(pilot, lambda: app.screen is not app.dashboard)
        other = Position("another", 1, 3)
        client._engine["position"] = other
        client._tell(Event(other, NOW, EngineStarted(recovered=0)))
        await until(pilot, lambda: app.picture.overview is not None and app.picture.overview.position == other)
        await frame(app, pilot)
        assert app.screen is app.dashboard
        assert said(app) == ["Another engine answers here now; everything was read anew."]
        assert client.commands == []


# --- read-only -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("key", ["p", "c", "r", "plus", "minus", "a", "s", "right_square_bracket", "left_curly_bracket"])
async def test_one_who_may_only_look_changes_nothing_and_is_told_why(key: str) -> None:
    async with attached(read_only=True) as (app, pilot, client, _):
        await pilot.press(key)
        await pilot.pause()
        assert client.commands == []
        assert app.screen is app.dashboard
        assert said(app) == ["This console may only look: it was opened with --read-only."]


async def test_keys_that_change_something_are_greyed_for_one_who_may_only_look() -> None:
    async with attached(read_only=True) as (app, pilot, _, _):
        await frame(app, pilot)
        await until(pilot, lambda: any(key.disabled or key.has_class("-disabled") for key in app.screen.query(FooterKey)))
        greyed = {key.description for key in app.screen.query(FooterKey) if key.has_class("-disabled")}
        assert greyed == {"add", "cancel", "retry", "pause"}


async def test_one_who_may_only_look_still_looks() -> None:
    async with attached(read_only=True) as (app, pilot, _, _):
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is not app.dashboard)


async def test_one_who_may_operate_does() -> None:
    async with attached() as (_, pilot, client, _):
        await pilot.press("p")
        await until(pilot, lambda: bool(client.commands))
        assert client.commands[0].action == PausePool()


# --- where, and who else -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "read_only", "beginning"),
    [
        (120, False, " malbox  ana@sbx-01, attached, 2 consoles"),
        (120, True, " malbox  ana@sbx-01, attached, read-only, 2 consoles"),
        (60, True, " malbox  ana@sbx-01, attached, read-only"),
    ],
)
def test_the_header_says_where_one_is_attached_and_how(width: int, read_only: bool, beginning: str) -> None:
    seen = overview(consoles=(console(), console("ben")))
    moment = Moment(NOW)
    assert header_line(seen, group(), moment, width, ScriptedAttachment(read_only=read_only)).plain.startswith(beginning)


def test_before_anything_was_read_the_header_claims_nothing() -> None:
    way = ScriptedAttachment()
    assert header_line(None, None, Moment(NOW), 80, way).plain == " malbox  ana@sbx-01, connecting…"
    way.breaks()
    assert header_line(None, None, Moment(NOW), 80, way).plain == " malbox  ana@sbx-01, not connected"


def test_a_long_place_is_cut_before_what_matters() -> None:
    line = header_line(overview(), group(), Moment(NOW), 80, ScriptedAttachment("a" * 40 + "@" + "b" * 40, read_only=True))
    assert "…, attached, read-only" in line.plain
    assert line.cell_len <= 80
    assert tone("bad", dark=True)


@pytest.mark.slow
async def test_a_key_names_who_else_is_there() -> None:
    async with attached() as (app, pilot, _, _):
        await pilot.press("u")
        await until(pilot, lambda: isinstance(app.screen, Question))
        assert isinstance(app.screen, Question)
        lines = [line.plain for line in app.screen._lines]
        assert lines[0].startswith("ana from ana@laptop (process 4711), since 08:50:00 (10:00)")
        assert lines[1].startswith("ben from")
        assert lines[1].endswith(", read-only")


# --- leaving -------------------------------------------------------------------------------------------------------------------


async def test_leaving_an_engine_elsewhere_asks_nothing_and_stops_nothing() -> None:
    left: list[ShutdownMode] = []
    async with attached(on_leave=left.append) as (app, pilot, client, _):
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running or app.return_value is not None)
    assert len(left) == 1
    assert client.commands == []


async def test_it_can_be_left_while_there_is_no_connection() -> None:
    async with attached(on_leave=lambda mode: None) as (app, pilot, _, way):
        way.breaks()
        await frame(app, pilot)
        await pilot.press("q")
        await until(pilot, lambda: app.return_value is not None)


@asynccontextmanager
async def inside(running: bool) -> AsyncIterator[tuple[MalboxApp, Pilot[ShutdownMode], list[str]]]:
    """A console with the pool inside that can go on in the background."""
    rows = [record(1), record(2, TaskState.RUNNING if running else TaskState.COMPLETED)]
    client, told = ScriptedClient(rows, [worker(1, 2 if running else None)]), []
    around = surroundings(client, on_background=lambda: told.append("background"), on_leave=lambda mode: told.append(mode.value))
    app = MalboxApp(around)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        yield app, pilot, told


@pytest.mark.slow
async def test_leaving_a_pool_at_work_offers_to_let_it_go_on_in_the_background() -> None:
    async with inside(running=True) as (app, pilot, told):
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, Question))
        assert isinstance(app.screen, Question)
        assert any("what runs begins anew" in line.plain for line in app.screen._lines)
        await pilot.press("right", "right", "right", "enter")
        await until(pilot, lambda: bool(told))
        assert told == ["background", "give_back"]


@pytest.mark.slow
async def test_an_idle_pool_goes_on_in_the_background_by_key() -> None:
    async with inside(running=False) as (app, pilot, told):
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, Question))
        await pilot.press("escape")
        assert told == []
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, Question))
        await pilot.press("right", "enter")
        await until(pilot, lambda: bool(told))
        assert told == ["background", "give_back"]


@pytest.mark.slow
async def test_an_engine_elsewhere_is_not_put_into_the_background() -> None:
    async with attached() as (app, pilot, _, _):
        await pilot.press("b")
        await pilot.pause()
        assert app.screen is app.dashboard
