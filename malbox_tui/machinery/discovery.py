"""What machines a hypervisor has, as they could be configured. Nothing is changed there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from malbox_tui.machinery.binding import libvirt_module, start_event_loop
from malbox_tui.machinery.crew import Crew
from malbox_tui.machinery.domain_xml import DomainShape, parse_domain, snapshot_state
from malbox_tui.machinery.domains import RUNNING_STATES, keeping
from malbox_tui.machinery.line import is_alive
from malbox_tui.machinery.link import Link
from malbox_tui.machinery.power import power
from malbox_tui.machinery.refusals import Refusal, Unreachable
from malbox_tui.machinery.warnings import warnings_of
from malbox_tui.model.machine import MachineSpec, PowerState

ARCHS: Mapping[str, str] = MappingProxyType({"x86_64": "x64", "i686": "x86", "aarch64": "arm64"})

PLATFORMS: Mapping[str, str] = MappingProxyType(
    {
        "microsoft.com": "windows",
        "apple.com": "macos",
        "freebsd.org": "freebsd",
        "openbsd.org": "openbsd",
        "netbsd.org": "netbsd",
    }
)
"""Whose system it is, in libosinfo's names, → platform; all others there make Linux distributions, as good as."""


@dataclass(frozen=True, slots=True)
class FoundSnapshot:
    """A snapshot of a machine. `was_running`: a machine can be reverted to it and run; one that was taken while it was off is of no
    use."""

    name: str
    was_running: bool
    is_current: bool


@dataclass(frozen=True, slots=True)
class FoundMachine:
    """A machine as libvirt has it. `platform` and `arch` are guesses, empty where nothing tells. `warnings`: what stands in the way of
    using it, and what an operator should know, a sentence each."""

    domain: str
    uri: str
    power: PowerState
    platform: str
    arch: str
    has_agent_channel: bool
    snapshots: tuple[FoundSnapshot, ...]
    macs: tuple[str, ...]
    memory_mb: int | None
    vcpus: int | None
    warnings: tuple[str, ...]

    @property
    def snapshot(self) -> str:
        """The snapshot to revert to: one of a running machine, called clean, else current, else the last; empty: there is none."""
        return _best(self.snapshots)


async def discover(uri: str) -> tuple[FoundMachine, ...]:
    """All domains at `uri`, by name. Raises `Unreachable` and `LibvirtNotInstalled`, with the remedy in words."""
    start_event_loop()
    link = Link(uri, Crew("libvirt-discovery"))
    try:
        return await link.run(lambda connection: _domains(connection, uri))
    except Refusal as refusal:
        raise Unreachable(f"{uri} does not tell what it has: {refusal.words}") from refusal
    finally:
        link.close()


def _domains(connection: Any, uri: str) -> tuple[FoundMachine, ...]:
    libvirt = libvirt_module()
    found = []
    for domain in connection.listAllDomains(0):
        try:
            found.append(_machine(domain, uri))
        except libvirt.libvirtError:
            if not is_alive(connection):
                raise
            # It was removed since the list was made, or this user may not look at it.
            continue
    return tuple(sorted(found, key=lambda machine: machine.domain))


def _machine(domain: Any, uri: str) -> FoundMachine:
    shape = parse_domain(domain.XMLDesc(0))
    snapshots = tuple(
        FoundSnapshot(
            name=snapshot.getName(),
            was_running=snapshot_state(snapshot.getXMLDesc(0)) in RUNNING_STATES,
            is_current=bool(snapshot.isCurrent(0)),
        )
        for snapshot in domain.listAllSnapshots(0)
    )
    name = domain.name()
    return FoundMachine(
        domain=name,
        uri=uri,
        power=power(*domain.state(0)),
        platform=_platform(shape),
        arch=ARCHS.get(shape.arch, shape.arch),
        has_agent_channel=shape.has_agent_channel,
        snapshots=snapshots,
        macs=tuple(card.mac for card in shape.cards if card.mac),
        memory_mb=shape.memory_mb,
        vcpus=shape.vcpus,
        warnings=(*_obstacles(name, uri, shape, snapshots), *warnings_of(shape)),
    )


def _obstacles(name: str, uri: str, shape: DomainShape, snapshots: tuple[FoundSnapshot, ...]) -> list[str]:
    obstacles = []
    if not shape.has_agent_channel:
        obstacles.append("It has no channel to a guest agent (<target type='virtio' name='org.qemu.guest_agent.0'/>).")
    if not _best(snapshots):
        obstacles.append(_how_to_keep_it(name, uri, shape, snapshots))
    return obstacles


def _how_to_keep_it(name: str, uri: str, shape: DomainShape, snapshots: tuple[FoundSnapshot, ...]) -> str:
    """What gives it a clean state to return to."""
    machine = MachineSpec(name=name, provider="libvirt", platform="", uri=uri, snapshot="clean")
    then = f"start the guest, then {keeping(machine, 'clean', has_pflash=shape.has_pflash)}."
    if shape.has_pflash:
        return f"It boots by UEFI, and libvirt takes no snapshot of such a guest while it runs: {then}"
    return f"There is no snapshot{' of it running' if snapshots else ''}: {then}"


def _best(snapshots: tuple[FoundSnapshot, ...]) -> str:
    usable = [snapshot for snapshot in snapshots if snapshot.was_running]
    ranked = sorted(usable, key=lambda snapshot: (snapshot.name == "clean", snapshot.is_current))
    return ranked[-1].name if ranked else ""


def _platform(shape: DomainShape) -> str:
    if shape.libosinfo:
        vendor = shape.libosinfo.partition("://")[2].partition("/")[0]
        return PLATFORMS.get(vendor, "linux")
    return next(iter(shape.hints)) if len(shape.hints) == 1 else ""
