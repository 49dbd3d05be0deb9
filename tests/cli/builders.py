"""Values for tests of the command line, and a `Client` that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec

from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import Event, EventBody, Gap, Position, TaskCanceled, TaskCompleted, TaskFailed, TaskTimedOut
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.report import Classification, Confidence, Identification, PluginRun, PluginStatus, ResultRef, Verdict
from malbox_tui.model.sample import Sample, SampleName
from malbox_tui.model.submission import Accepted, Account, Offer, Receipt, SubmissionOptions
from malbox_tui.model.task import EndedBy, Task, TaskState

BEGAN_AT = 1_100.5
EVIL = b"\x1b]0;pwned\x07[bold]\n\xff"

MALICIOUS = Verdict(Classification.MALICIOUS, 100, Confidence.HIGH, ("EICAR", "\x1b[31mred"))

_BODIES = {
    TaskState.COMPLETED: (TaskCompleted, EndedBy.FINISHED),
    TaskState.FAILED: (TaskFailed, EndedBy.PLUGIN_ERROR),
    TaskState.TIMED_OUT: (TaskTimedOut, EndedBy.ANALYSIS_TIMEOUT),
    TaskState.CANCELED: (TaskCanceled, EndedBy.USER),
}


def sha(number: int) -> str:
    """A sum that tells which sample it is."""
    return f"{number:064x}"


def record(
    task_id: int, state: TaskState = TaskState.COMPLETED, name: bytes = b"a.exe", verdict: Verdict | None = None, reason: str = ""
) -> TaskRecord:
    """A task and its sample; a final one ended at 1,100 s."""
    final = state.is_final
    task = Task(
        id=task_id,
        sha256=sha(task_id),
        state=state,
        attempts=1 if final else 0,
        worker="w" if final else None,
        created_at=1_050.25,
        stage_since=1_050.25,
        started_at=1_060.0 if final else None,
        finished_at=1_100.0 if final else None,
        stages={"pending": 9.75, "running": 39.5} if final else {},
        ended_by=_BODIES[state][1] if final else None,
        reason=reason,
        verdict=verdict,
        plugins=(run(),) if final else (),
    )
    sample = Sample(
        sha256=sha(task_id),
        size_bytes=1536,
        first_seen_at=1_050.0,
        names=(SampleName(name, b"/in/" + name),),
        identification=Identification("pe", "application/x-dosexec", "windows", "x64"),
    )
    return TaskRecord(task, sample)


def run() -> PluginRun:
    """A plugin's run with one result."""
    return PluginRun(
        "digests", "0.1.0", PluginStatus.COMPLETED, 0.25, (ResultRef("report", "json", 10, sha(9), "1/t/digests/report"),)
    )


def accepted(task_id: int, name: bytes = b"a.exe") -> Accepted:
    """A receipt for a new task."""
    return Accepted(SampleName(name, b"/in/" + name), sha(task_id), 1536, task_id)


class ScriptedClient:
    """Holds tasks as a store would; a step of the script is a receipt to give, an event to send, or something to do.

    Receipts are given by `submit` in turn; events come from `happens` and are delivered in the order they were made.
    """

    def __init__(self, *held: TaskRecord) -> None:
        self.held = {row.task.id: row for row in held}
        self.receipts: list[Receipt | Callable[[], None]] = []
        self.on_query: Callable[[TaskQuery], None] = lambda query: None
        self.stopped = False
        self._events: list[Event | Gap | None] = []
        self._news: Callable[[], None] = lambda: None
        self._seq = 0

    def end(
        self, task_id: int, state: TaskState = TaskState.COMPLETED, verdict: Verdict | None = None, *, told: bool = True
    ) -> None:
        """The task becomes final; `told` False: its event is lost."""
        name = self.held[task_id].sample.names[0].name if task_id in self.held else b"a.exe"
        self.held[task_id] = record(task_id, state, name, verdict, reason="" if state is TaskState.COMPLETED else "It broke.")
        if told:
            body, ended_by = _BODIES[state]
            self.happens(body(task_id=task_id, ended_by=ended_by, reason="", verdict=verdict))

    def happens(self, body: EventBody) -> None:
        """Send an event."""
        self._seq += 1
        self._send(Event(Position("e", 1, self._seq), 1_100.0, body))

    def gap(self) -> None:
        """Send word that events were dropped."""
        self._send(Gap(Position("e", 1, self._seq)))

    def stop(self) -> None:
        """The engine ends."""
        self.stopped = True
        self._send(None)

    def _send(self, item: Event | Gap | None) -> None:
        self._events.append(item)
        self._news()

    async def do(self, command: Command) -> CommandOutcome:
        """Nothing here commands."""
        raise AssertionError("nothing here asks for it")

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        """Give the scripted receipts, whatever is offered."""
        given: list[Receipt] = []
        for step in self.receipts:
            if callable(step):
                step()
                if self.stopped:
                    raise EngineStopped
                continue
            if isinstance(step, Accepted):
                self.held.setdefault(step.task_id, record(step.task_id, TaskState.PENDING, step.name.name))
            given.append(step)
            assert on_receipt is not None
            on_receipt(step)
        return Account(tuple(given))

    async def overview(self) -> Overview:
        """The position is all that matters."""
        return Overview(clock=1_100.0, position=Position("e", 1, self._seq), counts={}, groups=(), workers=())

    async def query(self, query: TaskQuery) -> TaskPage:
        """Answer from what is held."""
        if self.stopped:
            raise EngineStopped
        self.on_query(query)
        where = query.where
        rows = [
            row
            for row in self.held.values()
            if (where.task_ids is None or row.task.id in where.task_ids)
            and (where.states is None or row.task.state in where.states)
        ]
        if query.sort is TaskSort.ENDED:
            rows.sort(key=lambda row: (row.task.finished_at or float("inf"), row.task.id))
        else:
            rows.sort(key=lambda row: row.task.id, reverse=query.sort is TaskSort.NEWEST)
        window = tuple(rows[query.offset : query.offset + query.limit])
        return TaskPage(rows=window, total=len(rows), offset=query.offset, clock=1_100.0)

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """Nothing here reads results."""
        raise AssertionError("nothing here asks for it")

    async def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        """Everything that happened after the position, and then what happens."""
        assert after is not None
        flag = asyncio.Event()
        self._news = flag.set
        index = 0
        while True:
            while index < len(self._events):
                item = self._events[index]
                index += 1
                if item is None:
                    return
                if isinstance(item, Gap) or item.position > after:
                    yield item
            flag.clear()
            await flag.wait()


def with_finish(row: TaskRecord, finished_at: float) -> TaskRecord:
    """The same task, ended at another time."""
    return TaskRecord(msgspec.structs.replace(row.task, finished_at=finished_at), row.sample)
