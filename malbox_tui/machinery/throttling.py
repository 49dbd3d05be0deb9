"""Bounds of what a running machine reads, writes and sends. Runs in threads, with an open connection."""

from __future__ import annotations

from typing import Any

from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.domain_xml import SHAPEABLE, NetworkCard, parse_domain, with_link_down
from malbox_tui.machinery.domains import find_domain
from malbox_tui.machinery.refusals import CANT, refusal_of
from malbox_tui.model.errors import MachineUnable
from malbox_tui.model.machine import MachineSpec, Throttle


def throttle(connection: Any, machine: MachineSpec, limits: Throttle) -> None:
    """Raises `MachineUnable`, with everything bounded that can be, for what can't."""
    libvirt = libvirt_module()
    domain = find_domain(connection, machine)
    shape = parse_domain(domain.XMLDesc(0))
    live = libvirt.VIR_DOMAIN_AFFECT_LIVE
    problems: list[str] = []
    if limits.disk_kib_s is not None:
        for disk in shape.disks:
            try:
                domain.setBlockIoTune(disk.target, {"total_bytes_sec": limits.disk_kib_s * 1024}, live)
            except libvirt.libvirtError as error:
                problems.append(_why(error, f"its disk {disk.target} can't be slowed down"))
    if limits.network_kbps is not None:
        for card in shape.cards:
            try:
                _slow_down(domain, card, limits.network_kbps, live)
            except libvirt.libvirtError as error:
                what = "slowed down" if limits.network_kbps else "cut off"
                kinds = "" if card.kind in SHAPEABLE else f" (of type '{card.kind}'; 'network' and 'bridge' can be)"
                problems.append(_why(error, f"its network card {card.mac}{kinds} can't be {what}"))
    if problems:
        raise MachineUnable(machine.name, "; ".join(problems))


def _slow_down(domain: Any, card: NetworkCard, kbps: int, live: int) -> None:
    if kbps == 0:
        domain.updateDeviceFlags(with_link_down(card), live)
        return
    kilobytes_s = max(1, round(kbps / 8))
    domain.setInterfaceParameters(card.mac, {"inbound.average": kilobytes_s, "outbound.average": kilobytes_s}, live)


def _why(error: Any, what: str) -> str:
    """Raises the error again unless it says that this hypervisor or machine can't do it."""
    refusal = refusal_of(error)
    if refusal.code not in CANT:
        raise error
    return f"{what}: {refusal.words}"
