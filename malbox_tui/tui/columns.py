"""The columns of the task table: pure functions from a task to `Text`, tested without a screen. The widget only places what these give.

The header, the workers and the timelines are made in the same way, each in a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from malbox_tui.model.queries import TaskRecord, Waiting
from malbox_tui.model.report import Verdict
from malbox_tui.model.task import Task, TaskState
from malbox_tui.model.verdict import short_counts
from malbox_tui.tui.glyphs import STATES, VERDICTS
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import (
    clock_time,
    first_fitting,
    fit,
    joined_cells,
    ordinal,
    plain,
    sentence,
    short_size,
    shown,
    shown_name,
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the task table: `width` in cells; 0 takes what is left. The first to go on a narrow screen has `rank` highest."""

    title: str
    width: int
    rank: int
    cell: Callable[[TaskRecord, Moment], Text]
    right: bool = False


def state_cell(state: TaskState, moment: Moment) -> Text:
    """Glyph and word."""
    look = STATES[state]
    return plain(f"{look.glyph} {look.word}", moment.tone(look.tone))


def verdict_cell(verdict: Verdict | None, moment: Moment) -> Text:
    """Glyph, word and score; a dash where there is none."""
    if verdict is None:
        return plain("—", moment.tone("muted"))
    look = VERDICTS[verdict.classification]
    score = "" if verdict.score is None else f" {verdict.score}"
    return plain(f"{look.glyph} {look.word}{score}", moment.tone(look.tone))


def age_cell(task: Task, moment: Moment) -> Text:
    """Time in the state for a task that goes on, how long it took in all for one that has ended."""
    if task.state.is_final and task.finished_at is not None:
        return plain(clock_time(task.finished_at - (task.started_at or task.created_at)), moment.tone("muted"))
    return plain(clock_time(moment.now - task.stage_since))


def name_cell(record: TaskRecord, moment: Moment) -> Text:
    """The sample's first name, and how many others it has."""
    if not record.sample.names:
        return shown(record.sample.sha256[:16], moment.tone("muted"))
    text = shown_name(record.sample.names[0].name)
    if len(record.sample.names) > 1:
        text.append(f" +{len(record.sample.names) - 1}", moment.tone("muted"))
    return text


def note_cell(record: TaskRecord, moment: Moment) -> Text:
    """What one most wants to know of an ended task besides: what was found, or why it ended as it did, and how much is named."""
    task, muted = record.task, moment.tone("muted")
    told: list[Text] = []
    if task.verdict is not None and task.verdict.labels:
        told.append(shown(", ".join(task.verdict.labels), moment.tone(VERDICTS[task.verdict.classification].tone)))
    elif task.state.is_final and task.reason != "Finished.":
        told.append(sentence(task.reason, muted))
    if task.state.is_final and (counts := short_counts(task)):
        told.append(plain(counts, muted))
    if not told and task.machine is not None:
        told.append(shown(f"on {task.machine}", muted))
    return told[0] if len(told) == 1 else joined_cells(told, " · ")


def waits_cell(record: TaskRecord, moment: Moment, room: int) -> Text:
    """At which place a pending task waits, and why: in as many words as there is room for."""
    waiting = record.waiting
    if waiting is None:
        return plain("waits", moment.tone("muted"))
    why = short_reason(waiting)
    if waiting.position is None:
        return sentence(why, moment.tone("muted"))
    place = ordinal(waiting.position)
    forms = [f"{place} · waits: {why}", f"{place} · {why}", *(f"{place} {words}" for words in _shortened(why))]
    words = first_fitting(forms, room)
    return sentence(words, moment.tone("muted"))


def short_reason(waiting: Waiting) -> str:
    """Why a task waits, where it is clear that it does: `linux/x64 (2 busy)`."""
    for beginning in ("waiting for a machine: ", "waiting for "):
        if waiting.reason.startswith(beginning):
            return waiting.reason.removeprefix(beginning)
    return waiting.reason


