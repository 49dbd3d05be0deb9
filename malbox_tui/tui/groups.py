"""Worker groups as cells, and which of them keys act on."""

from __future__ import annotations

from rich.text import Text

from malbox_tui.model.overview import GroupView, Overview
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, first_fitting, fit, joined_cells, plain, shown

SELECTED = "▸"
"""Stands before the worker group that keys act on, where there are several."""
UNSAVED = "*"
"""Stands behind limits that the next start would not use."""
MAX_NAME_CELLS = 16


class GroupChoice:
    """The worker group that keys act on: by name, the first one until another is chosen."""

    def __init__(self) -> None:
        self._name: str | None = None

    def of(self, overview: Overview) -> GroupView | None:
        """The chosen one as it is now; None when there is no group."""
        found = next((group for group in overview.groups if group.name == self._name), None)
        return found or next(iter(overview.groups), None)

    def go_on(self, overview: Overview) -> GroupView | None:
        """Choose the one after the chosen one, and give it."""
        chosen = self.of(overview)
        if chosen is None:
            return None
        names = [group.name for group in overview.groups]
        self._name = names[(names.index(chosen.name) + 1) % len(names)]
        return self.of(overview)


def groups_part(overview: Overview, chosen: GroupView, moment: Moment, rooms: tuple[int, ...]) -> Text:
    """All groups, in as many words as the first of `rooms` has cells for: in full, the others by what is busy, or the others summed.
    What doesn't even fit in the shortest form is tried in the next, larger room."""
    others = [group for group in overview.groups if group is not chosen]
    if not others:
        return _in_full(chosen, moment)
    marked = plain(f"{SELECTED}", moment.tone("accent"))
    marked.append_text(_in_full(chosen, moment, "bold"))
    forms = [
        _dotted([marked if group is chosen else _in_full(group, moment) for group in overview.groups], moment),
        _dotted([marked if group is chosen else _in_short(group, moment) for group in overview.groups], moment),
        _dotted([marked, _summed(others, moment)], moment),
    ]
    return next((form for room in rooms for form in forms if form.cell_len <= room), forms[-1])


def group_line(group: GroupView, is_chosen: bool, moment: Moment, width: int) -> Text:
    """The line above a group's workers: its numbers, what it takes, and whether it runs that in batches."""
    line = plain(f"{SELECTED} " if is_chosen else "  ", moment.tone("accent"))
    line.append_text(_in_full(group, moment, f"bold {moment.tone('accent')}"))
    room = width - line.cell_len - 3
    batches = f"batches of {group.batch_size}" if group.batch_size > 1 else ""
    rest = (batches, f"priority {group.priority}", f"idle {clock_time(group.idle_timeout_s)}")
    takes = (f"takes {group.takes}" if group.takes else "", group.takes, group.takes.replace(" tasks", "", 1))
    shorter = ((takes[0], *rest[:count]) for count in (3, 2, 1))
    without_verb = ((what, *also) for also in ((batches,), ()) for what in takes[1:])
    words = first_fitting([" · ".join(filter(None, parts)) for parts in (*shorter, *without_verb)], room)
    if words and room > 5:
        line.append(" · ", moment.tone("muted"))
        line.append_text(fit(shown(words, moment.tone("muted")), room))
    return fit(line, width)


def limits(group: GroupView) -> str:
    """Its limits, marked when the next start would use others."""
    return f"{group.min_workers}–{group.max_workers}{'' if group.saved else UNSAVED}"


def _in_full(group: GroupView, moment: Moment, name_style: str = "") -> Text:
    text = _name(group, name_style or moment.tone("muted"))
    text.append(f"{group.busy}/{group.active}", "bold")
    text.append(f" of {group.min_workers}–{group.max_workers}")
    if not group.saved:
        text.append(UNSAVED, f"bold {moment.tone('late')}")
    return text


def _in_short(group: GroupView, moment: Moment) -> Text:
    text = _name(group, moment.tone("muted"))
    text.append(f"{group.busy}/{group.active}{'' if group.saved else UNSAVED}")
    return text


def _summed(groups: list[GroupView], moment: Moment) -> Text:
    text = plain(f"+{len(groups)} group{'s' if len(groups) > 1 else ''} ", moment.tone("muted"))
    unsaved = "" if all(group.saved for group in groups) else UNSAVED
    text.append(f"{sum(group.busy for group in groups)}/{sum(group.active for group in groups)}{unsaved}")
    return text


def _name(group: GroupView, style: str) -> Text:
    name = shown(group.name, style)
    name = fit(name, MAX_NAME_CELLS) if name.cell_len > MAX_NAME_CELLS else name
    name.append(" ")
    return name


def _dotted(parts: list[Text], moment: Moment) -> Text:
    line = joined_cells(parts[:1])
    for part in parts[1:]:
        line.append(" · ", moment.tone("muted"))
        line.append_text(part)
    return line
