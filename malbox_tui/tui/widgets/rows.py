"""A list of things that are told one after the other, with a cursor that moves over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from rich.text import Text
from textual.events import Click
from textual.message import Message

from malbox_tui.tui import keys
from malbox_tui.tui.text import plain
from malbox_tui.tui.widgets.line_view import LineView

T = TypeVar("T")


class Rows(LineView, Generic[T], can_focus=True):
    """Draws `things` by `make`; `nothing` stands there when there are none."""

    BINDINGS = keys.bindings(keys.TABLE)

    class Moved(Message):
        """The cursor is elsewhere."""

    def __init__(
        self, make: Callable[[T, int], Text], *, title: Callable[[int], Text] | None = None, id: str | None = None
    ) -> None:
        """`title` makes the line above them; None: there is none."""
        super().__init__(id=id)
        self._make = make
        self._heading = title
        self._at = 0
        self._lines: dict[int, tuple[T, int, Text]] = {}
        self.HEADER_LINES = 0 if title is None else 1
        self.things: Sequence[T] = ()
        self.nothing = ""

    @property
    def current(self) -> T | None:
        """The thing under the cursor."""
        return self.things[self._at] if self._at < len(self.things) else None

    @property
    def place(self) -> int:
        """Which one that is."""
        return self._at

    def show(self, things: Sequence[T], *, first: bool = False) -> None:
        """Have other things; with `first` the cursor is on the first of them."""
        self.things = things
        self._lines.clear()
        self._at = 0 if first else max(0, min(self._at, len(things) - 1))
        if first:
            self.scroll_to(y=0, animate=False, force=True)
        self.changed()

    def keep_on(self, is_it: Callable[[T], bool]) -> None:
        """Move the cursor to the thing that this is true of, if there is one."""
        place = next((place for place, thing in enumerate(self.things) if is_it(thing)), None)
        if place is not None and place != self._at:
            self._at = place
            self.changed()

    def header(self, width: int) -> Text:
        """See `LineView`."""
        return Text() if self._heading is None else self._heading(width)

    def line_count(self) -> int:
        """See `LineView`."""
        return max(len(self.things), 1)

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        if index >= len(self.things):
            return plain(self.nothing)
        thing, known = self.things[index], self._lines.get(index)
        if known is not None and known[0] is thing and known[1] == width:
            return known[2]
        if len(self._lines) > 1000:
            self._lines.clear()
        text = self._make(thing, width)
        self._lines[index] = (thing, width, text)
        return text

    def cursor_index(self) -> int | None:
        """See `LineView`."""
        return self._at if self.things else None

    def action_cursor(self, lines: int) -> None:
        """Move the cursor."""
        self._move_to(self._at + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by what is visible at once."""
        self._move_to(self._at + pages * max(1, self.page_lines - 1))

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or the last thing."""
        self._move_to(0 if direction < 0 else len(self.things) - 1)

    def on_click(self, event: Click) -> None:
        """Put the cursor where the mouse was."""
        index = self.clicked_index(event)
        if index is not None:
            self._move_to(index)

    def _move_to(self, index: int) -> None:
        if self.things:
            self._at = max(0, min(index, len(self.things) - 1))
            self.show_line(self._at)
            self.changed()
            self.post_message(self.Moved())
