"""Tasks and receipts as rows of the results table: pure, and every cell safe to print.

A row is a tuple of texts, one for each of `COLUMNS`. A `Layout` is decided once, so that any number of rows can be printed as they
come. On a terminal the columns that matter least make room when it is narrow, a name keeps its beginning and its ending, and what the
last cell says goes on below it; elsewhere a row is one line and its last cell is whole.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, chop_cells, set_cell_size

from malbox_tui.cli.notable import shortfall
from malbox_tui.cli.text import sentence, size
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Classification, Verdict
from malbox_tui.model.sample import escape, visible
from malbox_tui.model.submission import Duplicate, Refused
from malbox_tui.model.task import Task, TaskState
from malbox_tui.model.verdict import short_counts

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `width` None: it shares what the others leave. It is shown in tables at least `shown_from` cells wide."""

    title: str
    width: int | None
    justify: Literal["left", "right"] = "left"
    shown_from: int = 0


COLUMNS = (
    Column("id", 4, "right"),
    Column("state", 9),
    Column("verdict", 10),
    Column("score", 5, "right"),
    Column("kind", 8, shown_from=70),
    Column("size", 8, "right", shown_from=96),
    Column("name", None),
    Column("labels or reason", None),
)
NARROWEST = 54
PIPE_WIDTH = 140
MAX_LINES = 4
"""How many lines one row may take on a terminal."""

_NAME, _LAST = len(COLUMNS) - 2, len(COLUMNS) - 1
_NOTHING = "-"
_ENDING_CELLS = 8
"""How much of the ending of a long name is kept: enough for a file's extension."""

_COLOURS = {
    Classification.MALICIOUS.value: "1;31",
    Classification.SUSPICIOUS.value: "1;33",
    TaskState.FAILED.value: "31",
    "timed out": "31",
    TaskState.CANCELED.value: "33",
}
"""Cells that stand out, as SGR parameters. The word says it too."""


@dataclass(frozen=True, slots=True)
class Layout:
    """`widths` has 0 for a column that is left out. `wraps`: the last cell goes on below itself; else it is as long as it is."""

    widths: tuple[int, ...]
    wraps: bool
    coloured: bool


def task_row(row: TaskRecord) -> Row:
    """A task. The last cell says what was found, and why that isn't all."""
    task = row.task
    return (
        str(task.id),
        _STATE_WORDS.get(task.state, _in_words(task.state)),
        *_verdict_cells(task.verdict),
        _kind(row),
        size(row.sample.size_bytes),
        _first_name(row),
        "; ".join(part for part in (_labels(task.verdict), short_counts(task), shortfall(task) or _waiting_reason(task)) if part),
    )


def duplicate_row(receipt: Duplicate, original: TaskRecord | None) -> Row:
    """A content that has a task already, with that task's result under the name it came with this time."""
    verdict = original.task.verdict if original is not None else None
    state = original.task.state if original is not None else receipt.state
    return (
        str(receipt.task_id),
        "duplicate",
        *_verdict_cells(verdict),
        _kind(original) if original is not None else _NOTHING,
        size(receipt.size_bytes),
        escape(receipt.name.name),
        f"of task {receipt.task_id} ({_in_words(state)})",
    )


def refused_row(receipt: Refused) -> Row:
    """Something that was not taken, and why."""
    return (
        _NOTHING,
        "refused",
        _NOTHING,
        _NOTHING,
        _NOTHING,
        _NOTHING,
        escape(receipt.name.name),
        sentence(receipt.refusal.reason),
    )


def header() -> Row:
    """The titles of the columns."""
    return tuple(column.title for column in COLUMNS)


def layout(terminal: int | None, *, largest_id: int = 0, coloured: bool = False) -> Layout:
    """For a terminal so many cells wide (narrower than `NARROWEST`: wider than asked for), or None for a pipe or a file.

    An id is never cut: its column has room for `largest_id`.
    """
    total = PIPE_WIDTH if terminal is None else max(terminal, NARROWEST)
    widths = [column.width or 0 if total >= column.shown_from else 0 for column in COLUMNS]
    widths[0] = max(widths[0], len(str(largest_id)))
    shared = total - sum(widths) - sum(width > 0 for width in widths) - 1
    widths[_NAME] = shared // 2
    widths[_LAST] = shared - widths[_NAME]
    return Layout(tuple(widths), wraps=terminal is not None, coloured=coloured)


def lines(row: Row, form: Layout) -> Iterator[str]:
    """One row as lines: one, and more for a last cell that goes on. What is still too long is cut, and marked by `…`."""
    cells = [
        _painted(_fitted(text, width, column.justify), text, form)
        for text, width, column in zip(row[:_NAME], form.widths, COLUMNS, strict=False)
        if width
    ]
    cells.append(_fitted(_shortened_name(row[_NAME], form.widths[_NAME]), form.widths[_NAME], "left"))
    first, *rest = _wrapped(row[_LAST], form.widths[_LAST]) if form.wraps else [row[_LAST]]
    yield " ".join([*cells, first]).rstrip()
    indent = " " * (sum(form.widths[:_LAST]) + len(cells))
    for more in rest:
        yield f"{indent}{more}"


_STATE_WORDS = {TaskState.PREPARING_RESOURCES: "preparing", TaskState.INITIALIZING: "starting"}


def _fitted(text: str, width: int, justify: str) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    return " " * (width - length) + text if justify == "right" else text + " " * (width - length)


def _shortened_name(name: str, width: int) -> str:
    if cell_len(name) <= width:
        return name
    ending = name[-_ENDING_CELLS:] if width >= 2 * _ENDING_CELLS else name[-4:]
    while cell_len(ending) > width // 2:
        ending = ending[1:]
    return set_cell_size(name, width - 1 - cell_len(ending)) + "…" + ending


def _wrapped(text: str, width: int) -> list[str]:
    if cell_len(text) <= width:
        return [text]
    found: list[str] = []
    for words in textwrap.wrap(text, width):
        found += [words] if cell_len(words) <= width else chop_cells(words, width)
    if len(found) > MAX_LINES:
        found[MAX_LINES - 1 :] = [_fitted(found[MAX_LINES - 1] + "…" * width, width, "left")]
    return found


def _painted(cell: str, text: str, form: Layout) -> str:
    colour = _COLOURS.get(text) if form.coloured else None
    return cell if colour is None else f"\x1b[{colour}m{cell}\x1b[0m"


def _waiting_reason(task: Task) -> str:
    return "" if task.state.is_final else sentence(task.reason)


def _in_words(state: TaskState) -> str:
    return state.value.replace("_", " ")


def _verdict_cells(verdict: Verdict | None) -> tuple[str, str]:
    if verdict is None:
        return _NOTHING, _NOTHING
    return verdict.classification.value, _NOTHING if verdict.score is None else str(verdict.score)


def _kind(row: TaskRecord) -> str:
    return visible(row.sample.identification.kind) if row.sample.identification is not None else _NOTHING


def _first_name(row: TaskRecord) -> str:
    names = dict.fromkeys(name.name for name in row.sample.names)
    if not names:
        return row.sample.sha256
    first = escape(next(iter(names)))
    return first if len(names) == 1 else f"{first} (+{len(names) - 1})"


def _labels(verdict: Verdict | None) -> str:
    return ", ".join(visible(label) for label in verdict.labels) if verdict is not None else ""
