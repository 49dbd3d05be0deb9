"""Who hears of an analysis: stdout, as JSON lines while it runs or as a table at its end, and the progress on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from malbox_tui.cli import table
from malbox_tui.cli.analysis_run import Audience, Read
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.progress import Progress
from malbox_tui.cli.records import duplicate_record, refused_record, task_record
from malbox_tui.cli.tally import Tally
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.submission import Duplicate, Refused

T = TypeVar("T")

_PIPE_WIDTH = 140


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

    def moved_on(self) -> None:
        """See `Audience`."""
        self._progress.moved_on(self._tally)

    async def conclude(self, read: Read, seconds: float) -> None:
        """See `Reporter`: every line was written already."""


class TableReporter:
    """A table at the end: tasks by id, then duplicates, then what was refused, and the totals below."""

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

    def moved_on(self) -> None:
        """See `Audience`."""
        self._progress.moved_on(self._tally)

    async def conclude(self, read: Read, seconds: float) -> None:
        """See `Reporter`."""
        if self._tally.is_empty:
            return
        columns = table.widths(table_width())
        write_line(table.line(table.header(), columns))
        for ids in _slices(sorted(self._tally.ended)):
            rows = await _by_id(read, ids)
            for task_id in ids:
                if task_id in rows:
                    write_line(table.line(table.task_row(rows[task_id]), columns))
        for duplicates in _slices(self._tally.duplicates):
            rows = await _by_id(read, [receipt.task_id for receipt in duplicates])
            for receipt in duplicates:
                write_line(table.line(table.duplicate_row(receipt, rows.get(receipt.task_id)), columns))
        for refused in self._tally.refused:
            write_line(table.line(table.refused_row(refused), columns))
        write_line(f"\n{self._tally.totals(seconds)}")


def table_width() -> int:
    """How wide a table on stdout may be: COLUMNS, else the terminal's width, else a fixed one."""
    if os.environ.get("COLUMNS") or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return _PIPE_WIDTH


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), MAX_ROWS):
        yield items[start : start + MAX_ROWS]


async def _by_id(read: Read, task_ids: Sequence[int]) -> dict[int, TaskRecord]:
    query = TaskQuery(where=TaskFilter(task_ids=tuple(dict.fromkeys(task_ids))), sort=TaskSort.OLDEST, limit=MAX_ROWS)
    return {row.task.id: row for row in (await read(query)).rows}
