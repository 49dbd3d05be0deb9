"""The screenshots of a task: the latest while it is at work, each of them when it has ended."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.events import Event, Position, ScreenshotTaken, TaskStarting
from malbox_tui.model.report import ResultRef
from malbox_tui.model.task import TaskState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.pictures import Picture
from malbox_tui.tui.widgets.picture_view import PictureView
from tests.tui.machines_shown import BUSY, FREE, fleet, looked, shown, with_fleet
from tests.tui.scripted import NOW, ScriptedClient, overview, plugin_run, record, worker
from tests.tui.test_pictures import packed, shot, two_colours


def test_the_latest_picture_of_a_task_is_known_until_it_is_tried_again() -> None:
    picture = LivePicture()
    picture.seed(overview(), [record(2, TaskState.RUNNING)])
    for number in (1, 2):
        body = ScreenshotTaken(task_id=2, machine="win10-1", result=shot(number))
        assert not picture.apply(Event(Position("e", 1, 1), NOW + number, body, durable=False))
    assert (picture.tasks[2].screenshot, picture.tasks[2].screenshot_at) == (shot(2), NOW + 2)
    assert not picture.log, "each picture would drown the rest"
    picture.apply(Event(Position("e", 1, 2), NOW, TaskStarting(task_id=2, worker="w", attempt=2)))
    assert picture.tasks[2].screenshot is None


@pytest.mark.slow
async def test_a_task_at_work_shows_what_its_machine_shows_now() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("enter")
        view = await looked(app, pilot)
        assert "The screen of win10-1, 0:05 ago" in shown(app)
        for number in (2, 3):
            client.happens(ScreenshotTaken(task_id=2, machine="win10-1", result=shot(number)), durable=False)
        while app.picture.tasks[2].screenshot != shot(3):
            await pilot.pause()
        await app.showing.show_everything()
        await looked(app, pilot)
        assert isinstance(view.picture, Picture)
        assert view.picture.width == 24
        assert "The screen of win10-1, 0:00 ago" in shown(app)

    client = fleet()
    await with_fleet(play, client)


async def test_a_task_whose_machine_was_not_looked_at_yet_says_so() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("enter")
        await looked(app, pilot)
        assert "No picture of win10-1's screen yet." in shown(app)

    older = msgspec.structs.replace(BUSY, screenshot_at=NOW - 9000)
    await with_fleet(play, fleet(older, FREE))


@pytest.mark.slow
async def test_of_an_ended_tasks_screenshots_one_is_chosen() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "enter")
        seen = []
        for key in (None, "left", "left", "left", "right"):
            if key is not None:
                await pilot.press(key)
            view = await looked(app, pilot)
            assert isinstance(view.picture, Picture)
            seen.append((view.picture.width, shown(app).partition("Screenshot ")[2][:6]))
        assert seen == [(24, "3 of 3"), (16, "2 of 3"), (8, "1 of 3"), (8, "1 of 3"), (16, "2 of 3")]

    runs = (plugin_run(1, "guest-run", results=[shot(1), shot(2), shot(3)]),)
    await with_fleet(play, fleet(runs=runs))


async def test_a_task_without_a_machine_has_no_place_for_a_picture() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "enter")
        view = await looked(app, pilot)
        assert not view.display

    await with_fleet(play)


@pytest.mark.slow
async def test_a_stream_of_pictures_is_followed_by_its_last_ones() -> None:
    class Slow(ScriptedClient):
        reads: list[str]

        async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
            self.reads.append(Path(reference.path).name)
            await gate.wait()
            return packed(two_colours())

    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("enter")
        while not client.reads:
            await pilot.pause()
        view = app.screen.query_one(PictureView)
        for number in range(2, 30):
            view.show(shot(number), lambda: "")
        gate.set()
        await looked(app, pilot)

    gate = asyncio.Event()
    client = Slow(fleet().records.values(), [worker(1, 2)], machines=(BUSY,))
    client.reads = []
    await with_fleet(play, client)
    assert client.reads == ["screenshot-001.png", "screenshot-029.png"]
