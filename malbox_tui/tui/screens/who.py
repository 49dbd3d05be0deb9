"""Who else follows the same engine, over whatever is shown."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from malbox_tui.model.overview import ConsoleView, Overview
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens.dialogs import Choice, Question
from malbox_tui.tui.text import clock_time, counted, plain, shown

NAMED = 40


def about_consoles(overview: Overview, moment: Moment, time_of_day: Callable[[float], str]) -> Question:
    """All of them with since when they are here, the first one first; this console is one of them."""
    consoles = sorted(overview.consoles, key=lambda console: console.since)
    lines = [_line(console, moment, time_of_day) for console in consoles[:NAMED]]
    if len(consoles) > NAMED:
        lines.append(plain(f"and {len(consoles) - NAMED} more"))
    for line in lines:
        line.no_wrap = False
    return Question(f"{counted(len(consoles), 'console')} on this engine, this one included", lines, [Choice("Close", None)])


def _line(console: ConsoleView, moment: Moment, time_of_day: Callable[[float], str]) -> Text:
    line = Text.assemble(shown(console.actor, "bold"))
    if console.origin:
        line.append_text(Text.assemble(" from ", shown(console.origin)))
    here = clock_time(max(0.0, moment.now - console.since))
    line.append(f", since {time_of_day(console.since)} ({here})", moment.tone("muted"))
    if console.read_only:
        line.append(", read-only", moment.tone("late"))
    return line
