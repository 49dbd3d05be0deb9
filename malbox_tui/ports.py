"""What the engine needs of the world, and what the world may ask of the engine. Each port is a contract; each adapter passes
its contract suite (`tests/contracts/`). They stand in one long file, so that all that crosses a boundary is read in one place.

Every call may raise `MalboxError`s; which, is said at the call. Cancelling a call leaves what is said there, else nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.archive import ArchiveAccount
from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.events import Event, EventBody, Gap, Position
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.machine import Downfall, MachineFacts, MachineSpec, Picture, PowerState, Throttle
from malbox_tui.model.overview import Overview
from malbox_tui.model.plan import Plan
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import Identification, PluginRun, ResultRef
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Account, Offer, Receipt, Refusal, SubmissionOptions
from malbox_tui.model.task import RequirementClass, RunOptions, Task, TaskState


class Clock(Protocol):
    """Wall time."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        ...


# --- the store -----------------------------------------------------------------------------------------------------------------


class StoreIdentity(msgspec.Struct, frozen=True):
    """Who a store is. `epoch` is the number of this opening, `last_seq` the last event's number, `counts` tasks by state."""

    engine_id: str
    epoch: int
    last_seq: int
    counts: dict[TaskState, int]


class PendingEntry(msgspec.Struct, frozen=True):
    """What the queue holds of a pending task."""

    task_id: int
    priority: int
    requires: RequirementClass


class NewTask(msgspec.Struct, frozen=True):
    """A task to add; `name` is None when no new name came with it (a retry)."""

    sha256: str
    size_bytes: int
    name: SampleName | None
    at: float
    priority: int
    timeout_s: float
    requires: RequirementClass
    again: bool = False
    retry_of: int | None = None
    enforce_timeout: bool = False
    run: RunOptions = RunOptions()


class Added(msgspec.Struct, frozen=True):
    """What became of a `NewTask`: `created` is false when the content's `task` was completed before, or still has to end."""

    task: Task
    created: bool


class ClaimRequest(msgspec.Struct, frozen=True):
    """One worker's wish to own one pending task until `lease_until`; `token` fences the attempt and is never used twice.

    `machine` is reserved for it already; None for a host-only task.
    """

    task_id: int
    worker: str
    token: str
    at: float
    lease_until: float
    machine: str | None = None


class Change(msgspec.Struct, frozen=True):
    """One move of one task: from the value the caller holds to the next, with the news of it.

    It is made only if the stored task has the same state and token as `before`.
    """

    before: Task
    after: Task
    news: EventBody
    at: float


class Store(Protocol):
    """Tasks, samples and events, durable. All writes of one store come from one engine.

    - *Stored first, said second*: `on_commit` is called on the loop's thread, after the commit and before the awaiting caller goes on,
      with the events of one commit in order.
    - Awaiting a write returns after the commit; a cancelled wait doesn't undo a write that was handed over.
    - Writes of one task are applied in the order of the calls. Reads see everything that was committed before the call.
    - A failed commit raises `StoreError` (`StoreFull` when the disk is) in each of its writes and keeps nothing of them.
    """

    async def open(self, on_commit: Callable[[Sequence[Event]], None]) -> StoreIdentity:
        """Make the store usable, migrating it if it is older. Begins a new epoch. Raises `StoreTooNew`, `StoreError`."""
        ...

    async def close(self) -> None:
        """Write what is waiting and let go of everything. A second call does nothing."""
        ...

    async def add(self, new: NewTask) -> Added:
        """Add the sample (or the name to it) and its task, with `TaskCreated`.

        Unless `again` or `retry_of` is set, content with a task that is pending or owned joins that one, and content with a completed
        task (the latest) is a duplicate of it: no task is made, the name is kept. With `again`, only a pending or owned task is joined.
        """
        ...

    async def claim(self, request: ClaimRequest) -> Task | None:
        """The task, owned by the requester, with `TaskStarting`; None if it is no longer pending (the losing claimer)."""
        ...

    def write(self, change: Change) -> Awaitable[None]:
        """Hand a change over, in order; await the answer to know it durable.

        The answer raises `LeaseLost` (if `before` was owned) or `StaleTask` when the stored task was no longer as `before`; nothing
        of that change is then kept. An answer nobody awaits is not an error; what it would have raised is logged. A change never
        shortens a lease that was renewed after `before` was read. Raises ValueError at once when it would alter `id`, `sha256`,
        `retry_of` or `created_at`.
        """
        ...

    def note(self, at: float, news: EventBody) -> Awaitable[None]:
        """Hand over news that belongs to no task's move; it is stored and told in order with the changes.

        Await the answer to know it durable. An answer nobody awaits is not an error; what it would have raised is logged.
        """
        ...

    async def renew(self, tokens: Sequence[str], lease_until: float) -> frozenset[str]:
        """Extend the leases of these attempts; none is shortened. Returns the tokens that own nothing any more."""
        ...

    async def identify(self, sha256: str, identification: Identification) -> None:
        """Keep what kind of content a sample is; nothing happens when there is no such sample."""
        ...

    async def pending(self) -> Sequence[PendingEntry]:
        """All pending tasks, ids and class only, in no order."""
        ...

    async def owned(self) -> Sequence[Task]:
        """All tasks that an attempt owns: at start-up, those that the end of the last epoch interrupted."""
        ...

    async def tasks(self, query: TaskQuery, clock: float) -> TaskPage:
        """The window of tasks that `query` asks for."""
        ...

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """At most `limit` stored events with a `seq` above `after`, in order."""
        ...


