"""One batch of requests inside one transaction of SQLite, grouped by statement.

Nothing here begins, commits or rolls back, tells anyone, or changes a counter: what follows from the batch is returned as its
`Effects`, to be had only after the commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from malbox_tui.model.errors import StaleTask
from malbox_tui.model.events import Event, EventBody, Position
from malbox_tui.model.task import Task, TaskState
from malbox_tui.ports import Added
from malbox_tui.store import rules
from malbox_tui.store.requests import Adding, Changing, Claiming, Identifying, Renewing, Request, Segment, segments
from malbox_tui.store.rows import (
    json_text,
    row_of_event,
    row_of_move,
    row_of_task,
    task_of,
)
from malbox_tui.store.statements import statement


class SomeMovesLost(Exception):
    """Fewer tasks moved than were to: the batch is to be rolled back and run carefully, which finds out whose."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The numbers last given to a task and to an event."""

    task_id: int
    seq: int


@dataclass(slots=True)
class Effects:
    """What is so once the batch is committed."""

    counters: Counters
    events: list[Event] = field(default_factory=list)
    answers: list[Callable[[], None]] = field(default_factory=list)


@dataclass(slots=True)
class _Move:
    """A move to make in the database, what it tells, and how its caller is answered when it is made or lost."""

    place: int
    before: Task
    after: Task
    at: float
    news: EventBody
    made: Callable[[], None]
    lost: Callable[[StaleTask], None]
    error: StaleTask


