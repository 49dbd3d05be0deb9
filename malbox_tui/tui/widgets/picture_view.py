"""A picture of a machine's screen, with a line that says what it is. Where there are no colours, words stand for it."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from rich.text import Text
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from malbox_tui.model.errors import Disconnected, EngineStopped
from malbox_tui.model.report import ResultRef
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.pictures import Gallery, Picture, Unshowable, cells_of, half_cells
from malbox_tui.tui.text import MAX_WRAPPED, fit, plain, sentence, wrapped

LEAST_LINES = 4
LINES_ELSEWHERE = 3
"""What of the screen's lines the picture leaves: for the line above it, the keys, and one of the rest."""


class PictureView(Widget):
    """Shows the picture that it was told of last. While another is read, the one before stays."""

    DEFAULT_CSS = "PictureView { height: auto; }"

    def __init__(self, gallery: Gallery, moment: Callable[[], Moment], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._gallery = gallery
        self._moment = moment
        self._caption: Callable[[], str] = str
        self._wanted: ResultRef | None = None
        self._shown: ResultRef | None = None
        self._picture: Picture | Unshowable | None = None
        self.is_looking = False
        """A picture is being read."""
        self._lines: list[Text] | list[Strip] = []
        self._made_for: object = None

    @property
    def picture(self) -> Picture | Unshowable | None:
        """What is shown; None before the first one was read."""
        return self._picture

    def show(self, reference: ResultRef | None, caption: Callable[[], str]) -> None:
        """Show this picture from now on (None: there is none); `caption` says what it is at each moment."""
        self._wanted, self._caption = reference, caption
        if reference is None and self._shown is not None:
            self._shown = self._picture = None
            self.refresh(layout=True)
        if reference is not None and reference != self._shown and not self.is_looking:
            self.is_looking = True
            self.run_worker(self._look(), group="picture")
        self.refresh(Region(0, 0, self.outer_size.width, 1))

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """See `Widget`."""
        return container.width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """See `Widget`."""
        return 1 + len(self._body(width))

    def render_line(self, y: int) -> Strip:
        """See `Widget`."""
        width, style = self.size.width, self.rich_style
        lines: list[Text | Strip] = [self._title(width), *self._body(width)]
        line = lines[y] if y < len(lines) else Text()
        if isinstance(line, Text):
            line = Strip(Segment.apply_style([part for part in line.render(self.app.console) if part.text != "\n"], style))
        return line.adjust_cell_length(width, style)

    async def _look(self) -> None:
        """Until what is shown is what is wanted; of many that came meanwhile, the last one is looked at."""
        try:
            while (wanted := self._wanted) is not None and wanted != self._shown:
                picture = await self._gallery.picture(wanted)
                if self._wanted is not None:
                    self._shown, self._picture = wanted, picture
                    self.refresh(layout=True)
        except (Disconnected, EngineStopped):
            return  # It is asked for again when it is shown again, a second later.
        finally:
            self.is_looking = False

    def _title(self, width: int) -> Text:
        return fit(sentence(self._caption(), f"bold {self._moment().tone('accent')}"), width)

    def _body(self, width: int) -> list[Text] | list[Strip]:
        room = max(LEAST_LINES, self.screen.size.height - LINES_ELSEWHERE)
        made_for = (self._picture, width, room, self._moment().dark)
        if made_for != self._made_for:
            self._made_for, self._lines = made_for, self._made(width, room)
        return self._lines

    def _made(self, width: int, room: int) -> list[Text] | list[Strip]:
        picture = self._picture
        if picture is None or width <= 0:
            return []
        if isinstance(picture, Unshowable):
            style = self._moment().tone("late")
            return [plain(line, style) for line in wrapped(sentence(str(picture)).plain, width, MAX_WRAPPED)]
        if self.app.no_color:
            words = f"A picture of {picture.width}×{picture.height} pixels, which this terminal can't show: it has no colours."
            return [plain(line, self._moment().tone("muted")) for line in wrapped(words, width, MAX_WRAPPED)]
        return half_cells(picture, *cells_of(picture, width, room))
