"""Hostile text through every pane and dialog: nothing of it acts, nothing breaks. And drops, as terminals send them.

On a PTY any sequence fails that the console has no reason to send (`pty_console.py`); in the process, anything that could be clicked.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.driver import _read
from malbox_tui.tui.screens.add import AddSamples
from malbox_tui.tui.screens.dialogs import Prompt, Question
from malbox_tui.tui.screens.machine import MachineScreen
from malbox_tui.tui.screens.machine_form import MachineForm
from malbox_tui.tui.screens.task import TaskScreen
from tests.tui.hostile import ALL, NAMES, PAGES, engine
from tests.tui.pty_console import PtyConsole
from tests.tui.scripted import ScriptedClient, ScriptedIntake, plugin_run, record, reference, surroundings, task

pytestmark = pytest.mark.slow

PROGRAM = "tests.tui.hostile_console"
PATIENCE_S = 60.0
SIZE, TALL = (150, 45), (150, 200)
"""A large terminal, and one that shows all of a task's page at once."""


@asynccontextmanager
async def console(
    client: ScriptedClient, intake: ScriptedIntake | FolderIntake | None = None, size: tuple[int, int] = SIZE
) -> AsyncIterator[Pilot[object]]:
    app = MalboxApp(surroundings(client, intake))
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        await until(pilot, lambda: app.dashboard.tasks.total > 0)
        yield pilot  # type: ignore[misc]


