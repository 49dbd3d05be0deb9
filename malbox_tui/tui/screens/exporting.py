"""Asks where the report of a task is to be written on this host, and writes it there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.app import App

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.queries import TaskRecord
from malbox_tui.ports import Client
from malbox_tui.reports.new_file import write_file
from malbox_tui.reports.writing import ENDINGS, Form, form_of, written
from malbox_tui.tui.notices import say
from malbox_tui.tui.screens.dialogs import Choice, Prompt, Question
from malbox_tui.tui.text import sentence, shown_name

HINT = f"Its ending says what it becomes: {', '.join(ENDINGS)}. Escape leaves it."


def ask_where(app: App[Any], record: TaskRecord, client: Client) -> None:
    """Ask for a file; what is there already is asked about again."""

    def answered(text: str | None) -> None:
        if text is None or not text.strip():
            return
        try:
            path = Path(text.strip()).expanduser().absolute()
        except RuntimeError:
            say(app, "Nothing was written: there is no such home folder.", bad=True)
            return
        form = form_of(path)
        if form is None:
            say(app, f"Nothing was written: a name has to end with one of {', '.join(ENDINGS)}.", bad=True)
        elif path.exists():
            _ask_to_replace(app, path, lambda: _begin(app, record, client, path, form))
        else:
            _begin(app, record, client, path, form)

    app.push_screen(Prompt("Write the report to a file", HINT, f"task-{record.task.id}.html"), answered)


def _ask_to_replace(app: App[Any], path: Path, go_on: Callable[[], None]) -> None:
    def answered(yes: object) -> None:
        if yes:
            go_on()

    lines = [shown_name(bytes(path)), sentence("There is a file of that name. It is replaced.")]
    choices = [Choice("Leave it", False), Choice("Replace it", True, harmful=True)]
    app.push_screen(Question("Replace this file?", lines, choices), answered)


def _begin(app: App[Any], record: TaskRecord, client: Client, path: Path, form: Form) -> None:
    app.run_worker(_write(app, record, client, path, form), name="export")


async def _write(app: App[Any], record: TaskRecord, client: Client, path: Path, form: Form) -> None:
    try:
        text = await written(client.read, record, form)
        await asyncio.to_thread(write_file, path, text)
    except MalboxError as error:
        say(app, str(error), bad=True)
    else:
        say(app, f"Task {record.task.id} was written to {path}.")
