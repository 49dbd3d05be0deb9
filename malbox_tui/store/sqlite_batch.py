"""One batch of requests inside one transaction of SQLite, grouped by statement.

Nothing here begins, commits or rolls back, tells anyone, or changes a counter: what follows from the batch is returned as its
`Effects`, to be had only after the commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.errors import SampleInUse
from malbox_tui.model.events import ActionTaken, Event, EventBody, Position, ResultsRemoved, SampleMarked
from malbox_tui.model.intake import KEPT_INTAKES, KEPT_LINES, IntakeEntry
from malbox_tui.model.task import Task, TaskState
from malbox_tui.ports import Added, NewTask, Removal
from malbox_tui.store import rules
from malbox_tui.store.answers import Answer
from malbox_tui.store.intake_rows import LINE_WIDTH, row_of_intake, row_of_line
from malbox_tui.store.many_rows import ManyRows
from malbox_tui.store.pending_tasks import PendingTasks
from malbox_tui.store.requests import Adding, Changing, Claiming, Identifying, Removing, Renewing, Request, Segment, segments
from malbox_tui.store.rows import (
    ACTION_WIDTH,
    MOVE_WIDTH,
    TASK_WIDTH,
    Row,
    json_text,
    notes_of,
    row_of_action,
    row_of_move,
    row_of_name,
    row_of_task,
    tags_of,
    task_of,
)
from malbox_tui.store.statements import statement
from malbox_tui.store.waves import Span, waves

_ADD_SAMPLES = ManyRows("add_samples", 3)
_ADD_NAMES = ManyRows("add_names", 4)
_ADD_TASKS = ManyRows("add_tasks", TASK_WIDTH)
_MOVE_TASKS = ManyRows("move_tasks", MOVE_WIDTH)
_ADD_EVENTS = ManyRows("add_events", 4)
_ADD_ACTIONS = ManyRows("add_actions", ACTION_WIDTH)
_ADD_LINES = ManyRows("add_lines", LINE_WIDTH)


class SomeMovesLost(Exception):
    """Fewer tasks moved than were to: the batch is to be rolled back and run carefully, which finds out whose."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The numbers last given to a task and to an event."""

    task_id: int
    seq: int


