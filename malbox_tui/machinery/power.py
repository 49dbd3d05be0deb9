"""Whether a domain runs, why it does no more, and how it is switched off. Runs in threads, with an open connection."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.domains import find_domain
from malbox_tui.machinery.line import is_alive
from malbox_tui.machinery.refusals import Code, refusal_of
from malbox_tui.model.errors import MachineError
from malbox_tui.model.machine import Downfall, MachineSpec, PowerState


class State(IntEnum):
    """virDomainState."""

    NONE = 0
    RUNNING = 1
    BLOCKED = 2
    PAUSED = 3
    SHUTTING_DOWN = 4
    OFF = 5
    CRASHED = 6
    SUSPENDED = 7


class OffReason(IntEnum):
    """virDomainShutoffReason."""

    UNKNOWN = 0
    SHUT_DOWN = 1
    DESTROYED = 2
    CRASHED = 3
    MIGRATED = 4
    SAVED = 5
    FAILED = 6
    FROM_SNAPSHOT = 7
    DAEMON = 8


PAUSED_CRASHED = 10
"""virDomainPausedReason of a guest that crashed and is kept."""

POWER: Mapping[int, PowerState] = MappingProxyType(
    {
        State.NONE: PowerState.RUNNING,
        State.RUNNING: PowerState.RUNNING,
        State.BLOCKED: PowerState.RUNNING,
        State.PAUSED: PowerState.PAUSED,
        State.SHUTTING_DOWN: PowerState.RUNNING,
        State.OFF: PowerState.OFF,
        State.CRASHED: PowerState.CRASHED,
        State.SUSPENDED: PowerState.PAUSED,
    }
)

DOWNFALLS: Mapping[int, Downfall] = MappingProxyType(
    {
        OffReason.SHUT_DOWN: Downfall.SHUT_DOWN,
        OffReason.DESTROYED: Downfall.SWITCHED_OFF,
        # libvirt says so when the process of the machine ended without a word; a guest whose system crashed is told by its event.
        OffReason.CRASHED: Downfall.FAILED,
        OffReason.MIGRATED: Downfall.SWITCHED_OFF,
        OffReason.SAVED: Downfall.SWITCHED_OFF,
        OffReason.FAILED: Downfall.FAILED,
        OffReason.FROM_SNAPSHOT: Downfall.SWITCHED_OFF,
        OffReason.DAEMON: Downfall.FAILED,
        OffReason.UNKNOWN: Downfall.SWITCHED_OFF,
    }
)


class Event(IntEnum):
    """virDomainEventType, those after which a domain runs no more."""

    UNDEFINED = 1
    STOPPED = 5
    CRASHED = 8


EVENT_DOWNFALLS: Mapping[int, Downfall] = MappingProxyType(
    {
        0: Downfall.SHUT_DOWN,
        1: Downfall.SWITCHED_OFF,
        2: Downfall.CRASHED,
        3: Downfall.SWITCHED_OFF,
        4: Downfall.SWITCHED_OFF,
        5: Downfall.FAILED,
        6: Downfall.SWITCHED_OFF,
    }
)
"""virDomainEventStoppedDetailType → why it stopped."""


def power_of(connection: Any, machine: MachineSpec) -> PowerState:
    """Raises `MachineMissing`."""
    return power(*find_domain(connection, machine).state(0))


def downfall_of(connection: Any, machine: MachineSpec) -> Downfall | None:
    """Why it doesn't run; None when it does. Raises `MachineMissing`."""
    state, reason = find_domain(connection, machine).state(0)
    match power(state, reason):
        case PowerState.CRASHED:
            return Downfall.CRASHED
        case PowerState.OFF:
            return DOWNFALLS.get(reason, Downfall.SWITCHED_OFF)
        case _:
            return None


def switch_off_gently(connection: Any, machine: MachineSpec) -> bool:
    """Ask the domain's process to end; whether the domain is off now. Raises `MachineMissing`."""
    libvirt = libvirt_module()
    domain = find_domain(connection, machine)
    if not domain.isActive():
        return True
    try:
        domain.destroyFlags(libvirt.VIR_DOMAIN_DESTROY_GRACEFUL)
    except libvirt.libvirtError:
        if not is_alive(connection):
            raise
    return not domain.isActive()


def switch_off(connection: Any, machine: MachineSpec) -> None:
    """End the domain's process. Raises `MachineMissing`, and `MachineError` when it runs still."""
    libvirt = libvirt_module()
    domain = find_domain(connection, machine)
    if not domain.isActive():
        return
    try:
        domain.destroyFlags(0)
    except libvirt.libvirtError as error:
        refusal = refusal_of(error, lost=not is_alive(connection))
        if refusal.lost:
            raise
        if refusal.code == Code.OPERATION_INVALID and not domain.isActive():
            return
        raise MachineError(machine.name, f"it could not be switched off: {refusal.words}") from None
    if domain.isActive():
        raise MachineError(machine.name, "it was switched off and runs still: end its process on its host")


def power(state: int, reason: int) -> PowerState:
    if (state, reason) == (State.PAUSED, PAUSED_CRASHED):
        return PowerState.CRASHED
    return POWER.get(state, PowerState.RUNNING)
