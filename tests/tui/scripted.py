"""An engine for tests of the console that follows a script: values with fixed times, a `Client` over them, an `Intake` over nothing.

Everything is deterministic: the clock stands at `NOW`, identities follow from numbers, events come in the order they were given. So the
same scene gives the same picture on every machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import msgspec

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import Command, CommandOutcome, ShutdownMode
from malbox_tui.model.due import Due, TimeLimit
from malbox_tui.model.errors import MalboxError, RefusedContent, StoreError
from malbox_tui.model.events import Event, EventBody, Gap, Position
from malbox_tui.model.intake import IntakeLine, IntakePage, IntakeView, LineQuery
from malbox_tui.model.machine import MachineState, MachineView
from malbox_tui.model.overview import ConsoleView, GroupView, Overview
from malbox_tui.model.queries import MAX_ROWS, TaskPage, TaskQuery, TaskRecord, TaskSort, Waiting
from malbox_tui.model.report import (
    REPORT_RESULT,
    Classification,
    Confidence,
    Identification,
    PluginRun,
    PluginStatus,
    ResultRef,
    Verdict,
)
from malbox_tui.model.sample import Sample, SampleName
from malbox_tui.model.submission import Accepted, Account, Offer, Opened, Receipt, Refused, SubmissionOptions
from malbox_tui.model.survey import Survey
from malbox_tui.model.task import EndedBy, Outcome, Task, TaskState
from malbox_tui.model.worker import WorkerKind, WorkerState, WorkerView
from malbox_tui.ports import Away, Client, Dropped, Intake
from malbox_tui.tui.console import Surroundings

NOW = 1_760_000_400.0
"""The engine's time: 2025-10-09, 09:00:00 UTC."""

ENGINE_ID = "scripted"

MALICIOUS = Verdict(Classification.MALICIOUS, 100, Confidence.HIGH, ("EICAR_Test_File",))
SUSPICIOUS = Verdict(Classification.SUSPICIOUS, 55, Confidence.MEDIUM, ("packed",))
CLEAN = Verdict(Classification.CLEAN, 0, Confidence.LOW)

_ENDED_BY = {
    TaskState.COMPLETED: EndedBy.FINISHED,
    TaskState.FAILED: EndedBy.PLUGIN_ERROR,
    TaskState.TIMED_OUT: EndedBy.ANALYSIS_TIMEOUT,
    TaskState.CANCELED: EndedBy.USER,
}
_STAGES: Mapping[TaskState, tuple[str, ...]] = {
    TaskState.PENDING: (),
    TaskState.INITIALIZING: ("pending",),
    TaskState.PREPARING_RESOURCES: ("pending", "initializing"),
    TaskState.RUNNING: ("pending", "initializing"),
    TaskState.STOPPING: ("pending", "initializing", "running"),
}
_SPENT_S = {"pending": 4.0, "initializing": 0.5, "running": 12.0, "stopping": 0.25}


def sha256_of(number: int) -> str:
    """A sum that looks like one and follows from a number."""
    return hashlib.sha256(b"%d" % number).hexdigest()


def reference(task_id: int, plugin: str, name: str = REPORT_RESULT, format: str = "json", size_bytes: int = 512) -> ResultRef:
    """A result; `ScriptedClient.results` is asked for its path."""
    return ResultRef(name, format, size_bytes, sha256_of(task_id), f"{task_id}/{plugin}/{name}")


def plugin_run(
    task_id: int,
    name: str = "file-type",
    status: PluginStatus = PluginStatus.COMPLETED,
    *,
    results: Iterable[ResultRef] | None = None,
    **changes: Any,
) -> PluginRun:
    """One plugin's run on a task."""
    run = PluginRun(name, "0.1.0", status, 0.25, (reference(task_id, name),) if results is None else tuple(results))
    return msgspec.structs.replace(run, **changes)