class ActionBook(Protocol):
    """The log of actions: what a store keeps of each `ActionTaken` that `Store.note` gives it, in the same commit, for good."""

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """At most `limit` records with a number below `before` (None: the latest of all), the latest first. Raises `StoreError`."""
        ...


# --- samples and results ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredContent:
    """A content that the quarantine holds durably."""

    sha256: str
    size_bytes: int


class Quarantine(Protocol):
    """Where samples are kept: by content, neutered at rest, never executable, readable by the owner alone."""

    async def open(self) -> None:
        """Make it usable; leftovers of interrupted calls are removed."""
        ...

    async def store(self, content: AsyncIterator[bytes], max_bytes: int) -> StoredContent:
        """Keep a content; durable when this returns. The same content again costs no space.

        Raises `RefusedContent` (`empty`, `too_large`, or whatever `content` raises), `StoreError`, `StoreFull`. Cancelled or
        failed: nothing is kept.
        """
        ...

    async def extract(self, sha256: str, target: Path) -> int:
        """Write the content as it came into the new file `target`, mode 0444; returns its size in bytes.

        The sum is checked on the way. Raises `SampleMissing`, `SampleChanged`, `StoreError`; no file is left then.
        """
        ...

    async def close(self) -> None:
        """Finish what is under way and let go. A second call does nothing."""
        ...


class ResultWriter(Protocol):
    """One result on its way to disk. Either `commit` or `abort` ends it."""

    def write(self, chunk: bytes) -> None:
        """Append; small and buffered, so it may be called on the loop."""
        ...

    def commit(self) -> ResultRef:
        """The result is whole: it appears under its name, atomically. A result of the same name is replaced."""
        ...

    def abort(self) -> None:
        """Forget it."""
        ...


class ResultStore(Protocol):
    """Where results are kept: one folder a task and attempt, one file a result."""

    async def open(self) -> None:
        """Make it usable."""
        ...

    def begin(self, task_id: int, token: str, plugin: str, name: str, format: str) -> ResultWriter:
        """A writer for one result. Raises ValueError when `name` is not a plain file name."""
        ...

    def place_for(self, task_id: int, token: str, plugin: str, name: str) -> Path:
        """Where somebody else may write the new file that `take_in` then makes a result of; its folder is there. Raises ValueError as
        `begin`, `StoreError`."""
        ...

    async def take_in(self, task_id: int, token: str, plugin: str, name: str, max_bytes: int) -> tuple[ResultRef, bool]:
        """Make a result of what was written to `place_for`, at most its first `max_bytes`; and whether that was all. Nothing is left
        there. Raises `StoreError`, also when nothing was written."""
        ...

    async def lay_out(self, reference: ResultRef, target: Path) -> None:
        """Write a result into the new file `target`, mode 0444. Raises `StoreError`; no file is left then."""
        ...

    async def settle(self, task_id: int, token: str) -> None:
        """Make the attempt's results durable, and remove those of the task's other attempts."""
        ...

    async def discard(self, task_id: int, token: str) -> None:
        """Remove the attempt's results."""
        ...

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """At most `max_bytes` of a result. Raises `StoreError` when it is gone."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go. A second call does nothing."""
        ...


# --- plugins ---------------------------------------------------------------------------------------------------------------------


class StopSignal(Protocol):
    """Says once that work is to end, and why; it never takes that back."""

    @property
    def reason(self) -> str | None:
        """Why to stop; None while there is no need to."""
        ...

    async def wait(self) -> str:
        """Returns the reason as soon as there is one."""
        ...


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """One plugin as it takes part in analyses."""

    name: str
    version: str
    description: str
    task_types: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PluginsRead:
    """What a runner has after it read its plugins again: those of the host and those for guests, and what changed, a part of a sentence
    each."""

    plugins: Sequence[PluginInfo]
    guests: Sequence[GuestPlugin] = ()
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginJob:
    """One attempt's work for the plugins: the sample lies in the bench's inbox under `sample_name`.

    `kept_out` maps plugins that don't take part in this task to the reason, a sentence. `timeout_s` is how long the plugins may take
    together; who keeps to it is whoever speaks through the stop signal. `subject` is what is looked at, for a person, when it isn't the
    task's sample but something that was collected of its run; results then lie apart from those on the sample. `identification` is what
    was known of the sample's kind before. `on_wait(True)` is called when nothing is done for it because plugins wait for those of other
    tasks, `on_wait(False)` when that is over.
    """

    task_id: int
    token: str
    sample_name: str
    kept_out: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 300.0
    subject: str = ""
    task_type: str = "static"
    identification: Identification | None = None
    on_wait: Callable[[bool], None] = lambda waits: None


