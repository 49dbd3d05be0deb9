"""Text that is safe and fits. Nothing of foreign origin reaches a widget but through `shown`: as a `Text`, escaped, never as markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells
from rich.text import Text

from malbox_tui.model.sample import escape, visible

ELLIPSIS = "…"
MAX_WRAPPED = 20
"""The most lines that one sentence gets."""


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


def first_fitting(phrases: Sequence[str], cells: int) -> str:
    """The first of the phrases that fits, from the most words to the fewest; the last one when none does."""
    return next((phrase for phrase in phrases if cell_len(phrase) <= cells), phrases[-1])


def wrapped(text: str, cells: int, most: int) -> list[str]:
    """`text` in lines of `cells` cells at most, broken between words where that is possible; of more than `most` lines the last one
    kept ends with an ellipsis."""
    cells = max(cells, 2)
    pieces = [piece for word in text.split(" ") for piece in (chop_cells(word, cells) if cell_len(word) > cells else [word])]
    lines = [""]
    for piece in pieces:
        longer = f"{lines[-1]} {piece}" if lines[-1] else piece
        if cell_len(longer) <= cells:
            lines[-1] = longer
        else:
            lines.append(piece)
    if len(lines) > most:
        lines[most - 1 :] = [fit(plain(f"{lines[most - 1]} {lines[most]}"), cells).plain.rstrip()]
        if not lines[-1].endswith(ELLIPSIS):
            lines[-1] = f"{chop_cells(lines[-1], cells - 1)[0]}{ELLIPSIS}"
    return lines


def labelled(label: str, text: str, cells: tuple[int, int], label_style: str, style: str = "") -> list[Text]:
    """Safe text behind a label, in as many lines as it takes. `cells` are those of the label, and of the whole line."""
    first, *others = wrapped(text, cells[1] - cells[0], MAX_WRAPPED)
    begin = fit(plain(label, label_style), cells[0])
    begin.append(first, style)
    return [begin, *(joined_cells([plain(" " * cells[0]), plain(other, style)], "") for other in others)]


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def counted(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


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
