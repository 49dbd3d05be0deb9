"""Tasks and events that outlive the process: who keeps them, and what is asked of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from malbox_tui.model.events import Event, EventBody
from malbox_tui.model.intake import IntakeHead
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import Identification
from malbox_tui.model.sample import SampleName
from malbox_tui.model.task import ChosenProfile, RequirementClass, RunOptions, Task, TaskState


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
    """A task to add; `name` is None when no new name came with it (a retry), and so is `intake`: its account gets no line then."""

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
    profile: ChosenProfile | None = None
    intake: IntakeHead | None = None


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

    async def check(self) -> None:
        """Raises `StoreError` when it can be seen, without writing, that nothing would be kept: the store was taken away from under the
        engine, or its disk became read-only."""
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
