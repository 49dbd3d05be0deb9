"""A machine as cells: its state and since when, the task that holds it, and what it is or why it can't serve."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from malbox_tui.model.machine import OUT_OF_SERVICE, MachineState, MachineView
from malbox_tui.tui.banner import SIMULATED
from malbox_tui.tui.glyphs import MACHINES
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, counted, fit, joined_cells, plain, sentence, shown

STATE_CELLS = 13
TASK_CELLS = 6
TIME_CELLS = 7
LEAST_NAME_CELLS, MOST_NAME_CELLS = 8, 20
LEAST_REST_CELLS = 20
"""What time and rest get at least; in less there is the time alone."""


def machine_line(machine: MachineView, moment: Moment, width: int, *, with_rest: bool = True) -> Text:
    """One machine: name, state, task, how long; then, `with_rest`, why it can't serve, or what it is."""
    look = MACHINES[machine.state]
    time = plain(clock_time(moment.now - machine.since))
    cells = [
        fit(shown(machine.name, "bold"), max(LEAST_NAME_CELLS, min(MOST_NAME_CELLS, width // 5))),
        fit(plain(f"{look.glyph} {look.word}", moment.tone(look.tone)), STATE_CELLS),
    ]
    is_out = machine.state in OUT_OF_SERVICE
    if not is_out:
        cells.append(fit(plain("" if machine.task_id is None else f"#{machine.task_id}", "bold"), TASK_CELLS))
    head = joined_cells(cells)
    if not with_rest or (not is_out and width - head.cell_len < LEAST_REST_CELLS):
        return fit(joined_cells([head, fit(time, max(0, width - head.cell_len - 1), right=True)]), width)
    if not is_out:
        time = fit(time, TIME_CELLS, right=True)
    # A machine that is out of service holds no task: the reason begins where the task would stand.
    head = joined_cells([head, time])
    return fit(joined_cells([head, machine_rest(machine, moment, width - head.cell_len - 1)]), width)


def machine_rest(machine: MachineView, moment: Moment, width: int) -> Text:
    """Why it can't serve, or what it is, in exactly so many cells."""
    parts = []
    if machine.leaving:
        parts.append(plain("then out", moment.tone("late")))
    if machine.reason:
        tone = "muted" if machine.state is MachineState.DISABLED else "late"
        parts.append(sentence(machine.reason, moment.tone(tone)))
    if machine.failures:
        parts.append(plain(counted(machine.failures, "failure"), moment.tone("late")))
    parts.append(shown(f"{machine.platform}/{machine.arch}", moment.tone("muted")))
    parts += [shown(tag, moment.tone("muted")) for tag in machine.tags]
    if machine.provider == SIMULATED:
        parts.append(plain(SIMULATED, moment.tone("preparing")))
    return fit(joined_cells(parts, " · "), max(width, 0))


def machine_counts(machines: Sequence[MachineView]) -> str:
    """How many could take a task now, and how many can't at all: `2 of 6 ready, 1 out`."""
    ready = sum(machine.state is MachineState.READY for machine in machines)
    out = sum(machine.state in OUT_OF_SERVICE for machine in machines)
    return f"{ready} of {len(machines)} ready{f', {out} out' if out else ''}"
