"""Who hears of an analysis: stdout, as JSON lines while it runs or as a table at its end, and the progress on stderr."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from malbox_tui.cli import table
from malbox_tui.cli.analysis_run import Audience, Read
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.progress import Progress
from malbox_tui.cli.records import duplicate_record, opened_record, refused_record, task_record
from malbox_tui.cli.tally import Tally
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.submission import Duplicate, Opened, Refused

T = TypeVar("T")


class Reporter(Audience, Protocol):
    """An audience that also writes the end of the results."""

    async def conclude(self, read: Read, seconds: float) -> None:
        """Write what has to be written when all is over; `seconds` is how long it took. Raises `OutputClosed`."""
        ...


class JsonReporter:
    """One object a line, as things happen."""

    def __init__(self, tally: Tally, progress: Progress, results: Path) -> None:
        self._tally = tally
        self._progress = progress
        self._results = results

    def task_ended(self, record: TaskRecord) -> None:
        """See `Audience`."""
        write_record(task_record(record, self._results))
        self._progress.task_ended(record)

    def duplicate(self, receipt: Duplicate, original: TaskRecord | None) -> None:
        """See `Audience`."""
        write_record(duplicate_record(receipt, original))

    def refused(self, receipt: Refused) -> None:
        """See `Audience`."""
        write_record(refused_record(receipt))

    def opened(self, receipt: Opened) -> None:
        """See `Audience`."""
        write_record(opened_record(receipt))

    def moved_on(self) -> None:
        """See `Audience`."""
        self._progress.moved_on(self._tally)

    async def conclude(self, read: Read, seconds: float) -> None:
        """See `Reporter`: every line was written already."""


class TableReporter:
    """A table at the end, with what needs an eye last, next to the totals: what was refused, duplicates, tasks by id; then the
    duplicates and tasks that are notable."""

    def __init__(self, tally: Tally, progress: Progress) -> None:
        self._tally = tally
        self._progress = progress

    def task_ended(self, record: TaskRecord) -> None:
        """See `Audience`."""
        self._progress.task_ended(record)

    def duplicate(self, receipt: Duplicate, original: TaskRecord | None) -> None:
        """See `Audience`."""

    def refused(self, receipt: Refused) -> None:
        """See `Audience`."""

    def opened(self, receipt: Opened) -> None:
        """See `Audience`."""

    def moved_on(self) -> None:
        """See `Audience`."""
        self._progress.moved_on(self._tally)

    async def conclude(self, read: Read, seconds: float) -> None:
        """See `Reporter`."""
        tally = self._tally
        if tally.is_empty:
            return
        ids = sorted(tally.ended)
        form = table_layout(max([*ids, *(receipt.task_id for receipt in tally.duplicates)], default=0))
        write_row(table.header(), form)
        for refused in tally.refused:
            write_row(table.refused_row(refused), form)
        for is_notable in (False, True):
            await self._duplicates(read, form, is_notable)
            await self._tasks(read, form, [task_id for task_id in ids if (task_id in tally.notable) is is_notable])
        totals = tally.totals(seconds)
        write_line("\n" + (textwrap.fill(totals, sum(form.widths) + len(form.widths) - 1) if form.wraps else totals))

    async def _duplicates(self, read: Read, form: table.Layout, is_notable: bool) -> None:
        chosen = [
            receipt for receipt in self._tally.duplicates if (receipt.task_id in self._tally.notable_duplicates) is is_notable
        ]
        for receipts in _slices(chosen):
            rows = await _by_id(read, [receipt.task_id for receipt in receipts])
            for receipt in receipts:
                write_row(table.duplicate_row(receipt, rows.get(receipt.task_id)), form)

    async def _tasks(self, read: Read, form: table.Layout, task_ids: Sequence[int]) -> None:
        for some in _slices(task_ids):
            rows = await _by_id(read, some)
            for task_id in some:
                if task_id in rows:
                    write_row(table.task_row(rows[task_id]), form)


def write_row(row: table.Row, form: table.Layout) -> None:
    """One row of a table to stdout. Raises `OutputClosed`."""
    for line in table.lines(row, form):
        write_line(line)


def table_layout(largest_id: int) -> table.Layout:
    """For stdout as it is: as wide as COLUMNS says, else as the terminal; colours on a terminal only, and not with NO_COLOR."""
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal or os.environ.get("COLUMNS") else None
    coloured = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in ("", "dumb")
    return table.layout(width, largest_id=largest_id, coloured=coloured)


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), MAX_ROWS):
        yield items[start : start + MAX_ROWS]


async def _by_id(read: Read, task_ids: Sequence[int]) -> dict[int, TaskRecord]:
    query = TaskQuery(where=TaskFilter(task_ids=tuple(dict.fromkeys(task_ids))), sort=TaskSort.OLDEST, limit=MAX_ROWS)
    return {row.task.id: row for row in (await read(query)).rows}
