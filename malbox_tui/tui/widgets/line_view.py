"""A list drawn line by line: only what is on the screen is made, and only cells that changed are drawn again.

(Textual's DataTable repaints all that is visible at each change of a cell, and freezes for seconds on a hundred thousand rows.)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class LineView(ScrollView):
    """The base of all live lists. A subclass says how many lines there are and what each looks like, from what it holds itself.

    Lines are made in `changed` alone: it compares each with what stands there, and painting takes what it made. A line that is the very
    same `Text` as before costs next to nothing, so whatever can tell that a line is as it was should give the same one.
    """

    DEFAULT_CSS = "LineView { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }"

    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-view--cursor", "line-view--cursor-elsewhere"}

    HEADER_LINES = 0
    """Lines at the top that don't scroll."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._standing: dict[int, tuple[Text, bool]] = {}
        """What stands on each line of the screen, or will after the next paint, and whether the cursor is on it."""
        self._strips: dict[int, tuple[Text, Style, int, Strip]] = {}
        """The strip of each text that was painted lately, by the text's identity, with what else it was made from."""
        self._base: Style | None = None
        """The style of the view itself, while one paint goes on: working it out takes longer than a line."""

    @abstractmethod
    def line_count(self) -> int:
        """How many lines there are, without the header."""

    @abstractmethod
    def line(self, index: int, width: int) -> Text:
        """One line, by its place among all."""

    def header(self, width: int) -> Text:
        """The header's line."""
        return Text()

    def cursor_index(self) -> int | None:
        """The line that is under the cursor; of several, the first."""
        return None

    @property
    def lines_each(self) -> int:
        """How many lines the cursor is on."""
        return 1

    def changed(self) -> None:
        """What the view holds changed: draw again those visible lines that look different now."""
        count = self.line_count()
        if self.virtual_size.height != count + self.HEADER_LINES or self.virtual_size.width != self.size.width:
            self.virtual_size = Size(self.size.width, count + self.HEADER_LINES)
        width, cursor = self.scrollable_content_region.width, self.cursor_index()
        for y in range(self.size.height):
            standing = self._standing.get(y)
            text, under_cursor = self._standing[y] = self._line_at(y, width, cursor)
            if standing is None or standing[1] is not under_cursor:
                self.refresh(Region(0, y, self.size.width, 1))
            elif standing[0] is not text and (cells := differing_cells(standing[0], text, width)) is not None:
                self.refresh(Region(cells[0], y, cells[1] - cells[0], 1))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Textual asks for what is on the screen: those lines that were refreshed are rendered anew."""
        self._base = None
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Textual asks for one line of the screen."""
        width = self.scrollable_content_region.width
        standing = self._standing.get(y)
        if standing is None:
            standing = self._standing[y] = self._line_at(y, width, self.cursor_index())
        text, under_cursor = standing
        style = self._base = self._base or self.rich_style
        if under_cursor:
            style += self._cursor_style()
        return self._strip(text, style, width)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The lines stand elsewhere now."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._standing.clear()
            self.refresh()

    def on_resize(self) -> None:
        """The width of every line changed."""
        self._standing.clear()
        self._strips.clear()
        self.changed()

    @property
    def page_lines(self) -> int:
        """How many lines fit."""
        return max(1, self.size.height - self.HEADER_LINES)

    def show_line(self, index: int) -> None:
        """Scroll so far that the line is visible."""
        top = round(self.scroll_offset.y)
        if index < top:
            self.scroll_to(y=index, animate=False, force=True)
        elif index >= top + self.page_lines:
            self.scroll_to(y=index - self.page_lines + 1, animate=False, force=True)

    def clicked_index(self, event: Click) -> int | None:
        """Which line was clicked, by its place among all; None when it was none."""
        offset = event.get_content_offset(self)
        return None if offset is None else self._index_at(offset.y)

    def _line_at(self, y: int, width: int, cursor: int | None) -> tuple[Text, bool]:
        if y < self.HEADER_LINES:
            return self.header(width), False
        index = self._index_at(y)
        return (Text(), False) if index is None else (self.line(index, width), self._is_under(cursor, index))

    def _is_under(self, cursor: int | None, index: int) -> bool:
        return cursor is not None and cursor <= index < cursor + self.lines_each

    def _index_at(self, y: int) -> int | None:
        if y < self.HEADER_LINES:
            return None
        index = round(self.scroll_offset.y) + y - self.HEADER_LINES
        return index if index < self.line_count() else None

    def _strip(self, text: Text, style: Style, width: int) -> Strip:
        known = self._strips.get(id(text))
        if known is not None and known[0] is text and known[1] == style and known[2] == width:
            return known[3]
        segments = [segment for segment in text.render(self.app.console) if segment.text != "\n"]
        strip = Strip(Segment.apply_style(segments, style)).adjust_cell_length(width, style)
        if len(self._strips) > 4 * self.size.height:
            self._strips.clear()
        self._strips[id(text)] = (text, style, width, strip)
        return strip

    def _cursor_style(self) -> Style:
        return self.get_component_rich_style("line-view--cursor" if self.has_focus else "line-view--cursor-elsewhere")


def differing_cells(old: Text, new: Text, width: int) -> tuple[int, int] | None:
    """From which cell to which (the last excluded) two lines of `width` cells look different; None when they don't.

    What both have at their beginnings and ends is passed over, characters as well as styles; what is between is taken to differ. A wide
    character counts whole, and so does one with marks that combine with it.
    """
    before, after = old.plain, new.plain
    if before == after and old.spans == new.spans and old.style == new.style:
        return None
    if old.style != new.style:
        return 0, width
    (first, last), (styled_first, styled_last) = _differing_characters(before, after), _differing_styles(old, new)
    first, last = min(first, styled_first), max(last, styled_last)
    while first and (_combines(before, first) or _combines(after, first)):
        first -= 1
    start = cell_len(after[:first])
    cells = cell_len(after[first:last])
    if len(before) != len(after) or cells != cell_len(before[first:last]):
        return start, width
    # A mark at the end is drawn with the cell before it by some, and with the one behind it by others.
    marked = any(_combines(text, place) for text in (before, after) for place in (last - 1, last))
    return start, min(width, start + cells + marked)


def _combines(text: str, place: int) -> bool:
    char = text[place : place + 1]
    return bool(char) and not char.isascii() and cell_len(char) == 0


def _differing_characters(before: str, after: str) -> tuple[int, int]:
    """The first character that differs, and the place behind the last one; of use only when both are of one length."""
    if before == after:
        return len(after), 0
    shortest = min(len(before), len(after))
    first = next((place for place in range(shortest) if before[place] != after[place]), shortest)
    last = next((place for place in range(shortest - 1, first - 1, -1) if before[place] != after[place]), first)
    return first, last + 1


def _differing_styles(old: Text, new: Text) -> tuple[int, int]:
    """As `_differing_characters`, of the styles alone."""
    before, after = list(old.spans), list(new.spans)
    while before and after and before[-1] == after[-1]:
        before.pop()
        after.pop()
    same = next((place for place, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), None)
    same = min(len(before), len(after)) if same is None else same
    between = [*before[same:], *after[same:]]
    return min((span.start for span in between), default=len(new.plain)), max((span.end for span in between), default=0)
