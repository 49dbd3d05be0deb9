"""What the signs on the screen mean, for the help."""

from __future__ import annotations

from malbox_tui.tui.glyphs import MACHINES
from malbox_tui.tui.groups import SELECTED, UNSAVED

SIGNS: tuple[tuple[str, str], ...] = (
    ("3/4 of 1–6", "A worker group: 3 of its 4 workers are busy; there are 1 at least and 6 at most"),
    (SELECTED, "The worker group that w chose, and that ] [ } { resize"),
    (UNSAVED, "Limits that the next start would not use, until s keeps them"),
    ("3rd", "A waiting task's place among all that wait; behind it, why it waits"),
    ("2 of 8 tasks", "A worker that may hold several tasks; those it holds are below it"),
    *((f"{look.glyph} {look.word}", f"A machine: {look.meaning}") for look in MACHINES.values()),
)
"""sign → meaning, in the order of the help."""
