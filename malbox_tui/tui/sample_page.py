"""One content as lines of text: what the latest reports on it come to, its names, what people noted, and each of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from malbox_tui.model.sample import Sample, visible
from malbox_tui.model.task import Task
from malbox_tui.model.verdict import summary_of_sample
from malbox_tui.tui.columns import state_cell, verdict_cell
from malbox_tui.tui.glyphs import VERDICTS
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.task_page import LABEL_CELLS, heading, of_sample, summary_lines
from malbox_tui.tui.text import clock_time, counted, fit, joined_cells, labelled, plain, shown, wrapped

SHOWN_TASKS = 200
ID_CELLS, STATE_CELLS, VERDICT_CELLS, AGO_CELLS = 8, 12, 16, 14
WHO_CELLS = 24
MOST_NOTE_LINES = 40


def sample_lines(sample: Sample, tasks: Sequence[Task], total: int, moment: Moment, width: int) -> list[Text]:
    """All that is known of it, in lines of `width` cells at most. `tasks` are the latest first, of `total` that there are."""
    summary = summary_of_sample(tasks)
    title = joined_cells(
        [plain("Sample", "bold"), shown(sample.sha256[:16], "bold"), verdict_cell(summary.verdict, moment)], "  "
    )
    return [
        title,
        *summary_lines(summary, moment, width),
        *labelled("tags", ", ".join(map(visible, sample.tags)) or "none", (LABEL_CELLS, width), moment.tone("muted")),
        plain(""),
        *of_sample(sample, moment, "What it is"),
        plain(""),
        heading("Notes", moment),
        *_notes(sample, moment, width),
        plain(""),
        heading(f"Tasks ({total})", moment),
        *_tasks(tasks, moment, width),
        *([plain(f"and {counted(total - len(tasks), 'earlier one')}", moment.tone("muted"))] if total > len(tasks) else []),
    ]


def _notes(sample: Sample, moment: Moment, width: int) -> Iterable[Text]:
    if not sample.notes:
        yield plain("none yet", moment.tone("muted"))
    for note in reversed(sample.notes):
        who = shown(f"{note.actor}, {_ago(note.at, moment)}", moment.tone("muted"))
        lines = [
            line
            for raw in note.text.splitlines()
            for line in wrapped(visible(raw), max(2, width - WHO_CELLS - 1), MOST_NOTE_LINES)
        ]
        yield joined_cells([fit(who, WHO_CELLS), plain(lines[0] if lines else "")])
        yield from (joined_cells([plain(" " * WHO_CELLS), plain(line)]) for line in lines[1:])


def _tasks(tasks: Sequence[Task], moment: Moment, width: int) -> Iterable[Text]:
    for task in tasks:
        at = task.finished_at if task.finished_at is not None else task.created_at
        labels = plain("")
        if task.verdict is not None:
            labels = shown(", ".join(task.verdict.labels), moment.tone(VERDICTS[task.verdict.classification].tone))
        cells = [
            fit(plain(f"#{task.id}", "bold"), ID_CELLS),
            fit(state_cell(task.state, moment), STATE_CELLS),
            fit(verdict_cell(task.verdict, moment), VERDICT_CELLS),
            fit(plain(_ago(at, moment), moment.tone("muted")), AGO_CELLS),
            labels,
        ]
        line = joined_cells(cells)
        yield fit(line, width) if line.cell_len > width else line


def _ago(at: float, moment: Moment) -> str:
    return f"{clock_time(moment.now - at)} ago"