def sample(number: int, *names: bytes, size_bytes: int | None = None, kind: str = "pe", **changes: Any) -> Sample:
    """A sample; without a name it has an ordinary one."""
    labels = tuple(SampleName(name, b"/srv/in/" + name) for name in names or (b"sample-%03d.exe" % number,))
    given = Sample(
        sha256=sha256_of(number),
        size_bytes=2_000 * number + 68 if size_bytes is None else size_bytes,
        first_seen_at=NOW - 600,
        names=labels,
        identification=Identification(
            kind, "application/vnd.microsoft.portable-executable", "windows", "x86_64", "PE32+ executable"
        ),
    )
    return msgspec.structs.replace(given, **changes)


def task(number: int, state: TaskState = TaskState.COMPLETED, *, ago_s: float = 30.0, **changes: Any) -> Task:
    """A task that entered its state `ago_s` before `NOW`, with the times and the owner that go with it."""
    since = NOW - ago_s
    given = Task(
        id=number,
        sha256=sha256_of(number),
        state=state,
        created_at=since,
        stage_since=since,
    )
    before = ("pending", "initializing", "running", "stopping") if state.is_final else _STAGES[state]
    stages = {stage: _SPENT_S[stage] for stage in before}
    given = msgspec.structs.replace(given, stages=stages, created_at=since - sum(stages.values()))
    if state is not TaskState.PENDING:
        given = msgspec.structs.replace(
            given, attempts=1, started_at=given.created_at + _SPENT_S["pending"], worker=f"{number:032x}"
        )
    if state.is_owned:
        given = msgspec.structs.replace(given, token=f"token-{number}", lease_until=NOW + 60)
    if state is TaskState.STOPPING:
        given = msgspec.structs.replace(given, outcome=Outcome(TaskState.COMPLETED, EndedBy.FINISHED, "Finished."))
    if state.is_final:
        reason = "Finished." if state is TaskState.COMPLETED else f"It {state.value.replace('_', ' ')}."
        given = msgspec.structs.replace(
            given, finished_at=since, ended_by=_ENDED_BY[state], reason=reason, plugins=(plugin_run(number),)
        )
    return msgspec.structs.replace(given, **changes)


def record(number: int, state: TaskState = TaskState.COMPLETED, *names: bytes, **changes: Any) -> TaskRecord:
    """A task with its sample; `changes` are the task's."""
    return TaskRecord(task(number, state, **changes), sample(number, *names))


def worker(number: int, task_id: int | None = None, *, ago_s: float = 12.0, **changes: Any) -> WorkerView:
    """A worker, busy when it has a task. The first two are baseline ones."""
    given = WorkerView(
        id=f"{number:02x}" + sha256_of(number)[:30],
        group="default",
        kind=WorkerKind.BASELINE if number <= 2 else WorkerKind.DEMAND,
        state=WorkerState.IDLE if task_id is None else WorkerState.BUSY,
        since=NOW - ago_s,
        started_at=NOW - 300,
        task_ids=() if task_id is None else (task_id,),
        tasks_done=number,
    )
    return msgspec.structs.replace(given, **changes)


def due(left_s: float, limit: TimeLimit = TimeLimit.ANALYSIS, seconds: float = 300.0, *, stands: bool = False) -> Due:
    """A time limit that is reached `left_s` after `NOW`."""
    return Due(limit, NOW + left_s, seconds, stands)


def group(name: str = "default", **changes: Any) -> GroupView:
    """A worker group; `overview` counts its workers."""
    given = GroupView(name=name, min_workers=2, max_workers=4, active=0, busy=0, idle_timeout_s=60.0, takes="any task")
    return msgspec.structs.replace(given, **changes)


def machine(name: str, state: MachineState = MachineState.READY, *, ago_s: float = 41.0, **changes: Any) -> MachineView:
    """A machine that entered its state `ago_s` before `NOW`."""
    given = MachineView(name=name, provider="libvirt", platform="windows", arch="x64", state=state, since=NOW - ago_s)
    return msgspec.structs.replace(given, **changes)


