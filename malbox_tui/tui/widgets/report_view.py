"""Reports one below the other, as long and as wide as they are. What is too wide for the screen is panned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType

from malbox_tui.reports.gathering import PluginReport
from malbox_tui.tui import keys
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.report_page import NO_PICTURES, Pictures, Piece, ReportLines, panned, report_pieces
from malbox_tui.tui.text import fit, plain
from malbox_tui.tui.widgets.line_view import LineView

PAN_CELLS = 16
MAX_PAN_CELLS = 4096


class ReportView(LineView, can_focus=True):
    """Scrolls in both directions."""

    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.REPORT)

    def __init__(self, moment: Callable[[], Moment], on_moved: Callable[[], None], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._moment = moment
        self._on_moved = on_moved
        self._reports: Sequence[PluginReport] | None = None
        self._lines = ReportLines(())
        self._made_for: object = None
        self._pan = 0
        self._pictures = NO_PICTURES

    def show(self, reports: Sequence[PluginReport], pictures: Pictures = NO_PICTURES) -> None:
        """From now on these."""
        self._reports, self._pictures, self._made_for = reports, pictures, None
        self.changed()

    def show_pictures(self, pictures: Pictures) -> None:
        """What the pictures are that reports name. What is in sight stays there."""
        top, place = round(self.scroll_offset.y), self._current().place_of(round(self.scroll_offset.y))
        self._pictures, self._made_for = pictures, None
        self.changed()
        self._on_moved()
        if (there := self._current().index_of(*place)) != top:
            self.scroll_to(y=there, animate=False, force=True)

    @property
    def place(self) -> tuple[int, int, int, str]:
        """Which lines are in sight (first and last, from 1), of how many, and to what the first one belongs."""
        lines, top = self._current(), round(self.scroll_offset.y)
        return min(top + 1, lines.count), min(top + self.page_lines, lines.count), lines.count, lines.title_at(top + 1)

    def line_count(self) -> int:
        """See `LineView`."""
        return self._current().count

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        lines = self._current()
        whole = lines.top_line(index) if index == round(self.scroll_offset.y) else lines.line(index)
        return fit(panned(whole, self._pan), width)

    def on_resize(self) -> None:
        """Prose is broken elsewhere."""
        super().on_resize()
        self._on_moved()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """See `LineView`."""
        super().watch_scroll_y(old_value, new_value)
        self._on_moved()

    def action_by(self, lines: int) -> None:
        """Scroll by so many lines."""
        self.scroll_to(y=round(self.scroll_offset.y) + lines, animate=False)

    def action_by_page(self, pages: int) -> None:
        """Scroll by so many pages, of which one line stays."""
        self.action_by(pages * max(1, self.page_lines - 1))

    def action_edge(self, direction: int) -> None:
        """To the first or the last line."""
        self.scroll_to(y=0 if direction < 0 else self.line_count(), animate=False)

    def action_pan(self, direction: int) -> None:
        """Show what is further to the right or to the left."""
        top = round(self.scroll_offset.y)
        in_sight = range(top, min(top + self.page_lines, self.line_count()))
        widest = max((self._current().line(index).cell_len for index in in_sight), default=0)
        last = max(self._pan, widest - self.scrollable_content_region.width) if direction > 0 else self._pan
        self._pan = max(0, min(self._pan + direction * PAN_CELLS, last, MAX_PAN_CELLS))
        self.changed()
        self._on_moved()

    def action_title(self, direction: int) -> None:
        """To the next title, or the one before."""
        top = round(self.scroll_offset.y)
        titles = self._current().titles()
        there = [at for at in titles if (at > top if direction > 0 else at < top)]
        if there:
            self.scroll_to(y=there[0] if direction > 0 else there[-1], animate=False)

    def _current(self) -> ReportLines:
        moment, width = self._moment(), max(2, self.scrollable_content_region.width)
        made_for = (moment.dark, width)
        if made_for != self._made_for:
            self._made_for = made_for
            self._lines = ReportLines(self._pieces(moment, width))
        return self._lines

    def _pieces(self, moment: Moment, width: int) -> Iterator[Piece]:
        if not self._reports:
            words = "Reading …" if self._reports is None else "No plugin has reported on this task."
            yield Piece(1, lambda index: plain(words, moment.tone("muted")))
        for report in self._reports or ():
            yield from report_pieces(report, moment, width, self._pictures)
