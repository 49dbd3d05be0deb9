"""Text that is safe and fits. Nothing of foreign origin reaches a widget but through `shown`: as a `Text`, escaped, never as markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells
from rich.text import Text

from malbox_tui.model.sample import escape, visible

ELLIPSIS = "…"


def shown(text: str, style: str = "") -> Text:
    """Foreign text on one line: what a terminal could act on is escaped, what looks like markup is text."""
    return Text(visible(text), style, no_wrap=True, end="")


def shown_name(name: bytes, style: str = "") -> Text:
    """A sample's name."""
    return Text(escape(name), style, no_wrap=True, end="")


def sentence(text: str, style: str = "") -> Text:
    """A sentence of ours that may hold foreign words: escaped too, but backslashes of names that are escaped already stay single."""
    return Text("\\".join(map(visible, text.split("\\"))), style, no_wrap=True, end="")


def plain(text: str, style: str = "") -> Text:
    """Our own words."""
    return Text(text, style, no_wrap=True, end="")


def fit(text: Text, cells: int, *, right: bool = False) -> Text:
    """`text` in exactly `cells` terminal cells: padded, or cut with an ellipsis. Wide characters are never cut in half."""
    length = cell_len(text.plain)
    if length > cells:
        kept = chop_cells(text.plain, max(cells - 1, 0))[0] if cells > 1 else ""
        cut = text.copy()
        cut.right_crop(len(text.plain) - len(kept))
        cut.append(ELLIPSIS if cells > 0 else "")
        text, length = cut, cell_len(kept) + (1 if cells > 0 else 0)
    padding = " " * (cells - length)
    result = Text(no_wrap=True, end="")
    if right:
        result.append(padding)
    result.append_text(text)
    if not right:
        result.append(padding)
    return result


def joined_cells(cells: Sequence[Text], gap: str = " ") -> Text:
    """Cells side by side."""
    line = Text(no_wrap=True, end="")
    for number, cell in enumerate(cells):
        if number:
            line.append(gap)
        line.append_text(cell)
    return line


def clock_time(seconds: float) -> str:
    """A duration as `m:ss`, or `h:mm:ss` from an hour on, or `12d 3h` from a day on."""
    whole = max(0, int(seconds))
    if whole >= 86400:
        return f"{whole // 86400}d {whole % 86400 // 3600}h"
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
    return f"{whole // 60}:{whole % 60:02}"


def short_size(size_bytes: int) -> str:
    """At most six characters: `68 B`, `148 K`, `9.9 M`."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in "KMGT":
        value /= 1024
        if value < 999.5:
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
    return f"{value:.0f} T"