def _shortened(why: str) -> tuple[str, ...]:
    """What is most worth saying of a reason, from the most words to the fewest."""
    if why.startswith("all workers of "):
        return "all workers busy", "workers busy", "all busy"
    group, collects, batch = why.partition(" collects a batch: ")
    if collects:
        filled = batch.partition(",")[0]
        return f"{group} collects a batch: {filled}", f"collects a batch: {filled}", f"batch {filled.replace(' of ', '/')}"
    what = why.partition(" (")[0].removeprefix("machine ")
    return what, what.partition(":")[0], what.partition(",")[0]


def kind_cell(record: TaskRecord, moment: Moment) -> Text:
    """What kind of content it is."""
    known = record.sample.identification
    return plain("—", moment.tone("muted")) if known is None else shown(known.kind)


VERDICT = Column("verdict", 16, 1, lambda record, moment: verdict_cell(record.task.verdict, moment))
NOTE = Column("note", 28, 6, note_cell)

TASK_COLUMNS: tuple[Column, ...] = (
    Column("id", 6, 0, lambda record, moment: plain(str(record.task.id), moment.tone("muted")), right=True),
    Column("pri", 4, 4, lambda record, moment: plain(str(record.task.priority)), right=True),
    Column("sample", 0, 0, name_cell),
    Column("kind", 8, 3, kind_cell),
    Column("size", 6, 5, lambda record, moment: plain(short_size(record.sample.size_bytes), moment.tone("muted")), right=True),
    Column("state", 11, 0, lambda record, moment: state_cell(record.task.state, moment)),
    Column("time", 7, 2, lambda record, moment: age_cell(record.task, moment), right=True),
    VERDICT,
    NOTE,
)
"""The columns of the task table, in their order on the screen."""

MIN_SAMPLE_WIDTH, MAX_SAMPLE_WIDTH = 16, 60
"""What the sample's name gets at least, and at most: of a very wide screen the notes get the rest."""


def columns_for(width: int) -> tuple[tuple[Column, int], ...]:
    """The columns that fit into `width` cells, each with its width: those of the highest rank go first."""
    columns = list(TASK_COLUMNS)
    while _fixed(columns) + MIN_SAMPLE_WIDTH > width and any(column.rank for column in columns):
        columns.remove(max(columns, key=lambda column: column.rank))
    left = max(width - _fixed(columns), MIN_SAMPLE_WIDTH)
    for_notes = max(0, left - MAX_SAMPLE_WIDTH) if NOTE in columns else 0
    return tuple((column, column.width + for_notes if column is NOTE else column.width or left - for_notes) for column in columns)


def _fixed(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(columns) - 1


def task_header(width: int, moment: Moment) -> Text:
    """The titles of the columns."""
    style = f"bold {moment.tone('accent')}"
    return joined_cells([fit(plain(column.title, style), cells, right=column.right) for column, cells in columns_for(width)])


def task_line(record: TaskRecord, width: int, moment: Moment) -> Text:
    """One row of the task table. A pending task has neither verdict nor note: it says there why it waits."""
    columns = columns_for(width)
    if record.task.state is not TaskState.PENDING:
        return joined_cells([_cell(record, column, cells, moment) for column, cells in columns])
    line = [_cell(record, column, cells, moment) for column, cells in columns if column not in (VERDICT, NOTE)]
    if (room := sum(cells + 1 for column, cells in columns if column in (VERDICT, NOTE)) - 1) > 0:
        line.append(fit(waits_cell(record, moment, room), room))
    return joined_cells(line)


def line_depends_on(record: TaskRecord, moment: Moment) -> object:
    """What a task's line depends on besides the record: an equal value means an equal line."""
    return None if record.task.state.is_final else int(moment.now - record.task.stage_since)


def _cell(record: TaskRecord, column: Column, cells: int, moment: Moment) -> Text:
    return fit(column.cell(record, moment), cells, right=column.right)
