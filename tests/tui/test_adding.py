"""How samples come in at the console: named, dropped, pasted, typed."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.screens.add import AddSamples
from tests.tui.playing import engine, played, until
from tests.tui.scripted import ScriptedClient, ScriptedIntake, record, surroundings


async def test_what_the_command_line_named_is_submitted_at_the_start() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play, None, b"/in/a.exe")
    assert [name.origin for name in client.offered] == [b"/in/a.exe"]


@pytest.mark.slow
@pytest.mark.parametrize("first", [[], ["slash"], ["a"], ["c"], ["question_mark"], ["enter"]], ids=lambda value: " ".join(value))
async def test_a_drop_is_taken_whatever_has_the_focus(first: list[str]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*first)
        app.post_message(events.Paste("/in/a.exe\n/in/b.exe"))
        await until(pilot, lambda: len(engine(app).offered) == 2)
        assert not isinstance(app.screen, AddSamples)

    _, client = await played(play)
    assert [name.origin for name in client.offered] == [b"/in/a.exe", b"/in/b.exe"]


@pytest.mark.slow
async def test_a_word_pasted_into_the_filter_is_a_word_also_when_a_file_has_that_name() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("slash")
        app.post_message(events.Paste("a.exe"))
        await pilot.pause()
        await pilot.press("enter")
        assert app.dashboard.needle == "a.exe"

    rows = [record(1)]
    client = ScriptedClient(rows)
    app = MalboxApp(surroundings(client, ScriptedIntake(b"a.exe")))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        await play(app, pilot)
    assert client.offered == []


@pytest.mark.slow
async def test_a_path_can_be_typed_and_completed() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/in/b", "tab")
        assert isinstance(app.screen, AddSamples)
        await pilot.press("enter")
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play)
    assert [name.origin for name in client.offered] == [b"/in/b.exe"]


@pytest.mark.slow
async def test_a_path_that_is_not_there_is_said_and_the_dialog_stays() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("a", *"/nope", "enter")
        assert isinstance(app.screen, AddSamples)
        await pilot.press("escape")

    _, client = await played(play)
    assert client.offered == []
