"""What was, as cells: the bars of the timelines, and the lines of the event log."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby

from rich.text import Text

from malbox_tui.model.task import TaskState
from malbox_tui.tui.event_words import LogLine
from malbox_tui.tui.glyphs import STATES
from malbox_tui.tui.live import LiveTask
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, fit, joined_cells, plain, sentence, shown

MACHINE_CELLS = 9


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


def timeline_legend() -> str:
    """What the letters of the bars stand for."""
    return " ".join(f"{look.letter} {look.word}" for state, look in STATES.items() if not state.is_final)


def timeline_bar(task: LiveTask, seconds: float, width: int, moment: Moment) -> Text:
    """The task's states over the last `seconds`, a cell for each `seconds / width`: letter and colour of the state it was in at the
    cell's end; the mark of its end where it ended. The bar moves by whole cells."""
    step = seconds / width
    begin = _right_end(seconds, width, moment) - seconds
    cells: list[tuple[str, str]] = [(" ", "")] * width
    for span in task.spans:
        look = STATES[span.state]
        if span.state.is_final:
            place = min(width - 1, math.floor((span.start - begin) / step))
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


def timeline_label(task: LiveTask, with_name: bool, with_machine: bool, width: int, moment: Moment) -> Text:
    """What stands before a task's bar: its id, its name where there is room, and the machine that serves it where there is more."""
    label = plain(f"{task.id:>5}", moment.tone("muted"))
    if with_name:
        label.append(f" {task.name}")
    if not with_machine:
        return fit(label, width)
    machine = shown(task.machine or "", moment.tone("preparing"))
    return joined_cells([fit(label, width - MACHINE_CELLS - 1), fit(machine, MACHINE_CELLS)])


def bar_depends_on(task: LiveTask, seconds: float, width: int, moment: Moment) -> tuple[object, ...]:
    """What a task's bar and label are made from: equal values mean equal ones."""
    return _right_end(seconds, width, moment), seconds, task.state, len(task.spans), task.since, task.machine


def _right_end(seconds: float, width: int, moment: Moment) -> float:
    """The time at the end of the cell that now falls into."""
    step = seconds / width
    return math.ceil(moment.now / step) * step


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
