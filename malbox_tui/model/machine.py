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
from malbox_tui.model.report import ResultRef
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


class PowerState(StrEnum):
    """Whether a machine runs, as its hypervisor says."""

    RUNNING = "running"
    PAUSED = "paused"
    OFF = "off"
    CRASHED = "crashed"


class Downfall(StrEnum):
    """Why a machine runs no more: its guest switched it off or crashed, somebody switched it off, or the hypervisor's process of it
    died."""

    SHUT_DOWN = "shut_down"
    CRASHED = "crashed"
    SWITCHED_OFF = "switched_off"
    FAILED = "failed"


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a hypervisor says of a machine. None: it doesn't say. `warnings`: what an operator should know, a sentence each."""

    memory_mb: int | None = None
    vcpus: int | None = None
    warnings: tuple[str, ...] = ()


class Picture(msgspec.Struct, frozen=True):
    """A picture of a machine's screen; `mime` is image/png or another type."""

    mime: str
    content: bytes


class Throttle(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine may do in a second at most, each network card and disk by itself. None: any amount."""

    network_kbps: int | None = None
    """Kilobits a second, in each direction; 0: nothing."""
    disk_kib_s: int | None = None
    """KiB a second, read and written together."""


class MachineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine is. `max_failures` reverts in a row may fail before it is quarantined.

    `uri`, `domain` and `snapshot` say where its hypervisor finds it (empty: the provider has no use for them; an empty `domain` is as
    `name`). `channel` is the way to its guest, `address` its guest's in the analysis network. `folder` is where samples are put in the
    guest, `disk_folder` a folder on the disk that its snapshot takes back (empty: as its platform has them); `watch` are folders of
    the guest in which dropped and changed files are looked for (empty: `folder`). `disk_kib_s` and `network_kbps` are as of
    `Throttle`.
    """

    name: str
    provider: str
    platform: str
    arch: str = "x64"
    tags: tuple[str, ...] = ()
    max_failures: int = 3
    uri: str = ""
    domain: str = ""
    snapshot: str = ""
    channel: str = "simulated"
    address: str = ""
    folder: str = ""
    disk_folder: str = ""
    watch: tuple[str, ...] = ()
    disk_kib_s: int | None = None
    network_kbps: int | None = None

    @property
    def domain_name(self) -> str:
        """What its hypervisor calls it."""
        return self.domain or self.name

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


class MachineMoment(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's change of state, for its history."""

    at: float
    state: MachineState
    task_id: int | None = None
    reason: str = ""


class MachineView(msgspec.Struct, frozen=True, kw_only=True):
    """One machine at one moment.

    `since`: when it entered its state. `reason`: why it is quarantined, missing or disabled, or what its latest failure was; else
    empty. `task_id`: the task that holds it. `leaving`: it will be disabled when its task or its revert is done. `history`: its latest
    changes of state, the latest last. `screenshot`: the latest picture of its screen that was kept, taken at `screenshot_at`.
    `spec`: what it is; `facts`: what its hypervisor says of it, None before that was asked.
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
    history: tuple[MachineMoment, ...] = ()
    screenshot: ResultRef | None = None
    screenshot_at: float | None = None
    spec: MachineSpec | None = None
    facts: MachineFacts | None = None
