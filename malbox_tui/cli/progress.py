"""How an analysis goes on, on stderr: a bar on a terminal, else a line now and then. What needs a person's eye is told at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol

from malbox_tui.cli.output import tell
from malbox_tui.cli.tally import NOTABLE, Tally
from malbox_tui.cli.text import sentence
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.sample import escape, visible
from malbox_tui.model.task import TaskState

SUMMARY_INTERVAL_S = 2.0


class Progress(Protocol):
    """Someone to show progress to."""

    def moved_on(self, tally: Tally) -> None:
        """The tally has changed."""
        ...

    def task_ended(self, record: TaskRecord) -> None:
        """A task is final."""
        ...

    def close(self) -> None:
        """Nothing more comes; the terminal is as it was before."""
        ...


def progress_on_stderr(clock: Callable[[], float], results_share_terminal: bool) -> Progress:
    """A bar where stderr is a terminal that can draw one and that results don't run through; else lines."""
    can_draw = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    return ProgressBar() if can_draw and not results_share_terminal else ProgressLines(tell, clock)


def notable_line(record: TaskRecord) -> str | None:
    """One line about a task that did not complete or is not harmless; None for any other."""
    task = record.task
    name = next((escape(name.name) for name in record.sample.names), record.sample.sha256)
    if task.state is not TaskState.COMPLETED:
        return f"task {task.id} {task.state.value.replace('_', ' ')}: {name}: {sentence(task.reason)}"
    if task.verdict is not None and task.verdict.classification in NOTABLE:
        labels = ", ".join(visible(label) for label in task.verdict.labels)
        return f"task {task.id} {task.verdict.classification.value}: {name}{f' ({labels})' if labels else ''}"
    return None


class ProgressLines:
    """Lines for a log or a pipe: each notable task, and a summary at most every `SUMMARY_INTERVAL_S` seconds of `clock`."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._say = say
        self._clock = clock
        self._next_at = clock() + SUMMARY_INTERVAL_S

    def moved_on(self, tally: Tally) -> None:
        """See `Progress`."""
        now = self._clock()
        if now >= self._next_at:
            self._next_at = now + SUMMARY_INTERVAL_S
            self._say(tally.progress())

    def task_ended(self, record: TaskRecord) -> None:
        """See `Progress`."""
        if (line := notable_line(record)) is not None:
            self._say(line)

    def close(self) -> None:
        """See `Progress`."""


class ProgressBar:
    """A bar on a terminal, with the notable tasks above it."""

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._bar = progress.Progress(
            progress.BarColumn(bar_width=24),
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
        from rich.text import Text

        if (line := notable_line(record)) is not None:
            self._bar.console.print(Text(line), soft_wrap=True)

    def close(self) -> None:
        """See `Progress`."""
        self._bar.stop()
