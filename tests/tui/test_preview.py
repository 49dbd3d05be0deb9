"""What a drop would bring in is seen before it is added, and can be taken back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.model.commands import CancelTasks, Command, CommandOutcome, ShutdownMode, TargetResult
from malbox_tui.model.errors import MalboxError, StoreError
from malbox_tui.model.intake import Way
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Account, Offer, Receipt, Refusal, Refused, SubmissionOptions
from malbox_tui.model.survey import Survey
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Dropped
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.intake_words import preview_lines, preview_title
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens.dialogs import Question
from malbox_tui.tui.screens.preview import Preview
from tests.tui.hostile import NAMES
from tests.tui.playing import engine, played, until
from tests.tui.scripted import ScriptedClient, ScriptedIntake, record, sha256_of, surroundings

MOMENT = Moment(0.0)
SEEN = Survey(
    files=12_000,
    size_bytes=3_400_000,
    kinds={"Windows program": 11_000, "text": 990, "PDF": 10},
    archives=2,
    opens_archives=True,
    sums=("a" * 64, "b" * 64),
    twins=3,
    refused=5,
    refusals=tuple(Refused(SampleName(b"l%d" % number), Refusal("link", "It is a link.")) for number in range(5)),
    done=True,
)


def lines(survey: Survey = SEEN, known: set[str] | None = frozenset(), width: int = 80) -> str:  # type: ignore[assignment]
    return "\n".join(line.plain for line in preview_lines(survey, "/in and 3 more", known, MOMENT, width))


def test_count_size_kinds_duplicates_archives_and_refusals_are_shown() -> None:
    said = lines(known={"a" * 64})
    assert preview_title(SEEN).plain == "Add 12,000 files, 3.2 M"
    assert "11,000 Windows program, 990 text, 10 PDF" in said
    assert "archives   2; what is in them is taken" in said
    assert "1 has a task already; 3 are here twice; 11,993 not read for that" in said.replace("\n           ", " ")
    assert "refused    5 can't be taken:" in said
    assert "l0: It is a link." in said
    assert "and 2 more; the account will name each" in said


def test_archives_that_stay_closed_are_files() -> None:
    assert "archives   2; not opened, each is taken as one file" in lines(replace(SEEN, opens_archives=False))


def test_a_look_that_goes_on_says_so_and_one_that_can_not_ask_too() -> None:
    assert preview_title(Survey(files=1)).plain == "Add 1 file, 0 B so far"
    assert "could not be asked" in lines(known=None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 21])
def test_hostile_names_are_text_that_fits(name: bytes, width: int) -> None:
    seen = Survey(files=0, refused=1, refusals=(Refused(SampleName(name), Refusal("link", "It is a link.")),), done=True)
    for line in preview_lines(seen, name.decode("utf-8", "surrogateescape"), set(), MOMENT, width):
        assert line.plain.isprintable()
        assert line.cell_len <= width


async def drop(app: MalboxApp, pilot: Pilot[ShutdownMode], text: str = "/in/a.exe") -> Preview:
    app.post_message(events.Paste(text))
    await until(pilot, lambda: isinstance(app.screen, Preview))
    assert isinstance(app.screen, Preview)
    return app.screen


@pytest.mark.slow
async def test_one_key_adds_with_what_is_asked_and_the_account_is_told_how_it_came() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        screen = await drop(app, pilot)
        fields = list(screen.query(Input))
        fields[3].value, fields[4].value, fields[5].value = "office", "7", "yes"
        await pilot.press("enter")
        await until(pilot, lambda: bool(engine(app).offered))

    _, client = await played(play)
    (options,) = client.options
    assert (options.profile, options.priority, options.again) == ("office", 7, True)
    assert (options.intake.way, options.intake.title) == (Way.DROP, "/in/a.exe")


@pytest.mark.slow
async def test_what_can_not_be_asked_keeps_the_preview_and_escape_adds_nothing() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        screen = await drop(app, pilot)
        screen.query(Input).last().value = "perhaps"
        await pilot.press("enter")
        assert isinstance(app.screen, Preview)
        await pilot.press("escape")
        assert not isinstance(app.screen, Preview)

    _, client = await played(play)
    assert client.offered == []


@pytest.mark.slow
async def test_files_that_a_terminal_drops_one_by_one_are_one_preview() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        for path in ("/in/a.exe", "/in/b.exe", "/in/a.exe"):
            await drop(app, pilot, path)
        assert len(app.screen_stack) == 3
        await pilot.press("enter")
        await until(pilot, lambda: len(engine(app).offered) == 2)

    _, client = await played(play)
    assert [name.origin for name in client.offered] == [b"/in/a.exe", b"/in/b.exe"]


class Some(ScriptedIntake):
    """Some of what is dropped is not here."""

    def dropped(self, text: str) -> Dropped:
        return Dropped((b"/in/a.exe",), "There is no /x on sandbox-1, nor 1 more.", missing=(b"/x", b"/y"))


@pytest.mark.slow
async def test_what_is_missing_is_said_and_goes_into_the_account_too() -> None:
    client = ScriptedClient([record(1)])
    app = MalboxApp(surroundings(client, Some()))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        screen = await drop(app, pilot)
        await pilot.pause()
        assert screen._problem.display
        await pilot.press("enter")
        await until(pilot, lambda: len(client.offered) == 3)
    assert [name.origin for name in client.offered] == [b"/in/a.exe", b"/x", b"/y"]


@pytest.mark.slow
@pytest.mark.parametrize("fails", [None, StoreError("The store can't be read.")], ids=["answers", "fails"])
async def test_what_has_a_task_already_is_found_by_its_sum(fails: MalboxError | None) -> None:
    client = ScriptedClient([record(1), record(2, TaskState.CANCELED)])
    intake = ScriptedIntake(b"/in/a.exe")
    intake.surveyed = Survey(files=3, sums=(sha256_of(1), sha256_of(2), "0" * 64), done=True)
    app = MalboxApp(surroundings(client, intake))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        client.fails = fails
        screen = await drop(app, pilot)
        await until(pilot, lambda: bool(screen._asked))
        await pilot.pause()
        assert screen._known == (None if fails else {sha256_of(1)}), "a canceled one is analysed again"


# --- taking back -----------------------------------------------------------------------------------------------------------------


def canceling(command: Command) -> CommandOutcome:
    assert isinstance(command.action, CancelTasks)
    assert command.action.expected is TaskState.PENDING
    targets = tuple(TargetResult(task_id, True, "Canceled.") for task_id in command.action.task_ids)
    return CommandOutcome(done=True, message="Done.", targets=targets)


def said(app: MalboxApp) -> list[str]:
    return [notice.message for notice in app._notifications]


Play = Callable[[MalboxApp, Pilot[ShutdownMode], ScriptedClient], Any]


async def after_adding(play: Play, *tasks: tuple[int, TaskState]) -> ScriptedClient:
    """Two files were dropped and added, as the tasks 1001 and 1002."""
    client = ScriptedClient([record(1), *(record(number, state) for number, state in tasks)], answer=canceling)
    app = MalboxApp(surroundings(client, ScriptedIntake(b"/in/a.exe", b"/in/b.exe")))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        await drop(app, pilot, "/in/a.exe\n/in/b.exe")
        await pilot.press("enter")
        await until(pilot, lambda: any("2 added" in words for words in said(app)))
        await play(app, pilot, client)
    return client


@pytest.mark.slow
async def test_what_was_added_is_taken_back_once() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode], client: ScriptedClient) -> None:
        await pilot.press("ctrl+z")
        await until(pilot, lambda: any("Taken back: 2 tasks canceled" in words for words in said(app)))
        await pilot.press("ctrl+z")
        await pilot.pause()

    client = await after_adding(play, (1001, TaskState.PENDING), (1002, TaskState.PENDING))
    assert [command.action.task_ids for command in client.commands] == [(1001, 1002)]  # type: ignore[union-attr]


@pytest.mark.slow
async def test_once_something_has_started_it_is_asked_about_the_rest() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode], client: ScriptedClient) -> None:
        await pilot.press("ctrl+z")
        await until(pilot, lambda: isinstance(app.screen, Question))
        assert client.commands == []
        await pilot.press("down", "enter")
        await until(pilot, lambda: bool(client.commands))

    await after_adding(play, (1001, TaskState.RUNNING), (1002, TaskState.PENDING))


@pytest.mark.slow
async def test_when_all_has_started_nothing_is_taken_back() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode], client: ScriptedClient) -> None:
        await pilot.press("ctrl+z")
        await until(pilot, lambda: any("All of it has started" in words for words in said(app)))

    client = await after_adding(play, (1001, TaskState.COMPLETED), (1002, TaskState.RUNNING))
    assert client.commands == []


# --- stopping --------------------------------------------------------------------------------------------------------------------


class Slow(ScriptedClient):
    """Takes an offer whenever it is let."""

    turn: asyncio.Semaphore

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        async def turned() -> AsyncIterator[Offer]:
            async for offer in offers:
                await self.turn.acquire()
                yield offer

        return await super().submit(turned(), options, on_receipt)


class Endless(ScriptedIntake):
    """A folder of which more and more is found."""

    def __init__(self) -> None:
        super().__init__(b"/in/")
        self.surveyed = Survey(files=50_000, done=True)

    async def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        while True:
            async for offer in super().offers(paths):
                yield offer


@pytest.mark.slow
async def test_escape_stops_and_says_what_was_added() -> None:
    client = Slow([record(1)])
    client.turn = asyncio.Semaphore(0)
    app = MalboxApp(surroundings(client, Endless()))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        await drop(app, pilot, "/in/")
        await pilot.pause()
        await pilot.press("enter")
        for _ in range(7):
            client.turn.release()
        await until(pilot, lambda: len(client.offered) == 7)
        app.show_time()
        await pilot.pause()
        assert app.dashboard.progress.display
        assert "7 of 50,000" in app.dashboard.progress.line(0, 120).plain
        await pilot.press("j")
        await pilot.press("escape")
        client.turn.release()
        await until(pilot, lambda: any("Stopped: 8 added; 49,992 files not read" in words for words in said(app)))
        assert not app.adding.runs


@pytest.mark.slow
async def test_a_megabyte_of_paths_is_read_aside() -> None:
    paths = [b"/srv/%s/%05d.exe" % (b"d" * 190, number) for number in range(5000)]
    client = ScriptedClient([record(1)])
    app = MalboxApp(surroundings(client, ScriptedIntake(*paths)))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.picture.overview is not None)
        app.post_message(events.Paste("\n".join(path.decode() for path in paths)))
        await pilot.press("v")
        assert app.dashboard._view == 1, "keys still answer"
        await until(pilot, lambda: isinstance(app.screen, Preview))
        await pilot.press("enter")
        await until(pilot, lambda: len(client.offered) == 5000)


class Sums(ScriptedIntake):
    """Whatever is pasted is a list of sums."""

    def dropped(self, text: str) -> Dropped:
        return Dropped((), sums=tuple(text.split()))


@pytest.mark.slow
async def test_a_pasted_list_of_sums_shows_the_tasks_of_what_is_known() -> None:
    client = ScriptedClient([record(1), record(2), record(3)])
    app = MalboxApp(surroundings(client, Sums()))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.dashboard.tasks.total == 3)
        app.post_message(events.Paste(f"{sha256_of(1)} {sha256_of(3)} {'0' * 64}"))
        await until(pilot, lambda: app.dashboard.tasks.total == 2)
        await until(pilot, lambda: any("2 of 3 sums are known here." in words for words in said(app)))
        await pilot.press("slash", "enter")
        await until(pilot, lambda: app.dashboard.tasks.total == 3)
