"""A machine's domain and snapshot, found by name and by nothing else. Runs in threads, with an open connection."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Any

from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.domain_xml import parse_domain, snapshot_state
from malbox_tui.machinery.refusals import Code
from malbox_tui.model.errors import MachineMisconfigured, MachineMissing
from malbox_tui.model.machine import MachineSpec

RUNNING_STATES = frozenset({"running", "paused"})
"""What a domain was at when a snapshot of it was taken that it runs from again."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A snapshot as libvirt has it, with its XML."""

    handle: Any
    name: str
    xml: str


def virsh(machine: MachineSpec) -> str:
    """How libvirt's own command is called for the machine's hypervisor."""
    return f"virsh -c {quote(machine.uri)}"


def keeping(machine: MachineSpec, name: str, *, has_pflash: bool) -> str:
    """What keeps the state that its guest is in, as `name`. libvirt takes no snapshot of a running one with pflash (UEFI)."""
    domain = quote(machine.domain_name)
    if has_pflash:
        return f'`{virsh(machine)} save {domain} FILE`, and write snapshot = "save:FILE" (FILE: a new one, by its whole path)'
    written = "" if machine.snapshot == name else f', and write snapshot = "{name}"'
    return f"`{virsh(machine)} snapshot-create-as {domain} {quote(name)}`{written}"


def find_domain(connection: Any, machine: MachineSpec) -> Any:
    """Raises `MachineMissing`."""
    libvirt = libvirt_module()
    try:
        return connection.lookupByName(machine.domain_name)
    except libvirt.libvirtError as error:
        if error.get_error_code() != Code.NO_DOMAIN:
            raise
        raise MachineMissing(
            machine.name,
            f"{machine.uri} has no domain {machine.domain_name!r}; `{virsh(machine)} list --all` shows those there are",
        ) from None


def find_snapshot(domain: Any, machine: MachineSpec) -> Snapshot:
    """The one that is configured; none configured: the domain's current one. Raises `MachineMissing`, and `MachineMisconfigured` for
    one of a machine that was off."""
    handle = _named(domain, machine) if machine.snapshot else _current(domain, machine)
    snapshot = Snapshot(handle, handle.getName(), handle.getXMLDesc(0))
    state = snapshot_state(snapshot.xml)
    if state not in RUNNING_STATES:
        raise MachineMisconfigured(
            machine.name,
            f"its snapshot {snapshot.name!r} {_flaw(state)}. Delete it, start the guest, then {_kept(domain, machine, snapshot.name)}",
        )
    return snapshot


def _flaw(state: str) -> str:
    return "was taken while it was off" if state == "shutoff" else f"holds no running guest ({state or 'no state'})"


def _named(domain: Any, machine: MachineSpec) -> Any:
    libvirt = libvirt_module()
    try:
        return domain.snapshotLookupByName(machine.snapshot, 0)
    except libvirt.libvirtError as error:
        if error.get_error_code() != Code.NO_SNAPSHOT:
            raise
    there = sorted(domain.snapshotListNames(0))
    known = f"it has {', '.join(map(repr, there[:5]))}" if there else "it has none"
    raise MachineMissing(
        machine.name,
        f"it has no snapshot {machine.snapshot!r} ({known}): start the guest, then {_kept(domain, machine, machine.snapshot)}",
    )


def _current(domain: Any, machine: MachineSpec) -> Any:
    libvirt = libvirt_module()
    try:
        return domain.snapshotCurrent(0)
    except libvirt.libvirtError as error:
        if error.get_error_code() != Code.NO_SNAPSHOT:
            raise
    raise MachineMisconfigured(
        machine.name,
        f"no snapshot is configured and it has no current one: start the guest, then {_kept(domain, machine, 'clean')}",
    )


def _kept(domain: Any, machine: MachineSpec, name: str) -> str:
    return keeping(machine, name, has_pflash=parse_domain(domain.XMLDesc(0)).has_pflash)
