"""How states and verdicts look: a glyph and a word beside the colour, so that no colour carries meaning alone.

All glyphs are one cell wide in every terminal; none is an emoji.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from malbox_tui.model.machine import MachineState
from malbox_tui.model.report import Classification
from malbox_tui.model.task import TaskState


@dataclass(frozen=True, slots=True)
class Look:
    """How one state is shown; `letter` stands for it in a timeline, `tone` names a colour of the theme."""

    glyph: str
    word: str
    letter: str
    tone: str


@dataclass(frozen=True, slots=True)
class MachineLook:
    """How one state of a machine is shown, and what the state means."""

    glyph: str
    word: str
    tone: str
    meaning: str


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

MACHINES: Mapping[MachineState, MachineLook] = MappingProxyType(
    {
        MachineState.READY: MachineLook("○", "ready", "good", "clean, and free for a task"),
        MachineState.LEASED: MachineLook("●", "leased", "running", "a task has it"),
        MachineState.STARTING: MachineLook("◐", "starting", "preparing", "it comes up for a task"),
        MachineState.REVERTING: MachineLook("↻", "reverting", "busy", "it is being made clean"),
        MachineState.QUARANTINED: MachineLook(
            "!", "quarantined", "bad", "out of service: it can't be proven clean; it is tried again"
        ),
        MachineState.DISABLED: MachineLook("⊘", "disabled", "late", "out for maintenance, until it is enabled"),
        MachineState.MISSING: MachineLook("?", "missing", "bad", "its provider doesn't find it; it is looked for again"),
    }
)

BAR_FULL, BAR_EMPTY = "▓", "░"
"""The two parts of every bar."""

STANDS = "‖"
"""Stands before a time that doesn't go on."""

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
