"""What can be seen of a hypervisor and its machines without moving any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from malbox_tui.machinery.binding import libvirt_module, start_event_loop
from malbox_tui.machinery.crew import Crew
from malbox_tui.machinery.domain_xml import DomainShape, parse_domain
from malbox_tui.machinery.link import Link
from malbox_tui.machinery.reverting import clean_xml
from malbox_tui.model.machine import MachineSpec

_NO_NETWORK = 43
"""libvirt's number for a network that there is not (virterror.h)."""


@dataclass(frozen=True, slots=True)
class HypervisorFacts:
    """`version` is that of libvirt there; `runner` is what runs its machines, with its version; `domains` is how many it has."""

    version: str
    runner: str
    domains: int


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """What a network card is plugged into: a network of libvirt by name, or a device of the host (`is_network` false).

    `forward` is where a network leads besides its own host, as libvirt has it ("nat", "route", "bridge", …); empty: nowhere.
    """

    name: str
    is_network: bool
    exists: bool = True
    is_active: bool = True
    forward: str = ""


@dataclass(frozen=True, slots=True)
class MachineLook:
    """A machine by what it is reverted to. `emulator` is the path of its program on the hypervisor's host."""

    shape: DomainShape
    networks: tuple[NetworkFacts, ...]
    emulator: str


class Survey:
    """One look at the hypervisor at `uri`, over a connection of its own. Each call may take for ever; a cancelled one harms nothing."""

    def __init__(self, uri: str) -> None:
        start_event_loop()
        self._link = Link(uri, Crew("survey"))

    async def hypervisor(self) -> HypervisorFacts:
        """What is there. Raises `Unreachable`, `Refusal`."""
        return await self._link.run(_hypervisor)

    async def machine(self, machine: MachineSpec) -> MachineLook:
        """How a machine is built. Raises `MachineMissing`, `MachineMisconfigured`, `Unreachable`, `Refusal`."""
        return await self._link.run(lambda connection: _look(connection, machine))

    def close(self) -> None:
        """Let go of the connection, in the background."""
        self._link.close()


def _hypervisor(connection: Any) -> HypervisorFacts:
    runner = connection.getType()
    return HypervisorFacts(
        version=_version(connection.getLibVersion()),
        runner=f"{runner} {_version(connection.getVersion())}",
        domains=len(connection.listAllDomains(0)),
    )


def _look(connection: Any, machine: MachineSpec) -> MachineLook:
    xml = clean_xml(connection, machine)
    shape = parse_domain(xml)
    networks = [network for card in shape.cards if (network := _network(connection, card.kind, card.xml)) is not None]
    return MachineLook(shape, tuple(networks), (ElementTree.fromstring(xml).findtext(".//devices/emulator") or "").strip())


def _network(connection: Any, kind: str, card: str) -> NetworkFacts | None:
    source = ElementTree.fromstring(card).find("source")
    attributes = {} if source is None else source.attrib
    match kind:
        case "network":
            return _own_network(connection, attributes.get("network", ""))
        case "bridge":
            return NetworkFacts(attributes.get("bridge", ""), is_network=False)
        case "direct" | "hostdev":
            return NetworkFacts(attributes.get("dev", ""), is_network=False, forward=kind)
        case _:
            return None


def _own_network(connection: Any, name: str) -> NetworkFacts:
    libvirt = libvirt_module()
    try:
        network = connection.networkLookupByName(name)
        forward = ElementTree.fromstring(network.XMLDesc(0)).find("forward")
        return NetworkFacts(
            name,
            is_network=True,
            is_active=bool(network.isActive()),
            forward="" if forward is None else forward.get("mode", "nat"),
        )
    except libvirt.libvirtError as error:
        if error.get_error_code() != _NO_NETWORK:
            raise
        return NetworkFacts(name, is_network=True, exists=False)


def _version(number: int) -> str:
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
