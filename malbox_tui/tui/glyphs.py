"""How states and verdicts look: a glyph, a word and a letter beside the colour, so that no colour carries meaning alone.

All glyphs are one cell wide in every terminal; none is an emoji.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from malbox_tui.model.report import Classification
from malbox_tui.model.task import TaskState


@dataclass(frozen=True, slots=True)
class Look:
    """How one state is shown; `letter` stands for it in a timeline, `tone` names a colour of the theme."""

    glyph: str
    word: str
    letter: str
    tone: str


STATES: Mapping[TaskState, Look] = MappingProxyType(
    {
        TaskState.PENDING: Look("○", "pending", "w", "waiting"),
        TaskState.INITIALIZING: Look("◔", "starting", "i", "busy"),
        TaskState.PREPARING_RESOURCES: Look("◐", "preparing", "p", "preparing"),
        TaskState.RUNNING: Look("●", "running", "r", "running"),
        TaskState.STOPPING: Look("◑", "stopping", "s", "busy"),
        TaskState.COMPLETED: Look("✓", "completed", "✓", "good"),
        TaskState.FAILED: Look("!", "failed", "!", "bad"),
        TaskState.TIMED_OUT: Look("◷", "timed out", "◷", "late"),
        TaskState.CANCELED: Look("⊘", "canceled", "⊘", "muted"),
    }
)

VERDICTS: Mapping[Classification, Look] = MappingProxyType(
    {
        Classification.UNKNOWN: Look("·", "unknown", "u", "muted"),
        Classification.CLEAN: Look("+", "clean", "c", "good"),
        Classification.SUSPICIOUS: Look("?", "suspicious", "s", "late"),
        Classification.MALICIOUS: Look("!", "malicious", "m", "bad"),
    }
)

BAR_FULL, BAR_EMPTY = "▓", "░"
"""The two parts of every bar."""

TONES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "waiting": ("#7d8a99", "#66707c"),
        "busy": ("#5fafd7", "#1f6f9f"),
        "preparing": ("#af87d7", "#7347a8"),
        "running": ("#5f9fff", "#1557b0"),
        "good": ("#79b77c", "#2d7a32"),
        "late": ("#d7a75f", "#94600a"),
        "bad": ("#e0706c", "#b3261e"),
        "muted": ("#8a8f98", "#6a7079"),
        "accent": ("#8fb4d9", "#2b5d8f"),
    }
)
"""tone → (colour on dark, colour on light); each has a contrast of at least 4.5 to 1 against its background."""


def tone(name: str, *, dark: bool = True) -> str:
    """The colour of a tone."""
    return TONES[name][0 if dark else 1]