@dataclass(slots=True)
class Effects:
    """What is so once the batch is committed: the events to tell, then the answers to give, then the failures."""

    counters: Counters
    events: list[Event]
    answers: list[tuple[Answer[Any], Any]] = field(default_factory=list)
    failures: list[tuple[Answer[Any], Exception]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The store as a batch finds it: who it is, and what is known of it without reading."""

    engine_id: str
    epoch: int
    counters: Counters
    pending: PendingTasks


class SqliteBatch:
    """Runs one batch. `careful` makes the moves one by one; otherwise a lost move raises `SomeMovesLost`."""

    def __init__(self, connection: sqlite3.Connection, ledger: Ledger, *, careful: bool) -> None:
        self._connection = connection
        self._engine_id = ledger.engine_id
        self._epoch = ledger.epoch
        self._pending = ledger.pending
        self._task_id = ledger.counters.task_id
        self._seq = ledger.counters.seq
        self._careful = careful
        self._news: list[tuple[float, EventBody] | None] = []
        self._entries: list[IntakeEntry | None] = []
        self._answers: list[tuple[Answer[Any], Any]] = []
        self._failures: list[tuple[Answer[Any], Exception]] = []

    def run(self, batch: Sequence[Request]) -> Effects:
        """Carry the batch out. Raises `SomeMovesLost` and whatever SQLite raises; the transaction is then to be rolled back."""
        self._news = [None] * len(batch)
        self._entries = [None] * len(batch)
        for segment in segments(batch):
            self._run_segment(segment)
        events = self._store_news()
        self._store_entries()
        return Effects(Counters(self._task_id, self._seq), events, self._answers, self._failures)

    def _run_segment(self, segment: Segment) -> None:
        if segment.adds:
            self._add(segment.adds)
        if segment.claims:
            self._claim(segment.claims)
        if segment.changes:
            self._change(segment.changes)
        for _, renewal in segment.renewals:
            self._renew(renewal)
        for place, note in segment.notes:
            self._tell(place, note.at, note.news)
            self._answers.append((note.answer, None))
        if segment.identifications:
            self._identify([request for _, request in segment.identifications])
        for place, removal in segment.removals:
            self._remove(place, removal)
        for _, closing in segment.closings:
            self._connection.execute(statement("close_removal"), (closing.number,))
            self._answers.append((closing.answer, None))
        for place, request in segment.entries:
            self._entries[place] = request.entry
            self._answers.append((request.answer, None))

    def _tell(self, place: int, at: float, news: EventBody) -> None:
        """Each request has at most one piece of news; its place in the batch is that of the news."""
        self._news[place] = (at, news)

    def _store_news(self) -> list[Event]:
        """Store the events in the order of the calls that caused them, numbered on from the last one stored."""
        events: list[Event] = []
        rows: list[Row] = []
        actions: list[ActionRecord] = []
        for entry in self._news:
            if entry is not None:
                at, news = entry
                self._seq += 1
                events.append(Event(Position(self._engine_id, self._epoch, self._seq), at, news))
                rows.append((self._seq, self._epoch, at, json_text(news)))
                if type(news) is ActionTaken:
                    actions.append(rules.record_of(news, self._seq, at))
                elif type(news) is SampleMarked:
                    self._mark(news, at)
        _ADD_EVENTS.run(self._connection, rows)
        _ADD_ACTIONS.run(self._connection, [row_of_action(record) for record in actions])
        return events

    def _mark(self, marking: SampleMarked, at: float) -> None:
        """Nothing happens when there is no such sample."""
        for notes, tags in self._connection.execute(statement("marks_of"), (marking.sha256,)).fetchall():
            after = rules.marks_of((notes_of(notes), tags_of(tags)), marking, at)
            self._connection.execute(statement("mark"), (marking.sha256, *map(json_text, after)))

    def _store_entries(self) -> None:
        """Store the lines of intakes in the order of the calls, and forget the oldest of all."""
        of_intake: dict[str, list[IntakeEntry]] = {}
        entries = [entry for entry in self._entries if entry is not None]
        if not entries:
            return
        for entry in entries:
            of_intake.setdefault(entry.head.key, []).append(entry)
        numbers = {key: self._enter_intake(some) for key, some in of_intake.items()}
        _ADD_LINES.run(self._connection, [row_of_line(numbers[entry.head.key], entry.line) for entry in entries])
        self._connection.execute(statement("prune_lines"), (KEPT_LINES,))
        self._connection.execute(statement("prune_intakes"), (KEPT_INTAKES,))

    def _enter_intake(self, entries: Sequence[IntakeEntry]) -> int:
        ((number,),) = self._connection.execute(statement("enter_intake"), row_of_intake(entries)).fetchall()
        return int(number)

    # --- adding ---

    def _add(self, adds: list[tuple[int, Adding]]) -> None:
        live, completed, names = self._keep_samples(adds)
        latest = self._latest_tasks([request.new for _, request in adds])
        tasks: list[Task] = []
        for place, request in adds:
            new = request.new
            if new.name is not None:
                names.setdefault(new.sha256, new.name.name)
            standing = rules.task_to_join(new, live.get(new.sha256), completed.get(new.sha256), latest.get(new.sha256))
            if standing is None:
                self._task_id += 1
                standing = live[new.sha256] = rules.created(new, self._task_id)
                tasks.append(standing)
                name = new.name.name if new.name is not None else names.get(new.sha256, b"")
                self._tell(place, new.at, rules.news_of_creation(standing, name))
                added = Added(standing, created=True)
            else:
                added = Added(standing, created=False)
            self._entries[place] = rules.entry_of(new, added)
            self._answers.append((request.answer, added))
        _ADD_TASKS.run(self._connection, [row_of_task(task) for task in tasks])
        self._pending.keep(tasks)

    def _keep_samples(self, adds: list[tuple[int, Adding]]) -> tuple[dict[str, Task], dict[str, Task], dict[str, bytes]]:
        """Store contents and names. Returns by content what was stored before of it: the latest task that is pending or owned, the
        latest completed one, and the first name. Of a content that is new there can be none of these, and nothing is looked up;
        nor are the tasks of one that is only retried, which joins none, and may have very many."""
        news = [request.new for _, request in adds]
        contents = {new.sha256: new for new in reversed(news)}
        samples = [(new.sha256, new.size_bytes, new.at) for new in contents.values()]
        are_new = _ADD_SAMPLES.run(self._connection, samples) == len(samples)
        joinable = list({new.sha256 for new in news if new.retry_of is None})
        known = ({}, {}, {}) if are_new else (*self._known_tasks(joinable), self._first_names(news))
        _ADD_NAMES.run(self._connection, [row_of_name(new.sha256, new.name) for new in news if new.name is not None])
        return known

    def _known_tasks(self, contents: list[str]) -> tuple[dict[str, Task], dict[str, Task]]:
        """By content: its latest task that is pending or owned, and its latest completed one."""
        live: dict[str, Task] = {}
        completed: dict[str, Task] = {}
        if not contents:
            return live, completed
        for row in self._connection.execute(statement("known_tasks"), (json_text(contents),)).fetchall():
            task = task_of(row)
            (completed if task.state is TaskState.COMPLETED else live)[task.sha256] = task
        return live, completed

    def _latest_tasks(self, news: list[NewTask]) -> dict[str, Task]:
        """By content: its latest task, for those that are to be unique."""
        contents = list({new.sha256 for new in news if new.unique})
        if not contents:
            return {}
        rows = self._connection.execute(statement("latest_tasks"), (json_text(contents),)).fetchall()
        return {task.sha256: task for task in map(task_of, rows)}

    def _first_names(self, news: list[NewTask]) -> dict[str, bytes]:
        """By content: the name it came with first, for those adds that bring no name."""
        nameless = {new.sha256 for new in news if new.name is None}
        if not nameless:
            return {}
        rows = self._connection.execute(statement("first_names"), (json_text(list(nameless)),))
        return {row[0]: row[1] for row in rows}

    # --- moving ---

    def _claim(self, claims: list[tuple[int, Claiming]]) -> None:
        """Claim what is pending; the others are answered None. Of two claims of one task the first wins."""
        pending = self._pending_of({request.claim.task_id for _, request in claims})
        spans: list[Span] = []
        for place, request in claims:
            claim = request.claim
            task = pending.pop(claim.task_id, None)
            if task is None:
                self._answers.append((request.answer, None))
                continue
            owned = rules.claimed_by(task, claim)
            spans.append(Span(task, owned))
            self._tell(place, claim.at, rules.news_of_claim(owned))
            self._answers.append((request.answer, owned))
        self._move(spans)

    def _pending_of(self, task_ids: set[int]) -> dict[int, Task]:
        """Those of the tasks that are pending, by id."""
        pending = {task_id: task for task_id in task_ids if (task := self._pending.take(task_id)) is not None}
        unknown = task_ids - pending.keys()
        if unknown:
            rows = self._connection.execute(statement("pending_of"), (json_text(list(unknown)),)).fetchall()
            pending |= {task.id: task for task in map(task_of, rows)}
        return pending

    def _change(self, changes: list[tuple[int, Changing]]) -> None:
        for _, request in changes:
            self._pending.take(request.change.before.id)
        if self._careful:
            for place, request in changes:
                self._change_one(place, request)
            return
        for wave in waves(request.change for _, request in changes):
            self._move(list(wave.values()))
        for place, request in changes:
            self._tell(place, request.change.at, request.change.news)
            self._answers.append((request.answer, None))

    def _change_one(self, place: int, request: Changing) -> None:
        change = request.change
        if _MOVE_TASKS.run(self._connection, [row_of_move(change.before, change.after)]):
            self._tell(place, change.at, change.news)
            self._answers.append((request.answer, None))
        else:
            self._failures.append((request.answer, rules.loss(change)))

    def _move(self, spans: list[Span]) -> None:
        rows = [row_of_move(before, after) for before, after in spans]
        if _MOVE_TASKS.run(self._connection, rows) != len(rows):
            raise SomeMovesLost

    # --- removing ---

    def _remove(self, place: int, request: Removing) -> None:
        """Forget what is to go, and note in the same step what of it lies on disk."""
        gone = self._remove_sample(place, request) if request.sha256 else self._remove_results(place, request)
        if gone is None:
            return
        if not gone:
            self._answers.append((request.answer, None))
            return
        ((number,),) = self._connection.execute(statement("add_removal"), (request.sha256, json_text(gone))).fetchall()
        self._answers.append((request.answer, Removal(number, request.sha256, gone)))

    def _remove_sample(self, place: int, request: Removing) -> tuple[int, ...] | None:
        """Its tasks, none when there is no such sample; None: it is in use."""
        sha256 = request.sha256
        states = {
            task_id: TaskState(state) for task_id, state in self._connection.execute(statement("states_of"), (sha256,)).fetchall()
        }
        if live := tuple(task_id for task_id, state in states.items() if not state.is_final):
            self._failures.append((request.answer, SampleInUse(sha256, live)))
            return None
        self._connection.execute(statement("keep_task_number"), (self._task_id,))
        for name in ("remove_tasks", "remove_names", "remove_sample"):
            self._connection.execute(statement(name), (sha256,)).fetchall()
        if states:
            self._tell(place, request.at, rules.news_of_removal(sha256, request.cause, states))
        return tuple(states)

    def _remove_results(self, place: int, request: Removing) -> tuple[int, ...]:
        rows = self._connection.execute(statement("remove_results"), (json_text(request.task_ids), request.at)).fetchall()
        gone = tuple(sorted(task_id for (task_id,) in rows))
        if gone:
            self._tell(place, request.at, ResultsRemoved(task_ids=gone, cause=request.cause))
        return gone

    # --- the rest ---

    def _renew(self, renewal: Renewing) -> None:
        parameters = (json_text(renewal.tokens), renewal.lease_until)
        rows = self._connection.execute(statement("renew"), parameters)
        lost = frozenset(renewal.tokens) - {row[0] for row in rows}
        self._answers.append((renewal.answer, lost))

    def _identify(self, requests: list[Identifying]) -> None:
        rows = [(request.sha256, json_text(request.identification)) for request in requests]
        self._connection.executemany(statement("identify"), rows)
        self._answers += [(request.answer, None) for request in requests]
