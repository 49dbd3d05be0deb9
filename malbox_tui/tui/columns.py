"""How things become cells: pure functions from the model to `Text`, tested without a screen. Widgets only place what these give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from malbox_tui.model.overview import GroupView, Overview
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Verdict
from malbox_tui.model.task import Task, TaskState
from malbox_tui.model.worker import WorkerKind, WorkerState, WorkerView
from malbox_tui.tui.glyphs import STATES, VERDICTS, tone
from malbox_tui.tui.live import LiveTask, LogLine
from malbox_tui.tui.text import clock_time, fit, joined_cells, plain, sentence, short_size, shown, shown_name

BAR_FULL, BAR_EMPTY = "▓", "░"
SPARKS = "▁▂▃▄▅▆▇█"
STRONG_ISOLATION = "bubblewrap"
"""What an engine calls its isolation when nothing is missing."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What cells depend on besides the thing itself: the engine's time, the theme, and the state of the pool."""

    now: float
    dark: bool = True
    overview: Overview | None = None

    def tone(self, name: str) -> str:
        """The colour of a tone in this theme."""
        return tone(name, dark=self.dark)


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
    """What one most wants to know of the task besides: why it waits, what was found, or why it ended as it did."""
    task = record.task
    if task.state is TaskState.PENDING:
        return sentence(why_pending(task, moment), moment.tone("muted"))
    if task.verdict is not None and task.verdict.labels:
        return shown(", ".join(task.verdict.labels), moment.tone(VERDICTS[task.verdict.classification].tone))
    if task.state.is_final and task.reason != "Finished.":
        return sentence(task.reason, moment.tone("muted"))
    return plain("")


def why_pending(task: Task, moment: Moment) -> str:
    """Why a pending task waits, in words."""
    overview = moment.overview
    if overview is not None and overview.stopping:
        return "waits: the engine is stopping; kept for the next start"
    if overview is not None and overview.paused:
        return f"waits: {overview.paused}"
    if overview is not None and overview.groups:
        group = overview.groups[0]
        if group.max_workers == 0:
            return "waits: no worker may run (max 0)"
        if group.busy >= group.max_workers:
            return f"waits: all {group.max_workers} workers are busy"
    return "waits for a worker"


def kind_cell(record: TaskRecord, moment: Moment) -> Text:
    """What kind of content it is."""
    known = record.sample.identification
    return plain("—", moment.tone("muted")) if known is None else shown(known.kind)


TASK_COLUMNS: tuple[Column, ...] = (
    Column("id", 6, 0, lambda record, moment: plain(str(record.task.id), moment.tone("muted")), right=True),
    Column("pri", 4, 4, lambda record, moment: plain(str(record.task.priority)), right=True),
    Column("sample", 0, 0, name_cell),
    Column("kind", 8, 3, kind_cell),
    Column("size", 6, 5, lambda record, moment: plain(short_size(record.sample.size_bytes), moment.tone("muted")), right=True),
    Column("state", 11, 0, lambda record, moment: state_cell(record.task.state, moment)),
    Column("time", 7, 2, lambda record, moment: age_cell(record.task, moment), right=True),
    Column("verdict", 16, 1, lambda record, moment: verdict_cell(record.task.verdict, moment)),
    Column("note", 28, 6, note_cell),
)
"""The columns of the task table, in their order on the screen."""

MIN_SAMPLE_WIDTH = 16


def columns_for(width: int) -> tuple[tuple[Column, int], ...]:
    """The columns that fit into `width` cells, each with its width: those of the highest rank go first."""
    columns = list(TASK_COLUMNS)
    while _fixed(columns) + MIN_SAMPLE_WIDTH > width and any(column.rank for column in columns):
        columns.remove(max(columns, key=lambda column: column.rank))
    left = max(width - _fixed(columns), MIN_SAMPLE_WIDTH)
    return tuple((column, column.width or left) for column in columns)


