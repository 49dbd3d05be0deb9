"""The store without a disk: for the simulation, the demo and tests. It commits in a later step of the loop and never leaves its
thread, so it runs under a turned clock. What it holds outlives `close`, as a disk would: `open` begins the next epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.errors import SampleInUse, StoreError
from malbox_tui.model.events import ActionTaken, Event, EventBody, Position, ResultsRemoved, SampleMarked
from malbox_tui.model.intake import KEPT_INTAKES, KEPT_LINES, Fate, IntakeEntry, IntakeLine, IntakePage, IntakeView, LineQuery
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.report import Identification
from malbox_tui.model.sample import Sample
from malbox_tui.model.task import Task, TaskState
from malbox_tui.ports import Added, Change, ClaimRequest, NewTask, PendingEntry, Removal, StoreIdentity
from malbox_tui.store import rules
from malbox_tui.store.answers import Answer
from malbox_tui.store.requests import (
    Adding,
    Changing,
    Claiming,
    Closing,
    Entering,
    Identifying,
    Noting,
    Removing,
    Renewing,
    Request,
)


class MemoryStore:
    """A `Store`, its `ActionBook` and its `IntakeBook` in memory.

    `engine_id` is given, so that a simulation is the same at every run."""

    def __init__(self, engine_id: str = "memory") -> None:
        self._engine_id = engine_id
        self._epoch = 0
        self._tasks: dict[int, Task] = {}
        self._samples: dict[str, Sample] = {}
        self._events: list[Event] = []
        self._actions: list[ActionRecord] = []
        self._intakes: dict[str, IntakeView] = {}
        """By key, in the order of their numbers."""
        self._lines: list[tuple[int, IntakeLine]] = []
        """Each with the number of its intake, in the order of their own."""
        self._task_ids_of: dict[str, list[int]] = {}
        self._task_id_of_token: dict[str, int] = {}
        self._last_task_id = 0
        self._removals = 0
        self.removals: dict[int, Removal] = {}
        """Those that are open, by number."""
        self.without_results: dict[int, float] = {}
        """Ids of the tasks whose results were removed."""
        self._waiting: list[Request] = []
        self._on_commit: Callable[[Sequence[Event]], None] | None = None

    # --- the port ---

    async def open(self, on_commit: Callable[[Sequence[Event]], None]) -> StoreIdentity:
        """As `Store.open`. Opened again without `close`, it forgets what was not committed, as a crash would."""
        self._waiting.clear()
        self._epoch += 1
        self._on_commit = on_commit
        counts = dict.fromkeys(TaskState, 0)
        for task in self._tasks.values():
            counts[task.state] += 1
        return StoreIdentity(self._engine_id, self._epoch, len(self._events), counts)

    async def close(self) -> None:
        """As `Store.close`."""
        self._commit(self._epoch)
        self._on_commit = None

    async def add(self, new: NewTask) -> Added:
        """As `Store.add`."""
        request = Adding(new, Answer("a task for sample %s", new.sha256))
        self.hand_over(request)
        return await request.answer

    async def claim(self, request: ClaimRequest) -> Task | None:
        """As `Store.claim`."""
        claiming = Claiming(request, Answer("the claim of task %d", request.task_id))
        self.hand_over(claiming)
        return await claiming.answer

    def write(self, change: Change) -> Awaitable[None]:
        """As `Store.write`."""
        rules.check_change(change)
        request = Changing(change, Answer("task %d as %s", change.before.id, change.after.state))
        self.hand_over(request)
        return request.answer

    def note(self, at: float, news: EventBody) -> Awaitable[None]:
        """As `Store.note`."""
        request = Noting(at, news, Answer("the event %s", type(news).__name__))
        self.hand_over(request)
        return request.answer

    async def renew(self, tokens: Sequence[str], lease_until: float) -> frozenset[str]:
        """As `Store.renew`."""
        request = Renewing(tuple(tokens), lease_until, Answer("a renewal of leases"))
        self.hand_over(request)
        return await request.answer

    async def check(self) -> None:
        """As `Store.check`."""

    async def identify(self, sha256: str, identification: Identification) -> None:
        """As `Store.identify`."""
        request = Identifying(sha256, identification, Answer("the kind of sample %s", sha256))
        self.hand_over(request)
        await request.answer

    async def pending(self) -> Sequence[PendingEntry]:
        """As `Store.pending`."""
        self._check_open()
        pending = (task for task in self._tasks.values() if task.state is TaskState.PENDING)
        return [PendingEntry(task.id, task.priority, task.requires) for task in pending]

    async def owned(self) -> Sequence[Task]:
        """As `Store.owned`."""
        self._check_open()
        return [task for task in self._tasks.values() if task.state.is_owned]

    async def tasks(self, query: TaskQuery, clock: float) -> TaskPage:
        """As `Store.tasks`."""
        self._check_open()
        found = sorted((task for task in self._tasks.values() if self._matches(task, query.where)), key=_ORDERS[query.sort])
        limit = max(0, min(query.limit, MAX_ROWS))
        places = [place for place, task in enumerate(found) if task.id == query.around]
        start = max(0, places[0] - limit // 2) if places else max(0, query.offset)
        window = found[start : start + limit]
        records = tuple(
            TaskRecord(task, self._samples[task.sha256], results_removed_at=self.without_results.get(task.id)) for task in window
        )
        return TaskPage(rows=records, total=len(found), offset=start, clock=clock)

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """As `Store.events`."""
        self._check_open()
        return self._events[max(0, after) : max(0, after) + max(0, limit)]

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """As `ActionBook.actions`."""
        self._check_open()
        found = [record for record in reversed(self._actions) if before is None or record.number < before]
        return found[: max(0, limit)]

    def enter(self, entry: IntakeEntry) -> Awaitable[None]:
        """As `IntakeBook.enter`."""
        request = Entering(entry, Answer("a line of the intake of %s", entry.head.actor))
        self.hand_over(request)
        return request.answer

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """As `IntakeBook.intakes`."""
        self._check_open()
        found = [view for view in reversed(self._intakes.values()) if before is None or view.number < before]
        return found[: max(0, limit)]

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """As `IntakeBook.intake_lines`."""
        self._check_open()
        intake = next((view for view in self._intakes.values() if view.number == query.intake), None)
        limit = max(0, min(query.limit, MAX_ROWS))
        lines = [line for number, line in self._lines if number == query.intake and line.number > query.after]
        lines = [line for line in lines if query.fates is None or line.fate in query.fates]
        if intake is None:
            return IntakePage(intake=None)
        return IntakePage(intake=intake, lines=tuple(lines[:limit]), more=len(lines) > limit)

    # --- committing ---

    def hand_over(self, request: Request) -> None:
        """Put a request into the next commit; where there will be none, it is answered with an error."""
        if self._on_commit is None:
            request.answer.fail(StoreError("The store is not open."))
            return
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._commit, self._epoch)
        self._waiting.append(request)

    def _commit(self, epoch: int) -> None:
        """Carry out what waits, tell its events, then answer. A step left over from an earlier epoch does nothing."""
        if self._on_commit is None or epoch != self._epoch:
            return
        batch, self._waiting = self._waiting, []
        told = len(self._events)
        answers = [self._safely(request) for request in batch]
        try:
            if len(self._events) > told:
                self._on_commit(self._events[told:])
        finally:
            for answer in answers:
                answer()

    def _safely(self, request: Request) -> Callable[[], None]:
        """Carry one request out; what it raises is its own answer and nobody else's."""
        try:
            return self._carry_out(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the callers of the batch are answered
            return partial(request.answer.fail, StoreError(f"The store could not be used: {error}"))

    def _carry_out(self, request: Request) -> Callable[[], None]:
        match request:
            case Adding():
                return self._add(request)
            case Claiming():
                return self._claim(request)
            case Changing():
                return self._change(request)
            case Renewing():
                return self._renew(request)
            case Noting():
                self._tell(request.at, request.news)
                return partial(request.answer.give, None)
            case Identifying():
                self._identify(request)
                return partial(request.answer.give, None)
            case Removing():
                return self._remove(request)
            case Closing():
                self.removals.pop(request.number, None)
                return partial(request.answer.give, None)
            case Entering():
                self._enter(request.entry)
                return partial(request.answer.give, None)

    def _tell(self, at: float, news: EventBody) -> None:
        number = len(self._events) + 1
        self._events.append(Event(Position(self._engine_id, self._epoch, number), at, news))
        if isinstance(news, ActionTaken):
            self._actions.append(rules.record_of(news, number, at))
        elif isinstance(news, SampleMarked) and (sample := self._samples.get(news.sha256)) is not None:
            notes, tags = rules.marks_of((sample.notes, sample.tags), news, at)
            self._samples[news.sha256] = msgspec.structs.replace(sample, notes=notes, tags=tags)

    def _put(self, task: Task) -> None:
        former = self._tasks.get(task.id)
        if former is not None and former.token is not None:
            del self._task_id_of_token[former.token]
        self._tasks[task.id] = task
        if task.token is not None:
            self._task_id_of_token[task.token] = task.id

    def _add(self, request: Adding) -> Callable[[], None]:
        new = request.new
        if new.retry_of is not None and new.retry_of not in self._tasks:
            return partial(request.answer.fail, StoreError(f"The store could not be used: there is no task {new.retry_of}."))
        sample = self._keep_sample(new)
        standing = rules.task_to_join(
            new, self._latest(new.sha256, live=True), self._latest(new.sha256, live=False), self._latest_of_all(new.sha256)
        )
        if standing is not None:
            return self._added(request, Added(standing, created=False))
        self._last_task_id += 1
        task = rules.created(new, self._last_task_id)
        self._put(task)
        self._task_ids_of.setdefault(new.sha256, []).append(task.id)
        name = new.name or next(iter(sample.names), None)
        self._tell(new.at, rules.news_of_creation(task, name.name if name is not None else b""))
        return self._added(request, Added(task, created=True))

    def _added(self, request: Adding, added: Added) -> Callable[[], None]:
        if (entry := rules.entry_of(request.new, added)) is not None:
            self._enter(entry)
        return partial(request.answer.give, added)

    def _enter(self, entry: IntakeEntry) -> None:
        head, line = entry.head, entry.line
        latest = next(reversed(self._intakes.values()), None)
        number = 1 if latest is None else latest.number + 1
        view = self._intakes.get(head.key) or IntakeView(number=number, head=head, latest_at=line.at)
        counted = _COUNTS[line.fate]
        changes: dict[str, Any] = {counted: getattr(view, counted) + 1, "latest_at": line.at}
        self._intakes[head.key] = msgspec.structs.replace(view, **changes)
        last = self._lines[-1][1].number if self._lines else 0
        self._lines.append((view.number, msgspec.structs.replace(line, number=last + 1)))
        del self._lines[: max(0, len(self._lines) - KEPT_LINES)]
        while len(self._intakes) > KEPT_INTAKES:
            del self._intakes[next(iter(self._intakes))]

    def _keep_sample(self, new: NewTask) -> Sample:
        sample = self._samples.get(new.sha256)
        if sample is None:
            sample = Sample(sha256=new.sha256, size_bytes=new.size_bytes, first_seen_at=new.at)
        if new.name is not None and new.name not in sample.names:
            sample = msgspec.structs.replace(sample, names=(*sample.names, new.name))
        self._samples[new.sha256] = sample
        return sample

    def _latest(self, sha256: str, *, live: bool) -> Task | None:
        """The content's latest task that is pending or owned (`live`), or completed."""
        for task_id in reversed(self._task_ids_of.get(sha256, ())):
            task = self._tasks[task_id]
            if not task.state.is_final if live else task.state is TaskState.COMPLETED:
                return task
        return None

    def _latest_of_all(self, sha256: str) -> Task | None:
        task_ids = self._task_ids_of.get(sha256)
        return self._tasks[task_ids[-1]] if task_ids else None

    def _claim(self, request: Claiming) -> Callable[[], None]:
        claim = request.claim
        task = self._tasks.get(claim.task_id)
        if task is None or task.state is not TaskState.PENDING:
            return partial(request.answer.give, None)
        if claim.token in self._task_id_of_token:
            return partial(request.answer.fail, StoreError(f"The store could not be used: token {claim.token} owns already."))
        owned = rules.claimed_by(task, claim)
        self._put(owned)
        self._tell(claim.at, rules.news_of_claim(owned))
        return partial(request.answer.give, owned)

    def _change(self, request: Changing) -> Callable[[], None]:
        before, after = request.change.before, request.change.after
        stored = self._tasks.get(before.id)
        if stored is None or (stored.state, stored.token) != (before.state, before.token):
            return partial(request.answer.fail, rules.loss(request.change))
        if stored.lease_until is not None and after.lease_until is not None and stored.lease_until > after.lease_until:
            after = msgspec.structs.replace(after, lease_until=stored.lease_until)
        self._put(after)
        self._tell(request.change.at, request.change.news)
        return partial(request.answer.give, None)

    def _renew(self, request: Renewing) -> Callable[[], None]:
        owned = {token for token in request.tokens if token in self._task_id_of_token}
        for token in owned:
            task = self._tasks[self._task_id_of_token[token]]
            until = max(request.lease_until, task.lease_until or 0.0)
            self._tasks[task.id] = msgspec.structs.replace(task, lease_until=until)
        return partial(request.answer.give, frozenset(request.tokens) - owned)

    def _identify(self, request: Identifying) -> None:
        sample = self._samples.get(request.sha256)
        if sample is not None:
            self._samples[request.sha256] = msgspec.structs.replace(sample, identification=request.identification)

    def _remove(self, request: Removing) -> Callable[[], None]:
        if not request.sha256:
            return self._remove_results(request)
        states = {task_id: self._tasks[task_id].state for task_id in self._task_ids_of.get(request.sha256, ())}
        if live := tuple(task_id for task_id, state in states.items() if not state.is_final):
            return partial(request.answer.fail, SampleInUse(request.sha256, live))
        for task_id in states:
            del self._tasks[task_id]
        self._task_ids_of.pop(request.sha256, None)
        if self._samples.pop(request.sha256, None) is None:
            return partial(request.answer.give, None)
        self._tell(request.at, rules.news_of_removal(request.sha256, request.cause, states))
        return self._removed(request, tuple(states))

    def _remove_results(self, request: Removing) -> Callable[[], None]:
        gone = tuple(
            task_id
            for task_id in sorted(set(request.task_ids) - self.without_results.keys())
            if task_id in self._tasks and self._tasks[task_id].state.is_final
        )
        if not gone:
            return partial(request.answer.give, None)
        self.without_results.update(dict.fromkeys(gone, request.at))
        self._tell(request.at, ResultsRemoved(task_ids=gone, cause=request.cause))
        return self._removed(request, gone)

    def _removed(self, request: Removing, task_ids: tuple[int, ...]) -> Callable[[], None]:
        self._removals += 1
        removal = self.removals[self._removals] = Removal(self._removals, request.sha256, task_ids)
        return partial(request.answer.give, removal)

    # --- reading ---

    def all_tasks(self) -> Sequence[Task]:
        """Every task, in the order they came."""
        self._check_open()
        return list(self._tasks.values())

    def _check_open(self) -> None:
        if self._on_commit is None:
            raise StoreError("The store is not open.")

    def _was_in(self, sha256: str, archive: str) -> bool:
        return bool(archive) and any(name.archive == archive for name in self._samples[sha256].names)

    def _matches(self, task: Task, where: TaskFilter) -> bool:
        return (
            (where.task_ids is None or task.id in where.task_ids)
            and (where.states is None or task.state in where.states)
            and (where.sha256_prefix is None or task.sha256.startswith(where.sha256_prefix.lower()))
            and (where.name_contains is None or any(where.name_contains in n.name for n in self._samples[task.sha256].names))
            and (where.sha256s is None or task.sha256 in {sha256.lower() for sha256 in where.sha256s})
            and (where.archive is None or self._was_in(task.sha256, where.archive.lower()))
            and (where.owner is None or task.owner == where.owner)
        )


_COUNTS = {Fate.ACCEPTED: "accepted", Fate.DUPLICATE: "duplicates", Fate.OPENED: "opened", Fate.REFUSED: "refused"}


def _by_queue(task: Task) -> tuple[float, ...]:
    return (-task.priority, task.id)


def _by_end(task: Task) -> tuple[float, ...]:
    return (task.finished_at is None, task.finished_at or 0.0, task.id)


_ORDERS: dict[TaskSort, Callable[[Task], tuple[float, ...]]] = {
    TaskSort.NEWEST: lambda task: (-task.id,),
    TaskSort.OLDEST: lambda task: (task.id,),
    TaskSort.QUEUE: _by_queue,
    TaskSort.ENDED: _by_end,
}