async def until(pilot: Pilot[object], condition: Callable[[], bool]) -> None:
    """Let the app go on until the condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await pilot.pause(0.01)


def assert_inert(pilot: Pilot[object]) -> str:
    """Nothing on the screen can be clicked or is a link; returns what it shows."""
    lines = []
    for strip in pilot.app.screen._compositor.render_strips():
        for segment in strip:
            assert segment.control is None
            style = segment.style
            assert style is None or (style.link is None and "@click" not in style.meta), segment
            assert segment.text.isprintable(), segment
        lines.append(strip.text)
        assert strip.cell_length == pilot.app.size.width, strip.text
    return "\n".join(lines)


def folder_of_names(folder: Path) -> Path:
    """A folder with a file of each hostile name that a file system takes."""
    for name in NAMES:
        cleaned = name.replace(b"/", b"_").replace(b"\0", b"")[:200]
        (folder / os.fsdecode(cleaned)).write_bytes(b"x")
    (folder / "[@click=app.quit]y[").mkdir()
    return folder


# --- in the process: nothing comes alive, nothing crashes --------------------------------------------------------------------------


async def test_the_dashboard_shows_hostile_text_as_text() -> None:
    async with console(engine()) as pilot:
        shown = assert_inert(pilot)
        for marker in ("gpj.rtl", "[@click=app.quit]", "[link=http", "[/foo]mk2"):
            assert marker in shown
        assert pilot.app.is_running


async def test_each_task_page_shows_hostile_reports_logs_and_reasons_as_text() -> None:
    client = engine(PAGES)
    async with console(client, size=TALL) as pilot:
        app = pilot.app
        assert isinstance(app, MalboxApp)
        for number in range(1, len(PAGES) + 1):
            await app.push_screen(TaskScreen(number, client, app.picture, app.gallery, app.moment, lambda at: "09:00:00"))
            await until(pilot, lambda: "Report of" in assert_inert(pilot))
            await app.pop_screen()


async def test_a_byte_of_a_log_that_is_no_text_is_escaped_once() -> None:
    run = plugin_run(1, "noisy", results=[reference(1, "noisy", "log", "bytes")])
    rows = [msgspec.structs.replace(record(1), task=task(1, plugins=(run,)))]
    async with console(ScriptedClient(rows, results={"1/noisy/log": b"raw \xff\x1b[31m\n"}), size=TALL) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "Log of noisy" in assert_inert(pilot))
        assert r" raw \xff\x1b[31m " in assert_inert(pilot)


async def test_questions_and_refusals_show_hostile_text_as_text() -> None:
    async with console(engine(PAGES)) as pilot:
        for _ in PAGES:
            await pilot.press("c")
            await pilot.pause()
            if isinstance(pilot.app.screen, Question):
                assert_inert(pilot)
                await pilot.press("right", "enter")
                await until(pilot, lambda: "CancelTasks" in assert_inert(pilot))
            await pilot.press("down")
            pilot.app.clear_notifications()


async def test_machines_and_groups_are_shown_and_asked_about_as_text() -> None:
    async with console(engine(PAGES), size=(150, 90)) as pilot:
        app = pilot.app
        assert isinstance(app, MalboxApp)
        await pilot.press("m")
        for _ in PAGES:
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, MachineScreen))
            await until(pilot, lambda: "provider" in assert_inert(pilot))
            for key, dialog in (("x", Question), ("i", MachineForm)):
                await pilot.press(key)
                await until(pilot, lambda dialog=dialog: isinstance(pilot.app.screen, dialog))  # type: ignore[misc]
                assert_inert(pilot)
                if dialog is MachineForm:
                    await pilot.press("enter")
                    await until(pilot, lambda: "SetMachine" in assert_inert(pilot))
                await pilot.press("escape")
                await until(pilot, lambda: isinstance(pilot.app.screen, MachineScreen))
            await pilot.press("escape", "d")
            await pilot.pause()
            assert_inert(pilot)
            if isinstance(app.screen, Question):
                await pilot.press("escape")
            await pilot.press("w", "down")
            assert_inert(pilot)
            pilot.app.clear_notifications()
        await pilot.press("ctrl+p", *"machine")
        await pilot.pause()
        assert_inert(pilot)


async def test_a_filter_of_hostile_text_is_text() -> None:
    async with console(engine(), ScriptedIntake()) as pilot:
        for text in (*PAGES, "\udcff", "[@click=app.quit]x["):
            await pilot.press("slash")
            await until(pilot, lambda: isinstance(pilot.app.screen, Prompt))
            pilot.app.screen.query_one(Input).value = ""
            pilot.app.post_message(events.Paste(text))
            await pilot.pause()
            assert_inert(pilot)
            await pilot.press("enter")
            await until(pilot, lambda: not isinstance(pilot.app.screen, Prompt))
            await pilot.pause()
            assert "Tasks · all" in assert_inert(pilot)


async def test_completions_and_what_is_wrong_with_a_path_are_text(tmp_path: Path) -> None:
    folder = folder_of_names(tmp_path)
    async with console(engine(), FolderIntake(1 << 20)) as pilot:
        for begun in ("", "[", "-", "\x1b", "\udcff", "\u202e", "文"):
            await pilot.press("a")
            await until(pilot, lambda: isinstance(pilot.app.screen, AddSamples))
            prompt = pilot.app.screen.query_one(Input)
            prompt.value = f"{folder}/{begun}"
            await pilot.pause()
            assert_inert(pilot)
            prompt.value += "nothing"
            await pilot.press("enter")
            await until(pilot, lambda: "There is no" in assert_inert(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(pilot.app.screen, AddSamples))


async def test_the_palette_takes_hostile_text_as_text() -> None:
    async with console(engine()) as pilot:
        await pilot.press("ctrl+p")
        await pilot.press(*"[/]")
        await pilot.pause()
        assert_inert(pilot)


async def test_a_paste_of_hostile_text_anywhere_is_answered_in_text(tmp_path: Path) -> None:
    async with console(engine(), FolderIntake(1 << 20)) as pilot:
        for text in PAGES:
            pilot.app.post_message(events.Paste(f"/nowhere/{text}"))
            await until(pilot, lambda: "There is no" in assert_inert(pilot))
            pilot.app.clear_notifications()
            await until(pilot, lambda: "There is no" not in assert_inert(pilot))


# --- on a terminal: nothing comes out ------------------------------------------------------------------------------------------------


def told(outcome: Path) -> dict[str, object]:
    return json.loads(outcome.read_text(encoding="ascii"))  # type: ignore[no-any-return]


def test_no_sequence_of_theirs_reaches_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    folder = folder_of_names(tmp_path / "in")
    with PtyConsole(PROGRAM, "hostile", tmp_path / "outcome") as terminal:
        terminal.until(f"all {len(ALL) + len(PAGES)}", "[link=http", "gpj.rtl")
        for number in range(len(ALL) + len(PAGES), len(ALL), -1):
            terminal.press(b"\r").until(f"Task {number} ")
            terminal.press(b"\x1b[6~\x1b[6~\x1b[F").press(b"r").until("RetryTasks")
            terminal.press(b"\x1b").until("Workers")
            terminal.press(b"\x1b[B")
        terminal.press(b"m\r").until("What it is", "History, the latest first")
        terminal.press(b"i").until("Change machine").press(b"\r").until("SetMachine")
        terminal.press(b"\x1b").until(gone="Change machine")
        terminal.press(b"\x1b").until("Workers").press(b"m")
        terminal.press(b"a").until("Add a file or a folder")
        terminal.press(os.fsencode(folder) + b"/").until("from ", "takes it back")
        terminal.press(b"\x1b").until(gone="takes it back")
        terminal.press(b"\x1b[200~/nowhere/" + NAMES[0] + b"\x1b[201~").until("There is no")
        terminal.press(b"q").until("Leave the console?").press(b"\x1b[C\x1b[C\r")
        assert terminal.ended() == 0
    assert told(tmp_path / "outcome")["return_code"] == 0


def test_drops_are_samples_whatever_they_are_made_of_and_wherever_they_fall(tmp_path: Path) -> None:
    (tmp_path / "q c").mkdir()
    names = [
        b"q c/a.exe",
        b"q c/r\xe9sum\xe9\xff.exe",
        b"q c/\x1b[31mq\x1b]0;x\x07.exe",
        b"q c/it's.exe",
        b"q c/c.exe",
        b"q c/d.exe",
    ]
    paths = [bytes(tmp_path) + b"/" + name for name in names]
    for path in paths:
        Path(os.fsdecode(path)).write_bytes(b"x")
    with PtyConsole(PROGRAM, "plain", tmp_path / "outcome") as terminal:
        terminal.until("all 3", "sample-003")
        terminal.press(b"\xff\xc3(").press(b"\x1b[M" + bytes([32, 250, 255]))
        terminal.press(paths[0] + b" ").until("Add 1 file,").press(b"\r").until("1 added")
        terminal.press(b"\x1b[200~" + b"\n".join(paths[1:3]) + b"\x1b[201~").until("Add 2 files").press(b"\r").until("2 added")
        terminal.press(b"c").until("Cancel this task?")
        terminal.press(b'"' + paths[3] + b"\" '" + paths[4] + b"' '" + paths[5] + b"' ").until("Add 3 files")
        terminal.press(b"\r").until("3 added", "Cancel this task?")
        terminal.press(b"\x1b").until(gone="Cancel this task?")
        terminal.press(b"/").until("Part of a name")
        terminal.press(b"\x1b[200~" + b"\n".join(paths[:4]) + b"\x1b[201~").until("Add 4 files")
        terminal.press(b"\r").until("4 added", "Part of a name")
        terminal.press(b"\x1b[200~\x1b[6nneedle\x1b[201~").until("needle")
        terminal.press(b"\r").until("/ \\x1b[6nneedle", gone="Part of a name")
        terminal.press(b"q")
        assert terminal.ended() == 0
    outcome = told(tmp_path / "outcome")
    wanted = [*paths[:1], *paths[1:3], *paths[3:], *paths[:4]]
    assert (outcome["offered"], outcome["commands"]) == ([path.hex() for path in wanted], [])


def test_a_terminal_that_is_gone_reads_as_its_end() -> None:
    master, slave = pty.openpty()
    os.close(master)
    assert _read(slave) == b""
    os.close(slave)