def _fixed(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(columns) - 1


def task_header(width: int, moment: Moment) -> Text:
    """The titles of the columns."""
    style = f"bold {moment.tone('accent')}"
    return joined_cells([fit(plain(column.title, style), cells, right=column.right) for column, cells in columns_for(width)])


def task_line(record: TaskRecord, width: int, moment: Moment) -> Text:
    """One row of the task table."""
    return joined_cells([fit(column.cell(record, moment), cells, right=column.right) for column, cells in columns_for(width)])


def line_depends_on(record: TaskRecord, moment: Moment) -> object:
    """What a task's line depends on besides the task: an equal value means an equal line."""
    task = record.task
    if task.state.is_final:
        return None
    waits = why_pending(task, moment) if task.state is TaskState.PENDING else None
    return int(moment.now - task.stage_since), waits


# --- header ------------------------------------------------------------------------------------------------------------------------


def header_line(overview: Overview | None, moment: Moment, width: int, host: str) -> Text:
    """The one line at the top: as much of it as fits, the most important first."""
    title = plain(" malbox ", f"bold reverse {moment.tone('accent')}")
    if overview is None:
        return joined_cells([title, plain("connecting…", moment.tone("muted"))])
    parts = [title, *_notices(overview, moment), *(_group_part(group, moment) for group in overview.groups)]
    parts += [_queue_part(overview, moment), _ended_part(overview, moment), _rate_part(overview, moment)]
    parts += [_room_part(overview, moment), shown(host, moment.tone("muted"))]
    line = Text(no_wrap=True, end="")
    for part in parts:
        if not part.plain:
            continue
        if line.cell_len + part.cell_len + 3 > width:
            break
        if line.plain and not line.plain.endswith(" "):
            line.append(" · ", moment.tone("muted"))
        elif line.plain:
            line.append(" ")
        line.append_text(part)
    return line


def _notices(overview: Overview, moment: Moment) -> list[Text]:
    notices = []
    if overview.stopping:
        notices.append(plain(f" STOPPING ({overview.stopping.replace('_', ' ')}) ", f"bold reverse {moment.tone('late')}"))
    elif overview.paused:
        notices.append(plain(" PAUSED ", f"bold reverse {moment.tone('late')}"))
    if overview.isolation not in ("", STRONG_ISOLATION):
        notices.append(plain(" WEAK ISOLATION ", f"bold reverse {moment.tone('bad')}"))
    return notices


def _group_part(group: GroupView, moment: Moment) -> Text:
    text = plain("workers ", moment.tone("muted"))
    text.append(f"{group.busy}/{group.active}", "bold")
    text.append(f" of {group.min_workers}–{group.max_workers}")
    return text


def _queue_part(overview: Overview, moment: Moment) -> Text:
    text = plain("queue ", moment.tone("muted"))
    text.append(str(overview.counts.get(TaskState.PENDING, 0)), "bold")
    return text


def _ended_part(overview: Overview, moment: Moment) -> Text:
    parts = []
    for state in (TaskState.COMPLETED, TaskState.FAILED, TaskState.TIMED_OUT, TaskState.CANCELED):
        look, count = STATES[state], overview.counts.get(state, 0)
        parts.append(plain(f"{look.glyph} {count}", moment.tone(look.tone if count else "muted")))
    return joined_cells(parts, "  ")


def _rate_part(overview: Overview, moment: Moment) -> Text:
    minutes = overview.ended_per_minute
    if not minutes:
        return plain("")
    recent = minutes[-3:]
    text = plain(f"{sum(recent) / len(recent):.1f}/min ")
    text.append(sparkline(minutes[-8:]), moment.tone("accent"))
    return text


def _room_part(overview: Overview, moment: Moment) -> Text:
    if overview.free_bytes is None:
        return plain("")
    low = overview.free_bytes < 5 * 1024**3
    return plain(f"{short_size(overview.free_bytes)} free", moment.tone("bad" if low else "muted"))


def sparkline(values: Sequence[int]) -> str:
    """A character for each value, the lowest for nothing, the full one for the highest."""
    highest = max(values, default=0) or 1
    return "".join(SPARKS[-(-value * (len(SPARKS) - 1) // highest)] for value in values)


# --- workers -----------------------------------------------------------------------------------------------------------------------


def worker_line(worker: WorkerView, task: LiveTask | None, group: GroupView | None, moment: Moment, width: int) -> Text:
    """One worker: id, kind, state, and what it works on with the deadline, or how long it idles."""
    head = [
        plain(worker.id[:8], moment.tone("muted")),
        fit(plain("base" if worker.kind is WorkerKind.BASELINE else "demand", moment.tone("muted")), 6),
    ]
    if worker.state is WorkerState.IDLE or worker.task_id is None:
        return fit(joined_cells([*head, _idle_part(worker, group, moment)]), width)
    state = STATES[task.state if task is not None and task.state.is_owned else TaskState.INITIALIZING]
    elapsed = moment.now - (task.spans[-1].start if task is not None and task.spans else worker.since)
    fixed = joined_cells(
        [*head, fit(plain(f"{state.glyph} {state.word}", moment.tone(state.tone)), 11), plain(f"#{worker.task_id}", "bold")]
    )
    timing = _deadline_part(task, elapsed, moment, width - fixed.cell_len - 1)
    room = width - fixed.cell_len - timing.cell_len - 2
    name = plain("") if task is None or room < 4 else fit(plain(task.name), room)
    return fit(joined_cells([fixed, name, timing]), width)


def _idle_part(worker: WorkerView, group: GroupView | None, moment: Moment) -> Text:
    idle = max(0.0, moment.now - worker.since)
    text = plain("○ idle ", moment.tone("muted"))
    text.append(clock_time(idle), moment.tone("muted"))
    if worker.kind is WorkerKind.DEMAND and group is not None:
        text.append(f", leaves in {clock_time(group.idle_timeout_s - idle)}", moment.tone("muted"))
    return text


def _deadline_part(task: LiveTask | None, elapsed: float, moment: Moment, room: int) -> Text:
    if task is None or task.state is not TaskState.RUNNING or not task.timeout_s:
        return plain(clock_time(elapsed))
    left = task.timeout_s - elapsed
    cells = 10 if room >= 34 else 5
    if room < 17:
        return plain(f"{clock_time(elapsed)}/{clock_time(task.timeout_s)}")
    full = min(cells, int(cells * elapsed / task.timeout_s))
    colour = moment.tone("bad" if left < 0.1 * task.timeout_s else "running")
    text = plain(f"{clock_time(elapsed)} ")
    text.append(BAR_FULL * full, colour)
    text.append(BAR_EMPTY * (cells - full), moment.tone("muted"))
    text.append(f" {clock_time(left)}", moment.tone("muted"))
    return text


# --- timelines and log -------------------------------------------------------------------------------------------------------------


def timeline_axis(seconds: float, width: int, moment: Moment) -> Text:
    """Marks of time past, `now` at the right end."""
    line = [" "] * width
    for share in (0.75, 0.5, 0.25):
        mark = f"-{clock_time(seconds * share)}"
        start = int(width * (1 - share)) - len(mark) // 2
        if start >= 0 and start + len(mark) < width - 4:
            line[start : start + len(mark)] = mark
    line[-3:] = "now"
    return plain("".join(line)[-width:], moment.tone("muted"))


def timeline_bar(task: LiveTask, seconds: float, width: int, moment: Moment) -> Text:
    """The task's states over the last `seconds`, a cell for each `seconds / width`: letter and colour of the state it was in at the
    cell's end; the mark of its end where it ended."""
    begin, step = moment.now - seconds, seconds / width
    cells: list[tuple[str, str]] = [(" ", "")] * width
    for span in task.spans:
        look = STATES[span.state]
        if span.state.is_final:
            place = min(width - 1, int((span.start - begin) / step))
            if place >= 0:
                cells[place] = (look.letter, moment.tone(look.tone))
            continue
        first = max(0, int((span.start - begin) / step))
        last = min(width, int(((moment.now if span.end is None else span.end) - begin) / step) + 1)
        style = moment.tone(look.tone) if span.state is TaskState.PENDING else f"{_on(moment)} on {moment.tone(look.tone)}"
        for place in range(first, last):
            cells[place] = (look.letter, style)
    line = Text(no_wrap=True, end="")
    for style, run in groupby(cells, key=lambda cell: cell[1]):
        line.append("".join(letter for letter, _ in run), style)
    return line


def _on(moment: Moment) -> str:
    return "#101418" if moment.dark else "#ffffff"


def log_text(line: LogLine, moment: Moment, clock: Callable[[float], str]) -> Text:
    """One line of the event log; `clock` writes a time of day."""
    text = plain(f"{clock(line.at)} ", moment.tone("muted"))
    text.append_text(sentence(line.subject, moment.tone(line.tone)))
    if line.detail:
        text.append(" ")
        text.append_text(sentence(line.detail))
    return text
