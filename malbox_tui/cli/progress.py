"""How an analysis goes on, on stderr: a bar on a terminal, else a line now and then. What needs a person's eye is told at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Protocol

from malbox_tui.cli.notable import found_something, is_notable, shortfall
from malbox_tui.cli.output import tell
from malbox_tui.cli.tally import Tally
from malbox_tui.cli.text import sentence
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Classification
from malbox_tui.model.sample import escape, visible
from malbox_tui.model.task import TaskState

SUMMARY_INTERVAL_S = 2.0

MAX_COMPLAINTS = 50
"""A plugin that complains differently each time is not listened to for ever."""

_NARROW = 100
_TONES = {Classification.MALICIOUS: "bold red", Classification.SUSPICIOUS: "bold yellow"}


class Progress(Protocol):
    """Someone to show progress to."""

    def moved_on(self, tally: Tally) -> None:
        """The tally has changed."""
        ...

    def task_ended(self, record: TaskRecord) -> None:
        """A task is final."""
        ...

    def note(self, text: str) -> None:
        """One line that the person has to know, at once."""
        ...

    def close(self) -> None:
        """Nothing more comes; the terminal is as it was before."""
        ...


def progress_on_stderr(clock: Callable[[], float], results_share_terminal: bool) -> Progress:
    """A bar where stderr is a terminal that can draw one and that results don't run through; else lines."""
    can_draw = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    return ProgressBar() if can_draw and not results_share_terminal else ProgressLines(tell, clock)


def notable_line(record: TaskRecord) -> str | None:
    """One line about a task that needs a person's eye; None for any other."""
    if not is_notable(record):
        return None
    task = record.task
    name = next((escape(name.name) for name in record.sample.names), record.sample.sha256)
    words = [task.state.value.replace("_", " ")]
    details = [shortfall(task)]
    if task.verdict is not None and found_something(task.verdict):
        words.append(task.verdict.classification.value)
        details.insert(0, ", ".join(visible(label) for label in task.verdict.labels))
    if task.state is TaskState.COMPLETED and len(words) > 1:
        del words[0]
    detail = "; ".join(text for text in details if text)
    return f"task {task.id} {', '.join(words)}: {name}{f': {detail}' if detail else ''}"


class Complaints:
    """What plugins had to do without, each said once. It works on the records of ended tasks."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def new_in(self, record: TaskRecord) -> Iterator[str]:
        """One line for each complaint that was not made before."""
        for run in record.task.plugins:
            complaint = (run.name, run.reason)
            is_new = complaint not in self._said and len(self._said) < MAX_COMPLAINTS
            if run.is_degraded and is_new:
                self._said.add(complaint)
                yield f"plugin {visible(run.name)} is {sentence(run.reason)}"


class ProgressLines:
    """Lines for a log or a pipe: each notable task, and a summary at most every `SUMMARY_INTERVAL_S` seconds of `clock`."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._say = say
        self._clock = clock
        self._next_at = clock() + SUMMARY_INTERVAL_S
        self._complaints = Complaints()

    def moved_on(self, tally: Tally) -> None:
        """See `Progress`."""
        now = self._clock()
        if now >= self._next_at:
            self._next_at = now + SUMMARY_INTERVAL_S
            self._say(tally.progress())

    def task_ended(self, record: TaskRecord) -> None:
        """See `Progress`."""
        for complaint in self._complaints.new_in(record):
            self._say(complaint)
        if (line := notable_line(record)) is not None:
            self._say(line)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._say(text)

    def close(self) -> None:
        """See `Progress`."""


class ProgressBar:
    """A bar on a terminal, with the notable tasks above it."""

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._complaints = Complaints()
        self._bar = progress.Progress(
            progress.BarColumn(bar_width=12 if self._console.width < _NARROW else 24),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeElapsedColumn(),
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("starting", total=None)
        self._bar.start()

    def moved_on(self, tally: Tally) -> None:
        """See `Progress`."""
        self._bar.update(self._task, completed=len(tally.ended), total=tally.tasks or None, description=tally.progress())

    def task_ended(self, record: TaskRecord) -> None:
        """See `Progress`."""
        for complaint in self._complaints.new_in(record):
            self.note(complaint)
        if (line := notable_line(record)) is not None:
            self._print(line, _tone(record))

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._print(text, "bold yellow")

    def close(self) -> None:
        """See `Progress`."""
        self._bar.stop()

    def _print(self, line: str, style: str) -> None:
        from rich.text import Text

        self._bar.console.print(Text(line, style=style), soft_wrap=True)


def _tone(record: TaskRecord) -> str:
    """The colour of a notable task; its line says the same in words."""
    task = record.task
    if task.state is not TaskState.COMPLETED or task.verdict is None:
        return "red"
    return _TONES.get(task.verdict.classification, "")
