"""The line at the top as cells: the pool and its queue, the most important first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from malbox_tui.model.overview import GroupView, Overview
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Attachment
from malbox_tui.tui.glyphs import STATES
from malbox_tui.tui.groups import groups_part
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import counted, fit, joined_cells, plain, short_size, shown

SPARKS = "▁▂▃▄▅▆▇█"
COUNT_FROM_WIDTH = 80
MIN_PLACE_CELLS = 12
GAP_CELLS = 3
"""Between two parts."""


def header_line(overview: Overview | None, chosen: GroupView | None, moment: Moment, width: int, place: str | Attachment) -> Text:
    """The one line at the top: as much of it as fits, the most important first. `chosen` is the worker group that keys act on, `place`
    the host, or the way to an engine elsewhere."""
    title = plain(" malbox ", f"bold reverse {moment.tone('accent')}")
    if not isinstance(place, str):
        title = joined_cells([title, _attached_part(place, overview, moment, width)])
    elif consoles := _consoles(overview, width):
        title = joined_cells([title, plain(consoles, moment.tone("muted"))])
    if overview is None:
        return joined_cells([title, plain("connecting…", moment.tone("muted"))]) if isinstance(place, str) else title
    queue, ended = _queue_part(overview, moment), _ended_part(overview, moment)
    parts = [title]
    if chosen is not None:
        room = width - title.cell_len - GAP_CELLS
        with_queue = room - queue.cell_len - GAP_CELLS
        parts.append(groups_part(overview, chosen, moment, (with_queue - ended.cell_len - GAP_CELLS, with_queue, room)))
    parts += [queue, ended, _rate_part(overview, moment), _room_part(overview, moment)]
    parts += [shown(place, moment.tone("muted"))] if isinstance(place, str) else []
    line = Text(no_wrap=True, end="")
    for part in parts:
        if not part.plain:
            continue
        if line.cell_len + part.cell_len + GAP_CELLS > width:
            break
        if line.plain and not line.plain.endswith(" "):
            line.append(" · ", moment.tone("muted"))
        elif line.plain:
            line.append(" ")
        line.append_text(part)
    return line


def _attached_part(way: Attachment, overview: Overview | None, moment: Moment, width: int) -> Text:
    """Where this console is attached, how, and how many there are; on a narrow screen the name alone is cut."""
    facts = ["not connected" if way.away is not None else "connecting…" if overview is None else "attached"]
    facts += ["read-only"] if way.read_only else []
    facts += [consoles] if (consoles := _consoles(overview, width)) else []
    rest = f", {', '.join(facts)}"
    name = shown(way.place)
    room = max(MIN_PLACE_CELLS, width // 2 - len(rest) - MIN_PLACE_CELLS)
    text = fit(name, room) if name.cell_len > room else name
    text.append(rest)
    text.stylize(moment.tone("bad" if way.away is not None else "late" if way.read_only else "muted"))
    return text


def _consoles(overview: Overview | None, width: int) -> str:
    """How many consoles there are on this engine, where they are more than this one and there is room to say so."""
    number = 0 if overview is None else len(overview.consoles)
    return counted(number, "console") if number > 1 and width >= COUNT_FROM_WIDTH else ""


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
