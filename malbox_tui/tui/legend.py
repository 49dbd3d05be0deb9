"""What the signs on the screen mean, for the help."""

from __future__ import annotations

from malbox_tui.tui.glyphs import BAR_EMPTY, BAR_FULL, MACHINES, STANDS
from malbox_tui.tui.groups import SELECTED, UNSAVED

SIGNS: tuple[tuple[str, str], ...] = (
    ("3/4 of 1–6", "A worker group: 3 of its 4 workers are busy; there are 1 at least and 6 at most"),
    (SELECTED, "The worker group that w chose, and that ] [ } { resize"),
    (UNSAVED, "Limits that the next start would not use, until s keeps them"),
    ("3rd", "A waiting task's place among all that wait; behind it, why it waits"),
    ("2 of 8 tasks", "A worker that holds several tasks, each by itself or together in a batch; they are below it"),
    (
        f"0:42 {BAR_FULL}{BAR_EMPTY} 4:18",
        "A task is 0:42 in its stage and reaches the time limit of that stage in 4:18 (in short: 0:42 -4:18)",
    ),
    ("critical 0:12", "So much is left of the time limit of the whole attempt, which is reached before that of the stage"),
    (
        f"{STANDS} 3:20 left",
        "The clock of a task stands: it waits for its turn in a batch, for the rest of its batch, or for room on the disk",
    ),
    *((f"{look.glyph} {look.word}", f"A machine: {look.meaning}") for look in MACHINES.values()),
)
"""sign → meaning, in the order of the help."""
