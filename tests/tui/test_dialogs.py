"""Screens over the console: answers that come twice or too late, palettes and dialogs with little room."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from textual.command import CommandList
from textual.css.query import NoMatches
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input
from textual.worker import Worker

from malbox_tui.model.commands import PausePool, ShutdownMode
from malbox_tui.model.task import TaskState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.screens.dialogs import Dialog, Question
from malbox_tui.tui.screens.palette import Palette
from tests.tui.playing import at_once, engine, played, until
from tests.tui.scripted import ScriptedClient, record, surroundings, worker


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opened", "answer"),
    [
        (["slash"], "enter"),
        (["slash"], "escape"),
        (["c"], "enter"),
        (["c"], "escape"),
        (["q"], "enter"),
        (["a"], "escape"),
        (["question_mark"], "escape"),
        (["ctrl+p"], "escape"),
    ],
    ids=str,
)
async def test_an_answer_given_twice_takes_no_other_screen_away(opened: list[str], answer: str) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*opened)
        await until(pilot, lambda: app.screen is not app.dashboard and app.screen.focused is not None)
        at_once(app, answer, 3)
        await until(pilot, lambda: app.screen is app.dashboard)
        await pilot.pause()
        assert app.screen is app.dashboard

    _, client = await played(play)
    assert not client.commands


@pytest.mark.slow
async def test_a_command_chosen_twice_in_the_palette_is_carried_out_once() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("ctrl+p", *"Pause")
        await until(pilot, lambda: app.screen.query_one(CommandList).option_count > 0)
        at_once(app, "enter", 4)
        await until(pilot, lambda: bool(engine(app).commands))
        await pilot.pause()
        assert app.screen is app.dashboard

    _, client = await played(play)
    assert [command.action for command in client.commands] == [PausePool()]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["pagedown", "pageup", "home", "end", "down", "up", "enter"])
async def test_no_key_breaks_a_palette_whose_list_has_no_room(key: str) -> None:
    app = MalboxApp(surroundings(ScriptedClient([record(1)])))
    async with app.run_test(size=(20, 3)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        await pilot.press("ctrl+p", *"Lower")
        await until(pilot, lambda: app.screen.query_one(CommandList).option_count > 0)
        await pilot.press("down", key)
        assert app.breakdown is None


@pytest.mark.slow
async def test_a_search_of_the_palette_that_outlives_it_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[Worker[object]] = []
    begin = Palette.run_worker

    def begin_and_note(palette: Palette, *arguments: object, **options: object) -> Worker[object]:
        searches.append(begin(palette, *arguments, **options))
        return searches[-1]

    monkeypatch.setattr(Palette, "run_worker", begin_and_note)

    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("ctrl+p")
        await until(pilot, lambda: app.screen is not app.dashboard and app.screen.focused is not None)
        await app.screen.query_one(CommandList).remove()
        before = len(searches)
        app.screen.query_one(Input).value = "x"
        await until(pilot, lambda: len(searches) > before)
        await until(pilot, lambda: searches[-1].is_finished)
        await pilot.pause()
        assert app.breakdown is None

    await played(play)


class Busy(Dialog[None]):
    class Found(Message):
        """What it searched for."""

    def on_busy_found(self) -> None:
        self.query_one("#gone")


@pytest.mark.parametrize("taken_away", [True, False])
async def test_what_a_screen_looks_for_after_it_was_taken_away_breaks_nothing(taken_away: bool) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        busy = Busy()
        await app.push_screen(busy)
        busy.post_message(Busy.Found())
        if taken_away:
            await app.pop_screen()
        await pilot.pause()
        assert app.breakdown is None

    with nullcontext() if taken_away else pytest.raises(NoMatches):
        await played(play)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(20, 5), (30, 8), (40, 10), (60, 16)])
async def test_the_chosen_answer_is_in_sight_on_any_terminal(size: tuple[int, int]) -> None:
    client = ScriptedClient([record(2, TaskState.RUNNING)], [worker(1, 2)])
    app = MalboxApp(surroundings(client))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, Question) and app.screen.focused is not None)
        for _ in range(4):
            await until(pilot, lambda: _is_in_sight(app))
            await pilot.press("down")


def _is_in_sight(app: MalboxApp) -> bool:
    chosen = app.screen.focused
    return chosen is not None and any(found[0] is chosen for found in app.screen.get_widgets_at(*chosen.region.offset))
