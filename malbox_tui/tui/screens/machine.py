"""All about one machine, over whatever is shown."""

from __future__ import annotations

from malbox_tui.model.machine import MachineView
from malbox_tui.tui.machine_line import machine_details
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens.dialogs import Choice, Question
from malbox_tui.tui.text import shown

DIALOG_CELLS = 72
BORDER_CELLS = 7


def about_machine(machine: MachineView, moment: Moment, screen_cells: int) -> Question:
    """What is known of it, to be closed. The sizes are those of `.dialog` in the styles."""
    lines = machine_details(machine, moment, min(DIALOG_CELLS, int(0.95 * screen_cells)) - BORDER_CELLS)
    return Question(f"Machine {shown(machine.name).plain}", lines, [Choice("Close", None)])