class SqliteBatch:
    """Runs one batch. `careful` makes the moves one by one; otherwise a lost move raises `SomeMovesLost`."""

    def __init__(self, connection: sqlite3.Connection, engine_id: str, epoch: int, counters: Counters, *, careful: bool) -> None:
        self._connection = connection
        self._engine_id = engine_id
        self._epoch = epoch
        self._task_id = counters.task_id
        self._seq = counters.seq
        self._careful = careful
        self._news: list[tuple[int, float, EventBody]] = []
        self._answers: list[Callable[[], None]] = []

    def run(self, batch: Sequence[Request]) -> Effects:
        """Carry the batch out. Raises `SomeMovesLost` and whatever SQLite raises; the transaction is then to be rolled back."""
        for segment in segments(batch):
            self._run_segment(segment)
        events = self._numbered_events()
        if events:
            self._connection.executemany(statement("add_event"), [row_of_event(event) for event in events])
        return Effects(Counters(self._task_id, self._seq), events, self._answers)

    def _run_segment(self, segment: Segment) -> None:
        if segment.adds:
            self._add(segment.adds)
        if segment.claims or segment.changes:
            claims = self._claims(segment.claims) if segment.claims else []
            self._move(claims + [_change_as_move(place, request) for place, request in segment.changes])
        for place, note in segment.notes:
            self._tell(place, note.at, note.news)
            self._answers.append(partial(note.answer.give, None))
        for _, renewal in segment.renewals:
            self._renew(renewal)
        if segment.identifications:
            self._identify([request for _, request in segment.identifications])

    def _tell(self, place: int, at: float, news: EventBody) -> None:
        self._news.append((place, at, news))

    def _numbered_events(self) -> list[Event]:
        """The events in the order of the calls that caused them, numbered on from the last one stored."""
        self._news.sort(key=lambda entry: entry[0])
        events = [
            Event(Position(self._engine_id, self._epoch, seq), at, news)
            for seq, (_, at, news) in enumerate(self._news, start=self._seq + 1)
        ]
        self._seq += len(events)
        return events

    # --- adding ---

    def _add(self, adds: list[tuple[int, Adding]]) -> None:
        live, completed = self._known_tasks(adds)
        names = self._first_names(adds)
        tasks: list[Task] = []
        for place, request in adds:
            new = request.new
            if new.name is not None:
                names.setdefault(new.sha256, new.name.name)
            standing = rules.task_to_join(new, live.get(new.sha256), completed.get(new.sha256))
            if standing is None:
                self._task_id += 1
                standing = live[new.sha256] = rules.created(new, self._task_id)
                tasks.append(standing)
                name = new.name.name if new.name is not None else names.get(new.sha256, b"")
                self._tell(place, new.at, rules.news_of_creation(standing, name))
                answer = Added(standing, created=True)
            else:
                answer = Added(standing, created=False)
            self._answers.append(partial(request.answer.give, answer))
        self._insert(adds, tasks)

    def _known_tasks(self, adds: list[tuple[int, Adding]]) -> tuple[dict[str, Task], dict[str, Task]]:
        """By content: its latest task that is pending or owned, and its latest completed one."""
        contents = json_text(list({request.new.sha256 for _, request in adds}))
        live: dict[str, Task] = {}
        completed: dict[str, Task] = {}
        for row in self._connection.execute(statement("known_tasks"), (contents,)):
            task = task_of(row)
            (completed if task.state is TaskState.COMPLETED else live)[task.sha256] = task
        return live, completed

    def _first_names(self, adds: list[tuple[int, Adding]]) -> dict[str, bytes]:
        """By content: the name it came with first, for those adds that bring no name."""
        nameless = {request.new.sha256 for _, request in adds if request.new.name is None}
        if not nameless:
            return {}
        rows = self._connection.execute(statement("first_names"), (json_text(list(nameless)),))
        return {row[0]: row[1] for row in rows}

    def _insert(self, adds: list[tuple[int, Adding]], tasks: list[Task]) -> None:
        news = [request.new for _, request in adds]
        samples = [(new.sha256, new.size_bytes, new.at) for new in news]
        self._connection.executemany(statement("add_sample"), samples)
        names = [(new.sha256, new.name.name, new.name.origin) for new in news if new.name is not None]
        if names:
            self._connection.executemany(statement("add_name"), names)
        if tasks:
            self._connection.executemany(statement("add_task"), [row_of_task(task) for task in tasks])

    # --- moving ---

    def _claims(self, claims: list[tuple[int, Claiming]]) -> list[_Move]:
        """The moves of those claims that win; the others are answered None. Of two claims of one task the first wins."""
        wanted = json_text(list({request.claim.task_id for _, request in claims}))
        rows = self._connection.execute(statement("pending_of"), (wanted,))
        pending = {task.id: task for task in map(task_of, rows)}
        moves = []
        for place, request in claims:
            task = pending.pop(request.claim.task_id, None)
            if task is None:
                self._answers.append(partial(request.answer.give, None))
            else:
                moves.append(_claim_as_move(place, request, task))
        return moves

    def _move(self, moves: list[_Move]) -> None:
        if self._careful:
            for move in moves:
                self._move_one(move)
        elif moves:
            rows = [row_of_move(move.before, move.after) for move in moves]
            cursor = self._connection.executemany(statement("move_task"), rows)
            if cursor.rowcount != len(moves):
                raise SomeMovesLost
            for move in moves:
                self._made(move)

    def _move_one(self, move: _Move) -> None:
        cursor = self._connection.execute(statement("move_task"), row_of_move(move.before, move.after))
        if cursor.rowcount == 1:
            self._made(move)
        else:
            self._answers.append(partial(move.lost, move.error))

    def _made(self, move: _Move) -> None:
        self._tell(move.place, move.at, move.news)
        self._answers.append(move.made)

    # --- the rest ---

    def _renew(self, renewal: Renewing) -> None:
        parameters = (json_text(renewal.tokens), renewal.lease_until)
        rows = self._connection.execute(statement("renew"), parameters)
        lost = frozenset(renewal.tokens) - {row[0] for row in rows}
        self._answers.append(partial(renewal.answer.give, lost))

    def _identify(self, requests: list[Identifying]) -> None:
        rows = [(request.sha256, json_text(request.identification)) for request in requests]
        self._connection.executemany(statement("identify"), rows)
        self._answers.extend(partial(request.answer.give, None) for request in requests)


def _change_as_move(place: int, request: Changing) -> _Move:
    change, answer = request.change, request.answer
    return _Move(
        place, change.before, change.after, change.at, change.news, partial(answer.give, None), answer.fail, rules.loss(change)
    )


def _claim_as_move(place: int, request: Claiming, task: Task) -> _Move:
    """Always made: the task was read as pending in the same transaction, and nothing else of its segment comes before."""
    owned = rules.claimed_by(task, request.claim)
    error = StaleTask(task.id, TaskState.PENDING.value)
    answer = request.answer
    return _Move(
        place, task, owned, request.claim.at, rules.news_of_claim(owned), partial(answer.give, owned), answer.fail, error
    )
