"""The machines. The cursor is on a machine, not on a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.events import Click

from malbox_tui.model.machine import MachineView
from malbox_tui.tui import keys
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.machine_line import machine_counts, machine_line, machine_rest
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import joined_cells, plain
from malbox_tui.tui.widgets.line_view import LineView

ONE_LINE_FROM_WIDTH = 70
MOST_OF_SCREEN = 0.35
"""How much of the screen's lines the machines may take with two lines each."""


class MachinesPane(LineView, can_focus=True):
    """Machines in the order of the configuration, a line each; on a narrow pane two, while there is room for them."""

    BINDINGS = keys.bindings(keys.TABLE + keys.MACHINES)

    def __init__(self, picture: LivePicture, moment: Callable[[], Moment]) -> None:
        super().__init__(id="machines")
        self._picture = picture
        self._moment = moment
        self._name: str | None = None
        self._was_at = 0
        self._counts = ""
        self._lines: dict[tuple[str, int], tuple[object, Text]] = {}
        """The lines of each machine, with what they were made from."""

    @property
    def machines(self) -> Sequence[MachineView]:
        """As they were seen last."""
        return () if self._picture.overview is None else self._picture.overview.machines

    @property
    def current(self) -> MachineView | None:
        """The machine under the cursor; None when there is none."""
        place = self._place()
        return None if place is None else self.machines[place]

    def changed(self) -> None:
        """See `LineView`: the title counts, too."""
        counts = machine_counts(self.machines)
        if counts != self._counts:
            self._counts = counts
            self.border_title = f"Machines · {counts}"
        super().changed()

    @property
    def lines_each(self) -> int:
        """Two on a narrow pane if there is room for them, else one."""
        is_narrow = self.size.width < ONE_LINE_FROM_WIDTH
        return 2 if is_narrow and 2 * len(self.machines) <= MOST_OF_SCREEN * self.app.size.height else 1

    def line_count(self) -> int:
        """See `LineView`."""
        return self.lines_each * len(self.machines)

    def line(self, index: int, width: int) -> Text:
        """See `LineView`."""
        place, part = divmod(index, self.lines_each)
        machine, moment = self.machines[place], self._moment()
        made_from = (machine, width, self.lines_each, moment.dark, part or int(moment.now - machine.since))
        known = self._lines.get((machine.name, part))
        if known is not None and known[0] == made_from:
            return known[1]
        if part:
            line = joined_cells([plain(" "), machine_rest(machine, moment, width - 2)])
        else:
            line = machine_line(machine, moment, width, with_rest=self.lines_each == 1)
        self._lines[machine.name, part] = (made_from, line)
        return line

    def cursor_index(self) -> int | None:
        """See `LineView`."""
        place = self._place()
        return None if place is None else place * self.lines_each

    def _place(self) -> int | None:
        """Where the machine under the cursor is now among all; when it is gone, where it was."""
        machines = self.machines
        if not machines:
            return None
        index = next((place for place, machine in enumerate(machines) if machine.name == self._name), None)
        if index is None:
            index = min(self._was_at, len(machines) - 1)
            self._name = machines[index].name
        self._was_at = index
        return index

    def action_cursor(self, lines: int) -> None:
        """Move the cursor."""
        self._move_to((self._place() or 0) + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by what is visible at once."""
        self.action_cursor(pages * max(1, self.page_lines // self.lines_each - 1))

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or the last line."""
        self._move_to(0 if direction < 0 else len(self.machines) - 1)

    def on_click(self, event: Click) -> None:
        """Put the cursor where the mouse was."""
        index = self.clicked_index(event)
        if index is not None:
            self._move_to(index // self.lines_each)

    def _move_to(self, index: int) -> None:
        if self.machines:
            index = max(0, min(index, len(self.machines) - 1))
            self._name = self.machines[index].name
            self.show_line(index * self.lines_each + self.lines_each - 1)
            self.show_line(index * self.lines_each)
            self.changed()
