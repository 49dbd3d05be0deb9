"""A domain back at its snapshot, running. Runs in threads, with an open connection.

libvirt holds an agent's line for broken when a process of QEMU died while its agent had a request unanswered, and forgets that only
with the next end of the domain: until then it asks the guest nothing, whatever state that is in. So a machine that comes back with a
broken line is switched off and brought back once more.
"""

from __future__ import annotations

from typing import Any

from malbox_tui.machinery.agent import is_line_broken
from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.domains import find_domain, find_snapshot
from malbox_tui.machinery.line import is_alive
from malbox_tui.machinery.power import State, switch_off
from malbox_tui.machinery.refusals import CANT, Code, refusal_of
from malbox_tui.machinery.saved_image import image_xml, is_saved_image, revert_to_image
from malbox_tui.model.errors import MachineError, MachineMissing
from malbox_tui.model.machine import MachineSpec

USE_AN_IMAGE = 'save it by `virsh save` instead, and write snapshot = "save:/path/of/the/image"'


def clean_xml(connection: Any, machine: MachineSpec) -> str:
    """The XML of what `revert` brings the machine to. Raises `MachineMissing`, `MachineMisconfigured`."""
    domain = find_domain(connection, machine)
    return image_xml(connection, machine) if is_saved_image(machine) else find_snapshot(domain, machine).xml


def revert(connection: Any, machine: MachineSpec) -> None:
    """Raises `MachineMissing`, `MachineMisconfigured`, `MachineError`; the domain is then at whatever libvirt left it at."""
    _bring_back(connection, machine)
    if machine.channel == "qga" and is_line_broken(find_domain(connection, machine)):
        switch_off(connection, machine)
        _bring_back(connection, machine)


def _bring_back(connection: Any, machine: MachineSpec) -> None:
    libvirt = libvirt_module()
    domain = find_domain(connection, machine)
    if is_saved_image(machine):
        revert_to_image(connection, machine)
        _see_it_run(domain, machine, machine.snapshot)
        return
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
        remedy = f"; {USE_AN_IMAGE}" if refusal.code in CANT else ""
        raise MachineError(machine.name, f"it could not be reverted to {snapshot.name!r}: {refusal.words}{remedy}") from None
    _see_it_run(domain, machine, snapshot.name)


def _see_it_run(domain: Any, machine: MachineSpec, snapshot: str) -> None:
    state = domain.state(0)[0]
    if state == State.PAUSED:
        domain.resume()
        state = domain.state(0)[0]
    if state not in (State.RUNNING, State.BLOCKED, State.NONE):
        raise MachineError(machine.name, f"it was reverted to {snapshot!r} and does not run (state {state})")
