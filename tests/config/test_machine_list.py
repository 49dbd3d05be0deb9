"""Machines that are there twice: the first stands, the later one is told what is wrong with it, and all others work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from malbox_tui.config.machine_list import listed
from malbox_tui.model.machine import MachineSpec
from tests.config.files import source_of

MACHINE = '[[machines]]\nprovider = "libvirt"\nplatform = "linux"\nuri = "qemu:///system"\nsnapshot = "clean"\n'


def machine(name: str, **fields: Any) -> MachineSpec:
    return MachineSpec(name=name, provider="libvirt", platform="linux", uri="qemu:///system", **fields)


def names(*machines: MachineSpec) -> list[str]:
    return [listed_machine.name for listed_machine in listed(machines).machines]


def test_machines_that_have_nothing_in_common_have_no_fault() -> None:
    elsewhere = MachineSpec(name="c", provider="libvirt", platform="linux", uri="qemu:///session", domain="a")
    assert not listed([machine("a", address="10.0.0.1"), machine("b", address="10.0.0.2"), elsewhere]).faults


def test_the_second_of_a_name_is_listed_beside_the_first() -> None:
    assert names(machine("a"), machine("b"), machine("a", domain="x"), machine("a", domain="y")) == ["a", "b", "a (2)", "a (3)"]


def test_a_machine_that_is_listed_under_another_name_keeps_its_domain() -> None:
    _, second = listed([machine("a"), machine("a")]).machines
    assert second.domain_name == "a"


def test_only_the_later_one_of_a_name_has_a_fault_with_the_remedy() -> None:
    assert listed([machine("a"), machine("a", domain="x")]).faults == {
        "a (2)": "A machine before it is called a already. Give it another name, or remove one of the two."
    }


def test_a_domain_that_was_named_twice_is_said_beside_the_name() -> None:
    assert "a is the domain x" in listed([machine("a", domain="x"), machine("a", domain="x")]).faults["a (2)"]


def test_one_domain_is_one_machine() -> None:
    assert listed([machine("a"), machine("b", domain="a")]).faults == {
        "b": "a is the domain a at qemu:///system already. Name another domain, or remove one of the two."
    }


def test_one_address_is_one_guest_however_it_is_spelt() -> None:
    assert listed([machine("a", address="fd00::1"), machine("b", address="FD00:0::1")]).faults == {
        "b": "a has the address FD00:0::1 already. Give each guest an address of its own."
    }


def test_machines_that_are_only_played_have_no_domain() -> None:
    played = [MachineSpec(name=name, provider="simulated", platform="linux", domain="d") for name in "ab"]
    assert not listed(played).faults


def test_everything_that_is_there_twice_is_said() -> None:
    faults = listed([machine("a", address="10.0.0.1"), machine("b", domain="a", address="10.0.0.1")]).faults
    assert faults["b"].startswith("a is the domain a")
    assert faults["b"].endswith("Give each guest an address of its own.")


def test_a_machine_that_is_not_used_keeps_nothing_from_others() -> None:
    unused = machine("b", domain="a", address="10.0.0.2")
    assert listed([machine("a"), unused, machine("c", address="10.0.0.2")]).faults.keys() == {"b"}


def test_braces_in_a_name_are_braces() -> None:
    assert "the domain {first} at" in listed([machine("a", domain="{first}"), machine("b", domain="{first}")]).faults["b"]


def test_a_configuration_with_doubles_is_in_effect_and_says_where_they_are(tmp_path: Path) -> None:
    content = f'{MACHINE}name = "a"\naddress = "10.0.0.1"\n{MACHINE}name = "a"\n{MACHINE}name = "c"\naddress = "10.0.0.1"\n'
    configuration = source_of(tmp_path, content).read()
    assert configuration.faults == ()
    assert len(configuration.settings.machines) == 3
    assert [(fault.key, fault.problem.partition(". ")[0]) for fault in configuration.doubles] == [
        ("machines[1].name", "machine a: A machine before it is called a already"),
        ("machines[2].address", "machine c: a has the address 10.0.0.1 already"),
    ]
    assert all(fault.problem.endswith("Until then it is not used.") for fault in configuration.doubles)


def test_a_double_that_came_while_the_engine_ran_is_told_of_the_file_that_keeps_it(tmp_path: Path) -> None:
    source = source_of(tmp_path, f'{MACHINE}name = "gone"\n{MACHINE}name = "a"\n{MACHINE}name = "b"\ndomain = "a"\n')
    (tmp_path / "config.machines.toml").write_text(f'removed = ["gone"]\n{MACHINE}name = "c"\ndomain = "a"\n')
    own, kept = source.read().doubles
    assert (own.path, own.key) == (str(source.path), "machines[2].domain")
    assert (kept.path, kept.key) == (str(tmp_path / "config.machines.toml"), None)
    assert kept.problem.startswith("machine c: a is the domain a")
