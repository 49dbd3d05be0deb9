"""Machines that samples run in, the guests inside, and who moves and talks to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from malbox_tui.model.machine import Downfall, MachineFacts, MachineSpec, Picture, PowerState, Throttle


class MachineCapture(Protocol):
    """A recording of a machine's network traffic."""

    async def end(self) -> None:
        """Stop it; the file is whole afterwards, also when the machine has gone down before. A second call does nothing."""
        ...


class MachineProvider(Protocol):
    """One hypervisor's machines. Calls that change a machine come one at a time; all others at any time.

    No call may block the loop. Every call may take for ever: whoever calls sets the limit, by cancelling it. A cancelled call may
    still have its effect. What a hypervisor can't do for this machine raises `MachineUnable`, which is no fault of the machine.
    """

    async def open(self) -> None:
        """Get ready to be asked. A hypervisor that can't be reached is not an error here, but at each call for a machine."""
        ...

    async def check(self, machine: MachineSpec) -> MachineFacts:
        """What the machine is, if it exists and can be reverted. Raises `MachineMissing`, `MachineMisconfigured`, `MachineError`."""
        ...

    async def revert(self, machine: MachineSpec) -> None:
        """Bring the machine, whatever it is at, to its clean snapshot, running. Raises `MachineMissing`, `MachineError`."""
        ...

    async def stop(self, machine: MachineSpec) -> None:
        """Switch the machine off, at once and whatever the guest says; one that is off stays so. Raises `MachineError`."""
        ...

    async def power(self, machine: MachineSpec) -> PowerState:
        """Whether it runs. Raises `MachineError`."""
        ...

    async def until_down(self, machine: MachineSpec) -> Downfall:
        """Returns when the machine runs no more, and why; at once when it doesn't run. A hypervisor that can't be asked for a while is
        waited for. Raises `MachineError` when the hypervisor knows it no more."""
        ...

    async def screenshot(self, machine: MachineSpec) -> Picture:
        """What is on its screen. Raises `MachineUnable`, `MachineError`."""
        ...

    async def dump_memory(self, machine: MachineSpec, target: Path) -> None:
        """Write all of its memory into the new file `target`, as an ELF core where the hypervisor can. The machine stands meanwhile.
        No file is left when it fails. Raises `MachineUnable`, `MachineError`."""
        ...

    async def capture(self, machine: MachineSpec, target: Path) -> MachineCapture:
        """Record its network traffic from now on into the new file `target` (pcap). Raises `MachineUnable`, `MachineError`."""
        ...

    async def throttle(self, machine: MachineSpec, limits: Throttle) -> None:
        """Bound what the running machine may read, write and send from now on, until it is reverted. Raises `MachineUnable`,
        `MachineError`."""
        ...

    async def close(self) -> None:
        """Let go of the hypervisor. A second call does nothing."""
        ...


class GuestEnd(StrEnum):
    """How a program in a guest came to its end."""

    EXITED = "exited"
    KILLED = "killed"
    UNKNOWN = "unknown"
    POWERED_OFF = "powered_off"
    REBOOTED = "rebooted"


@dataclass(frozen=True, slots=True)
class GuestExit:
    """How a program in the guest ended, and the first part of what it printed.

    `code` is the exit status of one that exited, or the signal of one that was killed; None for the other ends: it ended and nobody
    knows how, or the guest went down or started anew with it (a sample that switches its machine off is a normal end).
    """

    code: int | None
    output: bytes = b""
    end: GuestEnd = GuestEnd.EXITED
    is_whole: bool = True
    """It printed no more than `output`."""


class GuestProgram(Protocol):
    """A program that was started in a guest."""

    @property
    def pid(self) -> int:
        """Its process number there."""
        ...

    async def wait(self, max_output_bytes: int) -> GuestExit:
        """Returns when it has ended, or its guest went down or started anew. Cancelled: it runs on, and may be waited for again.
        Raises `GuestUnreachable`."""
        ...

    async def kill(self) -> None:
        """End it, and what it started as far as that is known. One that has ended is left alone. Raises `GuestUnreachable`."""
        ...

    async def output(self, max_bytes: int) -> bytes:
        """The first part of what it has printed so far. Raises `GuestUnreachable`."""
        ...


@dataclass(frozen=True, slots=True)
class GuestFile:
    """A regular file in a guest. `modified` is in seconds since the epoch, by the guest's clock."""

    path: str
    size_bytes: int
    modified: float


