"""Tasks and receipts as rows of the results table: pure, and every cell safe to print.

A row is a tuple of texts, one for each of `COLUMNS`. Widths are decided once for a terminal (`widths`), so that any number of rows
can be printed as they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, set_cell_size

from malbox_tui.cli.text import sentence, size
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Verdict
from malbox_tui.model.sample import escape, visible
from malbox_tui.model.submission import Duplicate, Refused
from malbox_tui.model.task import TaskState

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `width` None shares what the others leave, by `weight`."""

    title: str
    width: int | None
    justify: Literal["left", "right"] = "left"
    weight: int = 0


COLUMNS = (
    Column("id", 5, "right"),
    Column("state", 9),
    Column("verdict", 10),
    Column("score", 5, "right"),
    Column("kind", 8),
    Column("size", 8, "right"),
    Column("name", None, weight=1),
    Column("labels or reason", None, weight=1),
)
_NOTHING = "-"


def task_row(row: TaskRecord) -> Row:
    """A task. The last cell says why when it didn't complete, else what was found."""
    task = row.task
    return (
        str(task.id),
        _STATE_WORDS.get(task.state, task.state.value),
        *_verdict_cells(task.verdict),
        _kind(row),
        size(row.sample.size_bytes),
        _first_name(row),
        _labels(task.verdict) if task.state is TaskState.COMPLETED else sentence(task.reason),
    )


def duplicate_row(receipt: Duplicate, original: TaskRecord | None) -> Row:
    """A content that has a task already, with that task's result under the name it came with this time."""
    verdict = original.task.verdict if original is not None else None
    state = (original.task.state if original is not None else receipt.state).value
    return (
        str(receipt.task_id),
        "duplicate",
        *_verdict_cells(verdict),
        _kind(original) if original is not None else _NOTHING,
        size(receipt.size_bytes),
        escape(receipt.name.name),
        f"of task {receipt.task_id} ({state})",
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


def widths(total: int) -> tuple[int, ...]:
    """The columns' widths for a table `total` cells wide. Below 60 cells the table is wider than asked for."""
    fixed = sum(column.width or 0 for column in COLUMNS) + len(COLUMNS) - 1
    shared = max(total - fixed, 2 * 4)
    weights = sum(column.weight for column in COLUMNS)
    return tuple(column.width if column.width is not None else shared * column.weight // weights for column in COLUMNS)


def line(row: Row, columns: tuple[int, ...]) -> str:
    """One row as one line; what is too long is cut, and marked by `…`. The last cell is not padded."""
    cells = [_fitted(text, width, column.justify) for text, width, column in zip(row, columns, COLUMNS, strict=True)]
    return " ".join(cells).rstrip()


_STATE_WORDS = {TaskState.PREPARING_RESOURCES: "preparing", TaskState.INITIALIZING: "starting"}


def _fitted(text: str, width: int, justify: str) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…"
    return " " * (width - length) + text if justify == "right" else text + " " * (width - length)


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