def overview(records: Iterable[TaskRecord] = (), workers: Sequence[WorkerView] = (), *, seq: int = 0, **changes: Any) -> Overview:
    """The engine at `NOW`, with the counts that follow from its tasks and workers."""
    groups = [_with_counts(given, workers) for given in changes.pop("groups", (group(),))]
    counted = Counter(row.task.state for row in records)
    given = Overview(
        clock=NOW,
        position=Position(ENGINE_ID, 1, seq),
        counts={state: counted[state] for state in TaskState},
        groups=tuple(groups),
        workers=tuple(workers),
        isolation="bubblewrap",
        ended_per_minute=(0, 2, 5, 3, 7, 4, 6, 5),
        free_bytes=48 * 1024**3,
    )
    return msgspec.structs.replace(given, **changes)


def _with_counts(given: GroupView, workers: Sequence[WorkerView]) -> GroupView:
    members = [view for view in workers if view.group == given.name]
    return msgspec.structs.replace(given, active=len(members), busy=sum(bool(view.task_ids) for view in members))


class ScriptedClient(Client):
    """An engine that holds what it was given. What is asked of it is kept, and answered as the script says.

    `reasons` says by id why pending tasks wait; at which place follows from their priority and id. `results` maps a result's path
    to its content, or to what reading it raises. `answer` says what becomes of a command. `told` are the events that happen as soon
    as somebody follows them.
    """

    def __init__(
        self,
        records: Iterable[TaskRecord] = (),
        workers: Sequence[WorkerView] = (),
        *,
        told: Sequence[EventBody] = (),
        results: Mapping[str, bytes | MalboxError] | None = None,
        answer: Callable[[Command], CommandOutcome | MalboxError] | None = None,
        reasons: Mapping[int, str] | None = None,
        **engine: Any,
    ) -> None:
        """`engine` are values of the overview."""
        self.records = {row.task.id: row for row in records}
        self.workers = tuple(workers)
        self.results = dict(results or {})
        self.reasons = dict(reasons or {})
        self.fails: MalboxError | None = None
        """What reading the tasks raises."""
        self.commands: list[Command] = []
        self.offered: list[SampleName] = []
        self.options: list[SubmissionOptions] = []
        self.queries: list[TaskQuery] = []
        self.accounts: dict[IntakeView, Sequence[IntakeLine]] = {}
        self.answers = asyncio.Event()
        """Cleared: commands are answered when it is set again."""
        self.answers.set()
        self._answer = answer or (lambda command: CommandOutcome(done=True, message=f"{type(command.action).__name__}: done."))
        self._engine = engine
        self._items: list[Event | Gap | None] = []
        self._begin = 0
        self._more = asyncio.Event()
        self._seq = 0
        for body in told:
            self.happens(body)

    # --- the script ----------------------------------------------------------------------------------------------------------------

    def happens(self, body: EventBody, *, ago_s: float = 0.0, durable: bool = True) -> None:
        """An event, at `ago_s` before `NOW`. Nothing else changes."""
        self._seq += durable
        self._tell(Event(Position(ENGINE_ID, 1, self._seq), NOW - ago_s, body, durable))

    def put(self, *rows: TaskRecord) -> None:
        """Add tasks, or put others in the place of those with the same ids."""
        self.records.update({row.task.id: row for row in rows})

    def loses_events(self) -> None:
        """Whoever follows the events was too slow."""
        self._tell(Gap(Position(ENGINE_ID, 1, self._seq)))

    def stops(self) -> None:
        """The events end."""
        self._tell(None)

    def _tell(self, item: Event | Gap | None) -> None:
        self._items.append(item)
        self._more.set()

    # --- the port ------------------------------------------------------------------------------------------------------------------

    async def do(self, command: Command) -> CommandOutcome:
        """See `Client`."""
        self.commands.append(command)
        await self.answers.wait()
        answer = self._answer(command)
        if isinstance(answer, MalboxError):
            raise answer
        return answer

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        """See `Client`: what is offered is accepted and not kept; what was refused before stays refused."""
        receipts: list[Receipt] = []
        async for offer in offers:
            self.offered.append(offer.name)
            self.options.append(options)
            number = 1000 + len(self.offered)
            if offer.refusal is not None:
                receipts.append(Refused(offer.name, offer.refusal))
            elif offer.opened is not None:
                receipts.append(Opened(offer.name, offer.opened))
            else:
                receipts.append(Accepted(offer.name, sha256_of(number), 1, number))
            if on_receipt is not None:
                on_receipt(receipts[-1])
            if (close := getattr(offer.content, "aclose", None)) is not None:
                await close()
        return Account(tuple(receipts))

    async def overview(self) -> Overview:
        """See `Client`."""
        return overview(self.records.values(), self.workers, seq=0, **self._engine)

    async def query(self, query: TaskQuery) -> TaskPage:
        """See `Client`."""
        self.queries.append(query)
        if self.fails is not None:
            raise self.fails
        rows = sorted((row for row in self.records.values() if _matches(row, query)), key=lambda row: _place(row, query.sort))
        offset, limit = query.offset, min(query.limit, MAX_ROWS)
        ids = [row.task.id for row in rows]
        if query.around in ids:
            offset = max(0, ids.index(query.around) - limit // 2)
        window = rows[offset : offset + limit]
        return TaskPage(rows=self._explained(window), total=len(rows), offset=offset, clock=NOW)

    def _explained(self, rows: Sequence[TaskRecord]) -> tuple[TaskRecord, ...]:
        """The rows, those of pending tasks with why they wait."""
        pending = sorted((row for row in self.records.values() if row.task.state is TaskState.PENDING), key=_in_queue)
        places = {row.task.id: place for place, row in enumerate(pending, 1)}
        return tuple(
            msgspec.structs.replace(row, waiting=Waiting(self._reason(row), place, len(places), row.task.stage_since))
            if (place := places.get(row.task.id)) is not None
            else row
            for row in rows
        )

    def _reason(self, row: TaskRecord) -> str:
        return self.reasons.get(row.task.id, "all workers of default are busy (4 of 4)")

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """See `Client`."""
        found = self.results.get(reference.path, StoreError("The result is gone."))
        if isinstance(found, MalboxError):
            raise found
        return found[:max_bytes]

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """See `Client`: those it was given."""
        found = [intake for intake in self.accounts if before is None or intake.number < before]
        return sorted(found, key=lambda intake: -intake.number)[:limit]

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """See `Client`: those it was given."""
        for intake, kept in self.accounts.items():
            if intake.number == query.intake:
                lines = [line for line in kept if line.number > query.after and (not query.fates or line.fate in query.fates)]
                return IntakePage(intake=intake, lines=tuple(lines[: query.limit]), more=len(lines) > query.limit)
        return IntakePage(intake=None)

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """See `Client`: nothing was done."""
        return ()

    async def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        """See `Client`. Who follows anew from the beginning is told everything since the last gap again."""
        index = self._begin
        while True:
            while index < len(self._items):
                item = self._items[index]
                index += 1
                if item is None:
                    return
                if isinstance(item, Gap):
                    self._begin = index
                elif after is not None and item.position.engine_id == after.engine_id and item.position.seq <= after.seq > 0:
                    continue
                yield item
            self._more.clear()
            await self._more.wait()


@dataclass
class ScriptedAttachment:
    """A way to an engine elsewhere that the test makes and breaks."""

    place: str = "ana@sbx-01"
    read_only: bool = False
    away: Away | None = None
    contacts: int = 1
    hurried: int = 0

    def hurry(self) -> None:
        """See `Attachment`."""
        self.hurried += 1

    def breaks(self, problem: str = "the connection was closed", retry_in_s: float | None = 4.0) -> None:
        """The connection is lost, half a minute before `NOW`."""
        self.away = Away(NOW - 30, problem, retry_in_s)

    def comes_back(self) -> None:
        """It is made again."""
        self.away = None
        self.contacts += 1


def console(
    actor: str = "ana", origin: str = "ana@laptop (process 4711)", *, ago_s: float = 600.0, read_only: bool = False
) -> ConsoleView:
    """Someone who follows the engine."""
    return ConsoleView(actor=actor, origin=origin, since=NOW - ago_s, read_only=read_only)


class ScriptedIntake(Intake):
    """Knows the paths that it was given, and nothing of any disk."""

    def __init__(self, *paths: bytes) -> None:
        self.paths = paths
        self.surveyed: Survey | None = None

    def dropped(self, text: str) -> Dropped:
        """A path in each line."""
        wanted = [line.encode("utf-8", "surrogateescape") for line in text.splitlines()]
        if wanted and all(path in self.paths for path in wanted):
            return Dropped(tuple(wanted))
        return Dropped((), "There is no such file on sandbox-1.")

    def completions(self, text: str, limit: int) -> list[str]:
        """See `Intake`."""
        known = [path.decode("utf-8", "surrogateescape") for path in sorted(self.paths)]
        return [path for path in known if path.startswith(text)][:limit]

    async def survey(self, paths: Sequence[bytes], *, counts_only: bool = False) -> AsyncIterator[Survey]:
        """As it was told, or a file for each."""
        yield self.surveyed or Survey(files=len(paths), done=True)

    def files(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As they are offered."""
        return self.offers(paths)

    async def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """An empty offer for each."""
        for path in paths:
            yield Offer(SampleName(path.rpartition(b"/")[2], path), content=_nothing())


class ScriptedIdentifier:
    """Says of one content after the other what it was told; `fails` is why it can't be opened. While `holds`, it takes its time."""

    def __init__(self, *found: Identification | None, fails: MalboxError | None = None) -> None:
        self.found = list(found)
        self.fails = fails
        self.holds = False
        self.contents: list[bytes] = []
        self.is_open = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Itself, until it is left."""
        if self.fails is not None:
            raise self.fails
        self.is_open = True
        try:
            yield self
        finally:
            self.is_open = False

    async def identify(self, content: AsyncIterator[bytes]) -> Identification | None:
        """See `Identifier`."""
        try:
            self.contents.append(b"".join([chunk async for chunk in content]))
        except RefusedContent:
            return None
        while self.holds:
            await asyncio.Event().wait()
        return self.found[len(self.contents) - 1] if len(self.contents) <= len(self.found) else None


def surroundings(client: ScriptedClient, intake: Intake | None = None, **changes: Any) -> Surroundings:
    """What the console needs, with a clock that stands and a host that is the same everywhere. Leaving stops the client."""

    def leave(mode: ShutdownMode) -> None:
        client.stops()

    given: dict[str, Any] = {
        "client": client,
        "intake": intake or ScriptedIntake(),
        "actor": "operator",
        "host": "sandbox-1",
        "on_leave": leave,
        "monotonic": lambda: 0.0,
        "time_of_day": lambda at: time.strftime("%H:%M:%S", time.gmtime(at)),
    }
    return Surroundings(**{**given, **changes})


def _matches(row: TaskRecord, query: TaskQuery) -> bool:
    where = query.where
    return (
        (where.task_ids is None or row.task.id in where.task_ids)
        and (where.states is None or row.task.state in where.states)
        and (where.sha256_prefix is None or row.sample.sha256.startswith(where.sha256_prefix.lower()))
        and (where.name_contains is None or any(where.name_contains in name.name for name in row.sample.names))
        and (where.sha256s is None or row.sample.sha256 in where.sha256s)
        and (where.owner is None or row.task.owner == where.owner)
    )


def _place(row: TaskRecord, sort: TaskSort) -> tuple[float, float]:
    given = row.task
    match sort:
        case TaskSort.NEWEST:
            return -given.id, 0
        case TaskSort.QUEUE:
            return -given.priority, given.id
        case TaskSort.ENDED:
            return given.finished_at if given.finished_at is not None else float("inf"), given.id
        case _:
            return given.id, 0


def _in_queue(row: TaskRecord) -> tuple[float, float]:
    return _place(row, TaskSort.QUEUE)


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""
