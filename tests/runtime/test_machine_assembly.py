"""What an engine gets to know and to move its machines with."""

from __future__ import annotations

import msgspec
import pytest

from malbox_tui.config.machine_list import listed
from malbox_tui.machinery.binding import LibvirtNotInstalled
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import Machinery
from malbox_tui.runtime import machine_assembly
from malbox_tui.runtime.machine_assembly import build_machinery

VIRTUAL = MachineSpec(name="virtual", provider="libvirt", platform="linux", uri="qemu:///system", snapshot="s", channel="qga")
PLAYED = MachineSpec(name="played", provider="simulated", platform="linux")


def machinery(*machines: MachineSpec) -> Machinery:
    return build_machinery(listed(machines), 90.0)


async def test_what_moves_any_machine_and_its_guest_is_there_also_for_those_that_come_later() -> None:
    built = machinery()
    assert {PLAYED.provider, VIRTUAL.provider} <= built.providers.keys()
    assert {PLAYED.channel, VIRTUAL.channel} <= built.channels.keys()


async def test_without_libvirt_its_machines_have_a_fault_with_the_remedy_and_others_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise LibvirtNotInstalled("No module named 'libvirt'")

    monkeypatch.setattr(machine_assembly, "libvirt_module", missing)
    built = machinery(PLAYED, VIRTUAL)
    assert built.faults.keys() == {"virtual"}
    assert "pip install 'malbox-tui[libvirt]'" in built.faults["virtual"]


@pytest.mark.needs("libvirt")
async def test_with_libvirt_its_machines_have_no_fault_and_nothing_is_asked() -> None:
    assert not machinery(PLAYED, VIRTUAL).faults


async def test_a_machine_that_is_there_twice_is_told_so_and_the_first_is_as_it_was() -> None:
    built = machinery(PLAYED, msgspec.structs.replace(PLAYED, platform="windows"))
    assert [(machine.name, machine.platform) for machine in built.machines] == [("played", "linux"), ("played (2)", "windows")]
    assert built.faults.keys() == {"played (2)"}
