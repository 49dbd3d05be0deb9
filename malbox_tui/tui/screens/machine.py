"""One machine in full: its state, what it is, its history and its last screenshot, live."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from malbox_tui.model.machine import MachineView
from malbox_tui.tui import keys
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.machine_page import gone_lines, machine_lines
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.pictures import Gallery
from malbox_tui.tui.text import clock_time
from malbox_tui.tui.widgets.key_bar import KeyBar
from malbox_tui.tui.widgets.picture_view import PictureView


class MachineScreen(Screen[None]):
    """Everything about one machine. Arrows scroll."""

    AUTO_FOCUS = "#machine-scroll"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.MACHINE_SCREEN)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012 - as the base declares it

    def __init__(
        self,
        name: str,
        picture: LivePicture,
        gallery: Gallery,
        moment: Callable[[], Moment],
        clock: Callable[[float], str],
    ) -> None:
        super().__init__()
        self.machine_name = name
        self._live = picture
        self._moment = moment
        self._clock = clock
        self._page = Static(id="machine-page")
        self._view = PictureView(gallery, moment, id="machine-picture")

    @property
    def machine(self) -> MachineView | None:
        """As it was seen last; None when it is no longer in the pool."""
        overview = self._live.overview
        machines = () if overview is None else overview.machines
        return next((machine for machine in machines if machine.name == self.machine_name), None)

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with VerticalScroll(id="machine-scroll", classes="picture-panes"):
            yield self._page
            yield self._view
        yield KeyBar()

    def on_mount(self) -> None:
        """Draw it."""
        self.tick()

    def on_resize(self) -> None:
        """Its lines have another width."""
        self.call_after_refresh(self.tick)

    def on_screen_resume(self) -> None:
        """Much may have happened while something else was over it."""
        self.tick()

    async def reread(self) -> None:
        """Draw what is known of it by now."""
        self.tick()

    def tick(self) -> None:
        """Draw what changed, and what moves with time alone."""
        machine, moment, width = self.machine, self._moment(), max(1, self._page.size.width - 1)
        if machine is None:
            self._page.update(Text("\n").join(gone_lines(self.machine_name, moment)))
            self._view.show(None, lambda: "")
            return
        task = None if machine.task_id is None else self._live.tasks.get(machine.task_id)
        self._page.update(Text("\n").join(machine_lines(machine, task, moment, self._clock, width)))
        self._view.show(machine.screenshot, lambda: self._caption(machine))

    def _caption(self, machine: MachineView) -> str:
        if machine.screenshot is None:
            return "No picture of its screen was taken yet."
        if machine.screenshot_at is None:
            return "Its screen, when it was looked at last"
        ago = clock_time(self._moment().now - machine.screenshot_at)
        return f"Its screen at {self._clock(machine.screenshot_at)}, {ago} ago"
