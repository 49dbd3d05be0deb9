"""A list drawn line by line: only what is on the screen is made, and only lines that changed are drawn again.

(Textual's DataTable repaints all that is visible at each change of a cell, and freezes for seconds on a hundred thousand rows.)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class LineView(ScrollView):
    """The base of all live lists. A subclass says how many lines there are and what each looks like, from what it holds itself."""

    DEFAULT_CSS = "LineView { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }"

    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-view--cursor", "line-view--cursor-elsewhere"}

    HEADER_LINES = 0
    """Lines at the top that don't scroll."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._drawn: dict[int, Text] = {}
        """What stands on each line of the screen."""

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
        """The line that is under the cursor."""
        return None

    def changed(self) -> None:
        """What the view holds changed: draw again those visible lines that look different now."""
        count = self.line_count()
        if self.virtual_size.height != count + self.HEADER_LINES or self.virtual_size.width != self.size.width:
            self.virtual_size = Size(self.size.width, count + self.HEADER_LINES)
        width = self.scrollable_content_region.width
        for y in range(self.size.height):
            text, drawn = self._text_at(y, width), self._drawn.get(y)
            if text is drawn:
                continue
            if drawn is None:
                self.refresh(Region(0, y, self.size.width, 1))
            elif (cells := _differing_cells(drawn, text)) is not None:
                self.refresh(Region(cells[0], y, cells[1] - cells[0], 1))

    def render_line(self, y: int) -> Strip:
        """Textual asks for one line of the screen."""
        width = self.scrollable_content_region.width
        text = self._text_at(y, width)
        self._drawn[y] = text
        base = self.rich_style
        if (index := self._index_at(y)) is not None and index == self.cursor_index():
            base += self._cursor_style()
        segments = [segment for segment in text.render(self.app.console) if segment.text != "\n"]
        return Strip(Segment.apply_style(segments, base)).adjust_cell_length(width, base)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The lines stand elsewhere now."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.refresh()

    def on_resize(self) -> None:
        """The width of every line changed."""
        self._drawn.clear()
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

    def _index_at(self, y: int) -> int | None:
        if y < self.HEADER_LINES:
            return None
        index = round(self.scroll_offset.y) + y - self.HEADER_LINES
        return index if index < self.line_count() else None

    def _text_at(self, y: int, width: int) -> Text:
        if y < self.HEADER_LINES:
            return self.header(width)
        index = self._index_at(y)
        return Text() if index is None else self.line(index, width)

    def _cursor_style(self) -> Style:
        return self.get_component_rich_style("line-view--cursor" if self.has_focus else "line-view--cursor-elsewhere")


def _differing_cells(old: Text, new: Text) -> tuple[int, int] | None:
    """From which cell to which (the last excluded) two lines look different; None when they don't. A wide character counts whole."""
    if old.plain == new.plain and old.spans == new.spans and old.style == new.style:
        return None
    before, after = _cells(old), _cells(new)
    width = max(len(before), len(after))
    before += [_NOTHING] * (width - len(before))
    after += [_NOTHING] * (width - len(after))
    differing = [cell for cell in range(width) if before[cell] != after[cell]]
    return (differing[0], differing[-1] + 1) if differing else None


_NOTHING = (" ", ())


def _cells(text: Text) -> list[tuple[str, tuple[object, ...]]]:
    """The character and styles of each cell; the second cell of a wide character repeats the first."""
    styles: list[tuple[object, ...]] = [()] * len(text.plain)
    for start, end, span_style in text.spans:
        for place in range(start, min(end, len(styles))):
            styles[place] = (*styles[place], span_style)
    cells: list[tuple[str, tuple[object, ...]]] = []
    for char, style in zip(text.plain, styles, strict=True):
        cells += [(char, style)] * cell_len(char)
    return cells
