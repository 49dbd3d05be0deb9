"""What an engine gets to know and to move its machines with."""

from __future__ import annotations

import msgspec

from malbox_tui.config.machine_list import listed
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import Machinery
from malbox_tui.runtime.machine_assembly import build_machinery

PLAYED = MachineSpec(name="played", provider="simulated", platform="linux")


def machinery(*machines: MachineSpec) -> Machinery:
    return build_machinery(listed(machines))


async def test_what_moves_a_machine_and_its_guest_is_there() -> None:
    built = machinery(PLAYED)
    assert [machine.name for machine in built.machines] == ["played"]
    assert PLAYED.provider in built.providers
    assert PLAYED.channel in built.channels
    assert not built.faults


async def test_a_machine_that_is_there_twice_is_told_so_and_the_first_is_as_it_was() -> None:
    built = machinery(PLAYED, msgspec.structs.replace(PLAYED, platform="windows"))
    assert [(machine.name, machine.platform) for machine in built.machines] == [("played", "linux"), ("played (2)", "windows")]
    assert built.faults.keys() == {"played (2)"}
