"""The screen of one machine: live, with its picture, and where keys lead from it."""

from __future__ import annotations

import msgspec
import pytest
from textual.pilot import Pilot

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import Disconnected
from malbox_tui.model.machine import MachineState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.pictures import Picture, Unshowable
from malbox_tui.tui.screens.dashboard import Dashboard
from malbox_tui.tui.screens.machine import MachineScreen
from malbox_tui.tui.screens.task import TaskScreen
from tests.tui.machines_shown import BUSY, FREE, fleet, looked, shown, with_fleet
from tests.tui.scripted import NOW
from tests.tui.test_pictures import packed, shot, two_colours


@pytest.mark.slow
@pytest.mark.parametrize("size", [(140, 45), (80, 24), (60, 16)])
async def test_enter_shows_the_machine_with_its_picture_and_escape_goes_back(size: tuple[int, int]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter")
        view = await looked(app, pilot)
        assert isinstance(app.screen, MachineScreen)
        assert isinstance(view.picture, Picture)
        assert "Machine win10-1" in shown(app)
        await pilot.press("end")
        await pilot.pause()
        if size[1] > 16:
            assert "Its screen at 08:59:55, 0:05 ago" in shown(app)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, Dashboard)
        assert app.dashboard.machines.has_focus

    await with_fleet(play, size=size)


@pytest.mark.slow
async def test_enter_goes_on_to_the_task_that_has_it_and_back_again() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, TaskScreen)
        assert app.screen.task_id == 2
        await pilot.press("escape")
        assert isinstance(app.screen, MachineScreen)
        await pilot.press("escape", "down", "enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MachineScreen), "no task has this one"

    await with_fleet(play)


@pytest.mark.slow
async def test_the_screen_is_live_and_says_when_its_machine_is_gone() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter")
        await looked(app, pilot)
        now = msgspec.structs.replace(BUSY, state=MachineState.REVERTING, task_id=None, screenshot=shot(2), screenshot_at=NOW)
        client._engine["machines"] = (now, FREE)
        await app.showing.show_everything()
        view = await looked(app, pilot)
        assert isinstance(view.picture, Picture)
        assert view.picture.width == 16
        assert "↻ reverting" in shown(app)
        client._engine["machines"] = (FREE,)
        await app.showing.show_everything()
        await pilot.pause()
        assert "no longer in the pool" in shown(app)
        assert (await looked(app, pilot)).picture is None
        await pilot.press("y", "d", "e", "i", "x", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MachineScreen)
        await pilot.press("escape")

    client = fleet()
    await with_fleet(play, client)
    assert client.commands == []


@pytest.mark.slow
async def test_a_picture_that_can_not_be_shown_is_a_line() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter")
        view = await looked(app, pilot)
        assert isinstance(view.picture, Unshowable)
        assert "The picture can't be shown" in shown(app)

    client = fleet()
    client.results[shot(1).path] = b"\x1b[2J"
    await with_fleet(play, client)


@pytest.mark.slow
async def test_without_colours_words_say_what_there_is() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        app.no_color = True
        await pilot.press("m", "enter")
        await looked(app, pilot)
        assert "A picture of 8×8 pixels, which this terminal" in shown(app)
        assert "▀" not in shown(app)

    await with_fleet(play, size=(140, 45))


@pytest.mark.slow
async def test_a_picture_that_could_not_be_read_for_the_connection_comes_with_the_next_look() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter")
        assert (await looked(app, pilot)).picture is None
        client.results[shot(1).path] = packed(two_colours())
        app.show_time()
        assert isinstance((await looked(app, pilot)).picture, Picture)

    client = fleet()
    client.results[shot(1).path] = Disconnected("ana@sbx-01", "it is gone")
    await with_fleet(play, client)