@dataclass(frozen=True, slots=True)
class GuestProcess:
    """A process in a guest, as the guest tells it. `parent` None: not known."""

    pid: int
    parent: int | None
    name: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class GuestView:
    """What there is in a guest at one time: the files of folders, by folder, and what runs."""

    files: Mapping[str, Sequence[GuestFile]]
    processes: Sequence[GuestProcess]


@dataclass(frozen=True, slots=True)
class GuestMark:
    """Traces that were left in a guest: a file on its disk and a process, which a revert takes away."""

    file: str
    word: str
    """What the process has in its command line, and nothing else has."""


class GuestSession(Protocol):
    """A conversation with the guest of one running machine. The guest is hostile: all reads are bounded, in size and in time, and what
    it tells may be a lie. Calls may come at the same time; each may raise `GuestUnreachable`, when the guest answers no more, and
    `GuestRefused`, when it says that it can't do this."""

    @property
    def folder(self) -> str:
        """Where `push` puts things: a folder of the guest."""
        ...

    async def ping(self) -> None:
        """Returns if the guest answers."""
        ...

    async def push(self, source: Path, name: str, *, executable: bool = False) -> str:
        """Copy a file into the guest's `folder` under the plain name `name`, replacing what is there, or, when that can't be had, under
        another that ends with it; returns its path there. `executable`: from the next `start` of this conversation on it may be run."""
        ...

    async def start(self, argv: Sequence[str]) -> GuestProgram:
        """Start a program of the guest, `argv[0]` by its path; no shell reads the rest. It works in `folder`."""
        ...

    async def pull(self, path: str, write: Callable[[bytes], None], max_bytes: int) -> bool:
        """Hand the first `max_bytes` of a guest's file to `write`, piece by piece; whether that was all of it."""
        ...

    async def list(self, folder: str, limit: int) -> Sequence[GuestFile]:
        """At most `limit` of the regular files in a folder of the guest, at any depth, links not followed; none when there is no
        such folder."""
        ...

    async def processes(self) -> Sequence[GuestProcess]:
        """What runs in the guest, at most 4096."""
        ...

    async def look(self, folders: Sequence[str], limit: int) -> GuestView:
        """What `list` tells of each of `folders`, and `processes`, in less time than one after the other takes."""
        ...

    async def set_clock(self, at: float) -> None:
        """Give the guest the time `at`, in seconds since the epoch: after a revert it has that of its snapshot."""
        ...

    async def mark(self) -> GuestMark:
        """Leave traces."""
        ...

    async def traces(self, mark: GuestMark) -> Sequence[str]:
        """Which of the traces are there still, in words; empty: none is."""
        ...

    async def close(self) -> None:
        """End the conversation. A second call does nothing, and neither does one after the guest is gone."""
        ...


class GuestChannel(Protocol):
    """A way to talk to guests."""

    async def connect(self, machine: MachineSpec) -> GuestSession:
        """Returns when the guest answers; may take for ever when it doesn't. Raises `GuestUnreachable`."""
        ...


class AgentLine(Protocol):
    """A hypervisor's way to the agent in a guest: requests and replies of the QEMU guest agent, which are JSON texts."""

    async def ask(self, machine: MachineSpec, request: str, limit_s: float) -> str:
        """The reply to a request. Raises `GuestRefused` with the agent's own words when it can't do it, `GuestUnreachable` when it
        doesn't answer within about `limit_s`, isn't there or can't be understood any more, and `GuestLineLost` when nobody knows
        whether it got the request."""
        ...


@dataclass(frozen=True, slots=True)
class GuestPlugin:
    """A program that runs in guests beside samples: started before the sample, ended after it.

    `program` lies on this host. `platforms`: the guests it is for, None: all. What it leaves in the folder that its only argument
    names is its results, at most `max_results` of `max_result_bytes` each.
    """

    name: str
    version: str
    program: Path
    platforms: frozenset[str] | None = None
    max_results: int = 256
    max_result_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Machinery:
    """The machines of one configuration, and what moves them: a provider for each `MachineSpec.provider`, a way to guests for each
    `MachineSpec.channel`. `faults`: why a machine, by name, can't be used as it is configured, in a sentence with the remedy."""

    machines: Sequence[MachineSpec] = ()
    providers: Mapping[str, MachineProvider] = field(default_factory=dict)
    channels: Mapping[str, GuestChannel] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
