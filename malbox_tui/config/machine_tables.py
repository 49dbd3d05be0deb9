"""A machine as its table in `[[machines]]` would say it, for those that come another way than by the operator's file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as types

from malbox_tui.config.faults import Fault, value_faults
from malbox_tui.config.machine_rules import machine_faults
from malbox_tui.config.machines import CHANNELS, MachineSettings
from malbox_tui.model.machine import MachineSpec


def table_of(machine: MachineSpec) -> dict[str, Any]:
    """Its table, without the keys that say nothing new."""
    table = {name: list(value) if isinstance(value, tuple) else value for name, value in msgspec.structs.asdict(machine).items()}
    if any(machine.provider == provider and machine.channel == ways[0] for provider, ways in CHANNELS.items()):
        del table["channel"]
    left_out = {"arch": "x64", "max_failures": 3}
    return {name: value for name, value in table.items() if value not in ("", [], None) and left_out.get(name) != value}


def table_faults(table: Any) -> Iterator[Fault]:
    """What is wrong with the table of one machine by itself, by its keys."""
    faults = list(value_faults(table, types.type_info(MachineSettings)))
    yield from faults
    if not faults:
        for fault in machine_faults("", msgspec.convert(table, MachineSettings)):
            yield Fault(fault.key.lstrip("."), fault.problem)


def spec_of(table: Any) -> MachineSpec:
    """The machine of a table without faults."""
    return msgspec.convert(table, MachineSettings).spec()
