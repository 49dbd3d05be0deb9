"""Machines beside each other: none may be there twice. Where one is, the first stands, and the later one has a fault of its own."""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.sample import visible


@dataclass(frozen=True, slots=True)
class Double:
    """What the machine at `index` has in common with an earlier one: `key` is the key that says it, `problem` a sentence with the
    remedy."""

    index: int
    key: str
    problem: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Machines under names of their own, in order. `faults`: why one, by that name, can't be used, in sentences with the remedy."""

    machines: tuple[MachineSpec, ...]
    faults: Mapping[str, str] = field(default_factory=dict)


_PROBLEMS: Mapping[str, str] = MappingProxyType(
    {
        "name": "A machine before it is called {first} already. Give it another name, or remove one of the two.",
        "domain": "{first} is the domain {domain} at {uri} already. Name another domain, or remove one of the two.",
        "address": "{first} has the address {address} already. Give each guest an address of its own.",
    }
)


def listed(machines: Sequence[MachineSpec]) -> Listing:
    """All of them, each under a name of its own: the second `win10` is `win10 (2)`, which no configured name can be."""
    apart = tuple(_apart(machines))
    faults: dict[str, str] = {}
    for double in doubles(machines):
        name = apart[double.index].name
        faults[name] = f"{faults[name]} {double.problem}" if name in faults else double.problem
    return Listing(apart, faults)


def doubles(machines: Sequence[MachineSpec]) -> Iterator[Double]:
    """Everything that a machine has and an earlier one has already. A machine that can't be used for that keeps nothing from others."""
    taken: dict[tuple[str, Hashable], MachineSpec] = {}
    for index, machine in enumerate(machines):
        places = tuple(_places(machine))
        clashes = [place for place in places if place in taken]
        for key, value in clashes:
            if key == "domain" and not machine.domain and taken[key, value].name == machine.name:
                continue  # It follows from the name, which is told.
            problem = _PROBLEMS[key].format(
                first=visible(taken[key, value].name),
                domain=visible(machine.domain_name),
                uri=visible(machine.uri),
                address=visible(machine.address),
            )
            yield Double(index, key, problem)
        if not clashes:
            taken |= dict.fromkeys(places, machine)


def _places(machine: MachineSpec) -> Iterator[tuple[str, Hashable]]:
    """What only one machine can have, by the key that says it."""
    yield "name", machine.name
    if machine.uri:
        yield "domain", (machine.uri, machine.domain_name)
    if machine.address:
        yield "address", _comparable(machine.address)


def _apart(machines: Sequence[MachineSpec]) -> Iterator[MachineSpec]:
    seen: dict[str, int] = {}
    for machine in machines:
        number = seen[machine.name] = seen.get(machine.name, 0) + 1
        if number == 1:
            yield machine
        else:
            yield msgspec.structs.replace(machine, name=f"{machine.name} ({number})", domain=machine.domain_name)


def _comparable(address: str) -> Hashable:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return address
