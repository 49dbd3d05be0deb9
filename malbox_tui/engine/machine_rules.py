"""What a machine has to be to be taken into a running pool: the rules of `[[machines]]`, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterable

from malbox_tui.config.machine_list import doubles
from malbox_tui.config.machine_tables import spec_of, table_faults, table_of
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import Machinery

MOST_LISTED = 64
"""So many tags a machine may have, and so many watched folders."""
MOST_MACHINES = 1000

_UNSAID = "simulated"
"""The channel of a `MachineSpec` that names none."""


def usable(machine: MachineSpec, machinery: Machinery) -> MachineSpec:
    """The machine as a configuration would have it. Raises `RefusedCommand` when none could, or nothing here moves such machines."""
    if len(machine.tags) > MOST_LISTED or len(machine.watch) > MOST_LISTED:
        raise RefusedCommand(f"A machine has at most {MOST_LISTED} tags and watched folders. Nothing was changed.")
    table = table_of(machine)
    if machine.channel == _UNSAID and machine.provider != _UNSAID:
        table.pop("channel", None)
    for fault in table_faults(table):
        raise RefusedCommand(f"{fault.key}: {fault.problem} Nothing was changed.")
    machine = spec_of(table)
    for adapters, name, what in (
        (machinery.providers, machine.provider, "runs machines of"),
        (machinery.channels, machine.channel, "talks to guests by"),
    ):
        if name not in adapters:
            known = f"; there is {' and '.join(sorted(adapters))}" if adapters else ""
            raise RefusedCommand(f"Nothing here {what} {name!r}{known}. Nothing was changed.")
    return machine


def clash(machine: MachineSpec, others: Iterable[MachineSpec]) -> str | None:
    """What it has that one of `others` has already, in sentences; None when nothing."""
    listed = [*others, machine]
    return " ".join(double.problem for double in doubles(listed) if double.index == len(listed) - 1) or None