@dataclass(frozen=True, slots=True)
class Findings:
    """What the plugins made of a sample: a run for each, and what kind of content it is, if one of them said so."""

    runs: tuple[PluginRun, ...]
    identification: Identification | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BatchMember:
    """One task of a batch, as its plugins meet it. Its sample lies in the inbox under a name of its own.

    `on_work(True)` is called when a plugin takes the sample up while none worked on it, `on_work(False)` when none does any more; every
    True is followed by a False. `on_found` is called once, as soon as nothing is left to do for this task: with what was found, or
    with the error of the result store that kept it from being kept.
    """

    job: PluginJob
    stop: StopSignal
    on_work: Callable[[bool], None]
    on_found: Callable[[Findings | MalboxError], None]


class PluginBench(Protocol):
    """A place for one task, or one batch of tasks, at a time: a folder that the plugins' processes can read and not write, and those
    processes."""

    @property
    def inbox(self) -> Path:
        """The folder that samples are put into; empty when the bench is handed out."""
        ...

    async def identify(self, sample_name: str) -> Identification | None:
        """What kind of content lies in the inbox under this name, by the plugins whose work that is; None: they don't know. Nothing of
        it is kept. Cancelled: everything is killed at once."""
        ...

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        """Run all plugins on the sample and return what they found.

        A plugin that fails, crashes, floods or lies makes its own run `failed` and harms no other. When `stop` speaks, plugins are
        asked to end; after the grace period their whole process trees are killed; then this returns what there is, the unfinished
        runs as `canceled` (or `timed_out` when the reason is "timeout"). Plugins that are kept out give a `skipped` run each, with the
        reason. Cancelled: everything is killed at once.
        """
        ...

    async def run_batch(self, members: Sequence[BatchMember]) -> None:
        """Run all plugins on the samples of all members; returns when each has been told what was found.

        A plugin that takes batches gets the samples together, any other one gets them one after the other in one process. The stop of
        one member ends its runs as in `run` and leaves the others alone. A plugin that breaks at a batch, or takes longer than half of
        the shortest time its members may take, gets them again one by one, so that one sample spoils no other's result. Cancelled:
        everything is killed at once, and who was not told yet is not told.
        """
        ...


class PluginRunner(Protocol):
    """Runs host plugins in confined processes, one for each plugin and busy bench."""

    async def open(self) -> Sequence[PluginInfo]:
        """Make the plugins ready. Raises `PluginUnavailable`, `ManifestError`, `ConfinementUnavailable`."""
        ...

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        """A bench that nobody else uses, its processes under these limits. Never waits for another bench.

        An idle one that was acquired with the same limits is taken first.
        """
        ...

    async def release(self, bench: PluginBench) -> None:
        """Take a bench back; its inbox is emptied."""
        ...

    async def trim(self, benches: int) -> None:
        """End the processes of idle benches until at most `benches` benches are left, in use or not."""
        ...

    @property
    def isolation(self) -> str:
        """How strongly plugins are confined, in words."""
        ...

    @property
    def plan(self) -> Plan:
        """How the plugins run together, since `open` or the last `reload`."""
        ...

    @property
    def troubles(self) -> Sequence[str]:
        """What an operator has to know of the plugins while it lasts, a sentence each."""
        ...

    async def reload(self) -> PluginsRead:
        """Read all plugins again: benches that are acquired from now on have them as they are. Raises what `open` does; nothing has
        changed then."""
        ...

    def tell(self, news: EventBody) -> None:
        """Pass news on to the plugins that want it; never waits."""
        ...

    async def watch(self) -> None:
        """Look after plugins that have nothing to do, until cancelled."""
        ...

    async def close(self) -> None:
        """End all processes. A second call does nothing."""
        ...


# --- machines --------------------------------------------------------------------------------------------------------------------


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
        """Copy a file into the guest's `folder` under the plain name `name`, replacing what is there; returns its path there."""
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


class MachineBook(Protocol):
    """Keeps machines that were added, edited or removed while the engine ran for the next start, apart from the operator's file."""

    async def save(self, machines: Sequence[MachineSpec]) -> str:
        """Keep all machines as they are now; returns where, for a person. Raises `StoreError`, with nothing changed."""
        ...


