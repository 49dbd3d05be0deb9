"""Analysis machines: what each is, what it may serve, and the only moves it can make.

1. A machine serves one task at a time: from `leased` until it is given back.
2. Between two tasks it is reverted and has answered: the only way back to `ready` leads through `reverting`, unless it was
   reserved and nothing of a task has touched it.
3. A machine that can't be proven clean is `quarantined` with a reason, and stays visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from malbox_tui.model.errors import IllegalMachineMove
from malbox_tui.model.task import RequirementClass


class MachineState(StrEnum):
    """What a machine is at."""

    READY = "ready"
    LEASED = "leased"
    STARTING = "starting"
    REVERTING = "reverting"
    QUARANTINED = "quarantined"
    DISABLED = "disabled"
    MISSING = "missing"


class MachineTrigger(StrEnum):
    """What makes a machine move."""

    RESERVE = "reserve"
    UNRESERVE = "unreserve"
    START = "start"
    STARTED = "started"
    RELEASE = "release"
    CLEAN = "clean"
    QUARANTINE = "quarantine"
    LOSE = "lose"
    DISABLE = "disable"
    REVERT = "revert"


_S, _T = MachineState, MachineTrigger

MACHINE_MOVES: Mapping[tuple[MachineState, MachineTrigger], MachineState] = MappingProxyType(
    {
        (_S.READY, _T.RESERVE): _S.LEASED,
        (_S.LEASED, _T.UNRESERVE): _S.READY,
        (_S.LEASED, _T.START): _S.STARTING,
        (_S.STARTING, _T.STARTED): _S.LEASED,
        (_S.LEASED, _T.RELEASE): _S.REVERTING,
        (_S.STARTING, _T.RELEASE): _S.REVERTING,
        (_S.REVERTING, _T.CLEAN): _S.READY,
        (_S.REVERTING, _T.QUARANTINE): _S.QUARANTINED,
        (_S.REVERTING, _T.LOSE): _S.MISSING,
        (_S.REVERTING, _T.DISABLE): _S.DISABLED,
        (_S.READY, _T.DISABLE): _S.DISABLED,
        (_S.QUARANTINED, _T.DISABLE): _S.DISABLED,
        (_S.MISSING, _T.DISABLE): _S.DISABLED,
        (_S.READY, _T.REVERT): _S.REVERTING,
        (_S.QUARANTINED, _T.REVERT): _S.REVERTING,
        (_S.MISSING, _T.REVERT): _S.REVERTING,
        (_S.DISABLED, _T.REVERT): _S.REVERTING,
    }
)
"""(state, trigger) → next state. A leased machine is never disabled or reverted under its task: that waits for the release."""

BUSY_STATES = frozenset({MachineState.LEASED, MachineState.STARTING})
"""A task holds the machine."""

OUT_OF_SERVICE = frozenset({MachineState.QUARANTINED, MachineState.MISSING, MachineState.DISABLED})
"""It serves nothing until somebody, or a trial, brings it back."""


def next_machine_state(state: MachineState, trigger: MachineTrigger) -> MachineState:
    """Where `trigger` leads from `state`. Raises `IllegalMachineMove` when the table has no such move."""
    try:
        return MACHINE_MOVES[state, trigger]
    except KeyError:
        raise IllegalMachineMove(state, trigger) from None


class MachineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine is. `max_failures` reverts in a row may fail before it is quarantined."""

    name: str
    provider: str
    platform: str
    arch: str = "x64"
    tags: tuple[str, ...] = ()
    max_failures: int = 3

    def unmet(self, requires: RequirementClass) -> tuple[str, ...]:
        """What of `requires` this machine can never give, in words; empty when it may serve. An x86 task may use an x64 machine."""
        found = []
        if requires.pin is not None and requires.pin != self.name:
            found.append(f"machine {requires.pin}")
        if requires.platform not in (None, self.platform):
            found.append(f"platform {requires.platform}")
        if requires.arch not in (None, self.arch) and (requires.arch, self.arch) != ("x86", "x64"):
            found.append(f"arch {requires.arch}")
        found += [f"tag {tag}" for tag in requires.tags if tag not in self.tags]
        return tuple(found)


class MachineView(msgspec.Struct, frozen=True, kw_only=True):
    """One machine at one moment.

    `since`: when it entered its state. `reason`: why it is quarantined, missing or disabled, or what its latest failure was; else
    empty. `task_id`: the task that holds it. `leaving`: it will be disabled when its task or its revert is done.
    """

    name: str
    provider: str
    platform: str
    arch: str
    tags: tuple[str, ...] = ()
    state: MachineState
    since: float
    reason: str = ""
    task_id: int | None = None
    failures: int = 0
    leaving: bool = False
