"""The page of one content: every task of it, what people noted, and keys that note more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.model.commands import MarkSample, PurgeSample
from malbox_tui.model.events import SampleRemoved
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.sample import Note, Sample
from malbox_tui.model.task import TaskState
from malbox_tui.model.upkeep import Cause
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.sample_page import sample_lines
from malbox_tui.tui.screens.dashboard import Dashboard
from malbox_tui.tui.screens.dialogs import Prompt, Question
from malbox_tui.tui.screens.sample import SampleScreen
from malbox_tui.tui.screens.task import TaskScreen
from tests.reports.samples import EVIL
from tests.tui.scripted import (
    MALICIOUS,
    NOW,
    SUSPICIOUS,
    ScriptedClient,
    plugin_run,
    sample,
    sha256_of,
    surroundings,
    task,
    worker,
)
from tests.tui.test_hostile_text import assert_inert

MOMENT = Moment(NOW)
PATIENCE_S = 60.0


def marked_sample() -> Sample:
    notes = (Note(NOW - 90_000, "ana", "came by mail"), Note(NOW - 60, "ben", "same actor as\nlast week"))
    return msgspec.structs.replace(sample(1), notes=notes, tags=("apt", "office"))


def three() -> list[TaskRecord]:
    tasks = [
        task(3, TaskState.PENDING, sha256=sha256_of(1)),
        task(2, sha256=sha256_of(1), verdict=SUSPICIOUS, plugins=(plugin_run(2, "yara-x", verdict=SUSPICIOUS),)),
        task(1, sha256=sha256_of(1), verdict=MALICIOUS, plugins=(plugin_run(1, "old", verdict=MALICIOUS),), ago_s=90_000),
    ]
    return [TaskRecord(each, marked_sample()) for each in tasks]


def lines_of(held: Sample, width: int = 100) -> list[str]:
    return [line.plain for line in sample_lines(held, [row.task for row in three()], 5, MOMENT, width)]


def test_the_page_says_all_that_is_known_of_a_content() -> None:
    shown = "\n".join(lines_of(marked_sample()))
    assert "! malicious 100" in shown.splitlines()[0]
    for told in (
        "old in task 1 says malicious",
        "yara-x in task 2 says suspicious",
        "apt, office",
        "ana, 1d 1h ago",
        "came by mail",
        "last week",
        "#3",
        "pending",
        "EICAR_Test_File",
        "and 2 earlier ones",
    ):
        assert told in shown, told


@pytest.mark.parametrize("evil", EVIL)
def test_what_people_wrote_and_named_is_text(evil: str) -> None:
    held = msgspec.structs.replace(marked_sample(), notes=(Note(NOW, evil, evil),), tags=(evil,))
    for line in lines_of(held, 60):
        assert line.isprintable(), line


@asynccontextmanager
async def at_sample(client: ScriptedClient) -> AsyncIterator[Pilot[object]]:
    app = MalboxApp(surroundings(client))
    async with app.run_test(size=(100, 60), notifications=True) as pilot:
        await until(pilot, lambda: app.dashboard.tasks.total > 0)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and app.screen.record is not None)
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, SampleScreen) and "Tasks (3)" in assert_inert(pilot))
        yield pilot  # type: ignore[misc]


async def until(pilot: Pilot[object], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await pilot.pause(0.01)


@pytest.mark.slow
async def test_keys_write_a_note_and_give_and_take_tags() -> None:
    client = ScriptedClient(three(), [worker(1)])
    async with at_sample(client) as pilot:
        for key, text, action in (
            ("n", "  look again ", MarkSample(sha256=sha256_of(1), note="look again")),
            ("number_sign", "new -apt other", MarkSample(sha256=sha256_of(1), tags=("new", "other"), untags=("apt",))),
        ):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(pilot.app.screen, Prompt))
            pilot.app.screen.query_one(Input).value = text
            await pilot.press("enter")
            await until(pilot, lambda action=action: action in [command.action for command in client.commands])  # type: ignore[misc]
            await until(pilot, lambda: isinstance(pilot.app.screen, SampleScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, TaskScreen))
        assert "apt, office" in assert_inert(pilot)
        assert "2 (s shows them)" in assert_inert(pilot)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["n", "number_sign"])
async def test_nothing_is_noted_when_nothing_was_written(key: str) -> None:
    client = ScriptedClient(three(), [worker(1)])
    async with at_sample(client) as pilot:
        for last in ("escape", "enter"):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(pilot.app.screen, Prompt))
            await pilot.press(last)
            await until(pilot, lambda: isinstance(pilot.app.screen, SampleScreen))
        assert client.commands == []


@pytest.mark.slow
async def test_a_content_is_removed_when_that_is_meant_and_its_pages_with_it() -> None:
    ended = [record for record in three() if record.task.state.is_final]
    client = ScriptedClient([*ended, TaskRecord(task(4, sha256=sha256_of(1)), marked_sample())], [worker(1)])
    async with at_sample(client) as pilot:
        for choice in ("escape", "enter"):
            await pilot.press("x")
            await until(pilot, lambda: isinstance(pilot.app.screen, Question))
            assert "3 tasks, all results, names, notes and tags go with it" in assert_inert(pilot)
            await pilot.press(choice)
            await until(pilot, lambda: isinstance(pilot.app.screen, SampleScreen))
        assert client.commands == [], "nothing is removed by a key that was pressed too often"
        await pilot.press("x")
        await until(pilot, lambda: isinstance(pilot.app.screen, Question))
        await pilot.press("right")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Dashboard))
        assert [command.action for command in client.commands] == [PurgeSample(sha256=sha256_of(1))]


@pytest.mark.slow
async def test_pages_of_what_somebody_else_removed_say_so() -> None:
    client = ScriptedClient([record for record in three() if record.task.state.is_final], [worker(1)])
    app = MalboxApp(surroundings(client))
    async with app.run_test(size=(100, 60)) as pilot:
        await until(pilot, lambda: app.dashboard.tasks.total > 0)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and app.screen.record is not None)
        page = app.screen
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, SampleScreen) and "Tasks (2)" in assert_inert(pilot))
        client.records.clear()
        client.happens(SampleRemoved(sha256=sha256_of(1), cause=Cause.PURGE, task_ids=(1, 2), states={TaskState.COMPLETED: 2}))
        await until(pilot, lambda: f"{sha256_of(1)} is not kept any more" in assert_inert(pilot))
        await pilot.press("x")
        await pilot.pause()
        assert isinstance(app.screen, SampleScreen), "what is gone can't be removed"
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is page and "it was removed with its sample" in assert_inert(pilot))


@pytest.mark.slow
async def test_a_content_that_is_worked_on_is_not_removed() -> None:
    client = ScriptedClient(three(), [worker(1)])
    async with at_sample(client) as pilot:
        await pilot.press("x")
        await until(pilot, lambda: any("wait or run: #3" in said.message for said in pilot.app._notifications))
        assert isinstance(pilot.app.screen, SampleScreen)
        assert client.commands == []
