"""A domain back at its snapshot, running. Runs in threads, with an open connection."""

from __future__ import annotations

from typing import Any

from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.domains import find_domain, find_snapshot
from malbox_tui.machinery.line import is_alive
from malbox_tui.machinery.power import State, switch_off
from malbox_tui.machinery.refusals import Code, refusal_of
from malbox_tui.model.errors import MachineError, MachineMissing
from malbox_tui.model.machine import MachineSpec


def revert(connection: Any, machine: MachineSpec) -> None:
    """Raises `MachineMissing`, `MachineMisconfigured`, `MachineError`; the domain is then at whatever libvirt left it at."""
    libvirt = libvirt_module()
    domain = find_domain(connection, machine)
    snapshot = find_snapshot(domain, machine)
    running = libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_RUNNING
    try:
        try:
            domain.revertToSnapshot(snapshot.handle, running)
        except libvirt.libvirtError as error:
            if error.get_error_code() != Code.REVERT_RISKY:
                raise
            # What runs now differs too much from the snapshot to be changed in place; nothing of it is wanted.
            switch_off(connection, machine)
            domain.revertToSnapshot(snapshot.handle, running | libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_FORCE)
    except libvirt.libvirtError as error:
        if not is_alive(connection):
            raise
        refusal = refusal_of(error)
        if refusal.code in (Code.NO_SNAPSHOT, Code.NO_DOMAIN):
            raise MachineMissing(machine.name, f"its snapshot {snapshot.name!r} is gone: {refusal.words}") from None
        raise MachineError(machine.name, f"it could not be reverted to {snapshot.name!r}: {refusal.words}") from None
    _see_it_run(domain, machine, snapshot.name)


def _see_it_run(domain: Any, machine: MachineSpec, snapshot: str) -> None:
    state = domain.state(0)[0]
    if state == State.PAUSED:
        domain.resume()
        state = domain.state(0)[0]
    if state not in (State.RUNNING, State.BLOCKED, State.NONE):
        raise MachineError(machine.name, f"it was reverted to {snapshot!r} and does not run (state {state})")
