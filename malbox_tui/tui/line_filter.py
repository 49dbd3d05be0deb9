"""The last gate before the terminal: no character that a terminal acts on, or that nobody can see, passes it, and no hyperlink.

Everything foreign is escaped where it becomes text (`text.py`); this catches what a widget of the library takes in another way, such as
a path that is typed into an input. What passes has as many cells as before: a line that is one cell longer than its widget believes
would run into the next one.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

REPLACEMENT = "�"
"""One cell wide."""

_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Printable by `str.isprintable`, and nothing to see (Unicode's Default_Ignorable_Code_Point, and the blank Braille pattern)."""


class SafeText(LineFilter):
    """Replaces what is not printable cell for cell, and takes away what has no cell. Two of them are the same filter to a cache."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """See `LineFilter`."""
        if all(map(_is_safe, segments)):
            return segments
        return [segment if _is_safe(segment) else _made_safe(segment) for segment in segments]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SafeText)

    def __hash__(self) -> int:
        return hash(SafeText)


def _is_safe(segment: Segment) -> bool:
    text, style, control = segment
    if control is not None:
        return True
    if style is not None and style.link is not None:
        return False
    return text.isprintable() and (text.isascii() or _UNSEEN.search(text) is None)


def _made_safe(segment: Segment) -> Segment:
    style = segment.style
    return Segment(_safe(segment.text), style.update_link(None) if style is not None and style.link is not None else style)


@lru_cache(4096)
def _safe(text: str) -> str:
    cells = cell_len(text)
    seen = "".join(char if char.isprintable() and not _UNSEEN.match(char) else _stand_in(char) for char in text)
    return seen if cell_len(seen) == cells else set_cell_size(seen, cells)


def _stand_in(char: str) -> str:
    return (" " if unicodedata.category(char) == "Zs" else REPLACEMENT) * cell_len(char)
