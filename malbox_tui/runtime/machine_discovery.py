"""What machines a hypervisor has, each as the table that would configure it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from malbox_tui.config.machines import Arch, Provider
from malbox_tui.engine import clock
from malbox_tui.machinery.discovery import FoundMachine, discover
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.sample import visible

LIMIT_S = 30.0
"""How long a hypervisor may take to tell what it has."""
MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class Proposal:
    """One machine of a hypervisor. `table` is what its `[[machines]]` says; keys that nobody but the operator knows are not in it.

    `configured_as`: the machine of the configuration that it is already; None: of none. `remarks`: what is lacking, and what an
    operator should know, a sentence each.
    """

    found: FoundMachine
    table: Mapping[str, Any]
    configured_as: str | None
    remarks: tuple[str, ...]


def proposals(uri: str, configured: Sequence[MachineSpec]) -> list[Proposal]:
    """One for each machine at `uri`, by name. Raises `MalboxError` when that can't be told, with the remedy."""
    try:
        found = asyncio.run(_found(uri))
    except TimeoutError:
        raise MalboxError(
            f"{visible(uri)} does not answer within {LIMIT_S:g} s. Start libvirt there anew (`systemctl restart libvirtd`)."
        ) from None
    known = {(machine.uri, machine.domain_name): machine.name for machine in configured if machine.uri}
    taken = {machine.name for machine in configured}
    return [_proposal(machine, known.get((uri, machine.domain)), taken) for machine in found]


async def _found(uri: str) -> Sequence[FoundMachine]:
    async with clock.within(LIMIT_S):
        return await discover(uri)


def _proposal(found: FoundMachine, configured_as: str | None, taken: set[str]) -> Proposal:
    name = configured_as or _free_name(found.domain, taken)
    taken.add(name)
    table: dict[str, Any] = {"name": name, "provider": Provider.LIBVIRT.value, "uri": found.uri}
    if name != found.domain:
        table["domain"] = found.domain
    if found.snapshot:
        table["snapshot"] = found.snapshot
    if found.platform:
        table["platform"] = found.platform
    if found.arch in set(Arch) - {Arch.X64}:
        table["arch"] = found.arch
    return Proposal(found, table, configured_as, tuple(_remarks(found)))


def _remarks(found: FoundMachine) -> Iterator[str]:
    yield from found.warnings
    if not found.platform:
        yield "Nothing tells which system is in it: write its platform."
    if found.arch and found.arch not in set(Arch):
        yield f"Machines of its architecture, {visible(found.arch)}, can't be configured."


def _free_name(domain: str, taken: set[str]) -> str:
    """The domain's name as far as a machine can be called so, and as no other one is."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", domain).strip("-._")[: MAX_NAME - 4] or "machine"
    number = 2
    name = plain
    while name in taken:
        name = f"{plain}-{number}"
        number += 1
    return name
