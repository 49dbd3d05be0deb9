"""The last gate before the terminal: no character that a terminal acts on, or that nobody can see, passes it.

Everything foreign is escaped where it becomes text (`text.py`); this catches what a widget of the library takes in another way, such as
a path that is typed into an input.
"""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

REPLACEMENT = "�"


class SafeText(LineFilter):
    """Replaces what is not printable, cell for cell where it has one."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """See `LineFilter`."""
        if all(segment.control is None and segment.text.isprintable() for segment in segments):
            return segments
        return [
            segment
            if segment.control is not None or segment.text.isprintable()
            else Segment("".join(char if char.isprintable() else REPLACEMENT for char in segment.text), segment.style)
            for segment in segments
        ]