class MarkBook(Protocol):
    """Keeps the marks that were left in guests, so that the engine that comes next proves its first reverts, too."""

    async def kept(self, machine: MachineSpec) -> GuestMark | None:
        """The mark that was kept last for this machine, reverted to this snapshot; None: there is none, or it can't be read."""
        ...

    async def keep(self, machine: MachineSpec, mark: GuestMark) -> None:
        """Keep a mark in place of the one before. Raises `StoreError`, with the one before kept."""
        ...


# --- limits ----------------------------------------------------------------------------------------------------------------------


class LimitsStore(Protocol):
    """Keeps min and max of worker groups for the next start, apart from the operator's configuration file."""

    async def save(self, limits: Mapping[str, tuple[int, int]]) -> str:
        """Keep (min, max) by group; returns where, for a person. Raises `StoreError`, with nothing changed."""
        ...


# --- intake ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """Something in an archive: its content in chunks, or why it has none.

    `path` has the names from the outermost archive's member down to this one, any bytes, never to be used as a path of this host. An
    archive that is taken as one file comes as a member under its own path, the outermost one under the empty path.
    """

    path: tuple[bytes, ...]
    size_bytes: int = 0
    content: AsyncIterator[bytes] | None = None
    refusal: Refusal | None = None


class Unpacker(Protocol):
    """Unpacks archives, and those in them, where no hostile byte can do harm."""

    def unpack(
        self, content: AsyncIterator[bytes], name: bytes = b"", passwords: Sequence[str] = ()
    ) -> AsyncGenerator[ArchiveMember | ArchiveAccount, None]:
        """All that is in an archive, as it comes: each member once, and after the members of each archive its account; the outermost
        one's is the last. `name` is only for members that have none; `passwords` are tried before those that are usual.

        Whatever the archive does, this ends so. A member's content stays readable until it was read, closed or forgotten, and nothing
        more is unpacked before the next item is asked for. Raises what `content` raises, before the first item. Cancelled or closed:
        nothing is left.
        """
        ...


# --- doors -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dropped:
    """What a text that was dropped or pasted on a terminal names: paths that exist here, or why there are none, in a sentence."""

    paths: tuple[bytes, ...]
    problem: str = ""


class Intake(Protocol):
    """Finds samples on the client's side."""

    def dropped(self, text: str) -> Dropped:
        """Read a drop or paste as paths, however the terminal spelt them. Undecodable bytes come as surrogates (`surrogateescape`)."""
        ...

    def completions(self, text: str, limit: int) -> list[str]:
        """Paths that begin with `text`, folders with a slash at the end; at most `limit`. Unreadable folders give none."""
        ...

    def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """An offer for each file under `paths` (folders recursively, in byte order of names), and one for each thing that can't be
        a sample, with the reason. Nothing is opened before its offer is asked for; links are not followed."""
        ...


class Client(Protocol):
    """The only door to an engine, wherever it runs. Every call may raise `EngineStopped`."""

    async def do(self, command: Command) -> CommandOutcome:
        """Carry out a command. A refused one is an outcome, not an error."""
        ...

    async def submit(
        self,
        offers: AsyncIterator[Offer],
        options: SubmissionOptions,
        on_receipt: Callable[[Receipt], None] | None = None,
    ) -> Account:
        """Take offers as they come; each receipt is told as soon as it stands, and all are returned at the end."""
        ...

    async def overview(self) -> Overview:
        """The engine at this moment."""
        ...

    async def query(self, query: TaskQuery) -> TaskPage:
        """A window of tasks."""
        ...

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """At most `max_bytes` of a result."""
        ...

    def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        """Events from now on (None), or from a place on; a `Gap` where some were dropped because the reader was slow.

        A place of another engine, or one too old to be served, begins with a `Gap`. Ends when the engine stops.
        """
        ...

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """At most `limit` of what was done, the latest first: those with a number below `before`, or the latest of all (None)."""
        ...


@dataclass(frozen=True, slots=True)
class Away:
    """An engine that can't be reached: since when (seconds since the epoch, this host's clock), why, in words, and in how many seconds
    it is tried again (None: it is being tried)."""

    since: float
    problem: str
    retry_in_s: float | None = None


class Attachment(Protocol):
    """What a console knows of its way to an engine that runs elsewhere."""

    @property
    def place(self) -> str:
        """Who is attached where: `ana@sbx-01`."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether this console may only look."""
        ...

    @property
    def away(self) -> Away | None:
        """None while there is a connection."""
        ...

    @property
    def contacts(self) -> int:
        """How often a connection was made: a higher number than before means that news may have been missed."""
        ...

    def hurry(self) -> None:
        """Try to connect at once, if that is waited with."""
        ...
