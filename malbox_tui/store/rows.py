"""Model values as rows of SQLite and back. What has parts is JSON text; everything else is a column of its own.

Enums are given to SQLite as plain strings: for each value of another type, a subclass included, Python's module looks for an adapter
first (measured: 1 µs a value).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from malbox_tui.model.actions import ActionRecord, LoggedAction
from malbox_tui.model.events import Event, EventBody, Position
from malbox_tui.model.plugin_wishes import NO_WISHES, PluginWishes
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Identification, PluginRun, Verdict
from malbox_tui.model.sample import Note, Sample, SampleName
from malbox_tui.model.task import ChosenProfile, EndedBy, Outcome, RequirementClass, RunOptions, Task, TaskState
from malbox_tui.ports import PendingEntry

Row = Sequence[Any]
T = TypeVar("T")

TASK_WIDTH = 29
"""How many columns a task has."""
MOVE_WIDTH = 25
"""How many values a move has."""
ACTION_WIDTH = 8
"""How many columns an action has."""

_USUAL_RUN = RunOptions()
_DEMANDLESS = structs.asdict(RequirementClass())

_encode = msgspec.json.Encoder().encode
_outcome = msgspec.json.Decoder(Outcome).decode
_verdict = msgspec.json.Decoder(Verdict).decode
_plugins = msgspec.json.Decoder(tuple[PluginRun, ...]).decode
_stages = msgspec.json.Decoder(dict[str, float]).decode
_body = msgspec.json.Decoder(EventBody).decode
_identification = msgspec.json.Decoder(Identification).decode
notes_of = msgspec.json.Decoder(tuple[Note, ...]).decode
tags_of = msgspec.json.Decoder(tuple[str, ...]).decode
_names = msgspec.json.Decoder(list[tuple[int, str, str, str]]).decode
_ids = msgspec.json.Decoder(list[int]).decode
_action = msgspec.json.Decoder(LoggedAction).decode
_done_to = msgspec.json.Decoder(tuple[int, ...]).decode


def json_text(value: object) -> str:
    """`value` as JSON text."""
    return _encode(value).decode()


@lru_cache(maxsize=1024)
def _requires_text(requires: RequirementClass) -> str:
    """What it demands as JSON text; what it doesn't is left out, so that the row of a task without demands is a fifth shorter."""
    return json_text({name: value for name, value in structs.asdict(requires).items() if value != _DEMANDLESS[name]})


def _run_text(run: RunOptions) -> str:
    """As JSON text; what is as usual is left out."""
    return "{}" if run == _USUAL_RUN else json_text(run)


def _wishes_text(wishes: PluginWishes) -> str:
    """As JSON text; empty where there are none."""
    return "{}" if wishes == NO_WISHES else json_text(wishes)


@lru_cache(maxsize=256)
def _wishes(text: str) -> PluginWishes:
    return msgspec.json.decode(text, type=PluginWishes)


@lru_cache(maxsize=256)
def _profile_text(profile: ChosenProfile) -> str:
    return json_text(profile)


@lru_cache(maxsize=256)
def _profile(text: str) -> ChosenProfile:
    return msgspec.json.decode(text, type=ChosenProfile)


@lru_cache(maxsize=256)
def _run_options(text: str) -> RunOptions:
    return msgspec.json.decode(text, type=RunOptions)


def _movable(task: Task) -> tuple[Any, ...]:
    """What a move may alter of a task, in the order of both `add_tasks` and `move_tasks`."""
    return (
        task.stage_since,
        task.started_at,
        task.finished_at,
        json_text(task.stages),
        None if task.outcome is None else json_text(task.outcome),
        None if task.ended_by is None else str(task.ended_by),
        task.reason,
        None if task.verdict is None else json_text(task.verdict),
        json_text(task.plugins) if task.plugins else "[]",
        task.machine,
        None if task.profile is None else _profile_text(task.profile),
        task.enforce_timeout,
    )


def row_of_task(task: Task) -> tuple[Any, ...]:
    """The values of a row of `add_tasks`."""
    return (
        task.id,
        task.sha256,
        task.type,
        _requires_text(task.requires),
        task.priority,
        task.timeout_s,
        str(task.state),
        task.attempts,
        task.crashes,
        task.retry_of,
        task.worker,
        task.token,
        task.lease_until,
        task.created_at,
        *_movable(task),
        _run_text(task.run),
        task.owner,
        _wishes_text(task.wishes),
    )


def row_of_move(before: Task, after: Task) -> tuple[Any, ...]:
    """The values of a row of `move_tasks`."""
    return (
        before.id,
        str(before.state),
        before.token,
        after.type,
        _requires_text(after.requires),
        after.priority,
        after.timeout_s,
        str(after.state),
        after.attempts,
        after.crashes,
        after.worker,
        after.token,
        after.lease_until,
        *_movable(after),
    )


def task_of(row: Row) -> Task:
    """The task in the first `TASK_WIDTH` columns of a row."""
    return Task(
        id=row[0],
        sha256=row[1],
        type=row[2],
        requires=requirement_class(row[3]),
        priority=row[4],
        timeout_s=row[5],
        state=TaskState(row[6]),
        attempts=row[7],
        crashes=row[8],
        retry_of=row[9],
        worker=row[10],
        token=row[11],
        lease_until=row[12],
        created_at=row[13],
        stage_since=row[14],
        started_at=row[15],
        finished_at=row[16],
        stages=_stages(row[17]),
        outcome=_optional(_outcome, row[18]),
        ended_by=_optional(EndedBy, row[19]),
        reason=row[20],
        verdict=_optional(_verdict, row[21]),
        plugins=_plugins(row[22]),
        machine=row[23],
        profile=_optional(_profile, row[24]),
        enforce_timeout=bool(row[25]),
        run=_run_options(row[26]),
        owner=row[27],
        wishes=_wishes(row[28]),
    )


def row_of_name(sha256: str, name: SampleName) -> tuple[Any, ...]:
    """The values of a row of `add_names`."""
    return sha256, name.name, name.origin, name.archive


def record_of(row: Row) -> TaskRecord:
    """The task and its sample in a row of `tasks`, the total left out."""
    task = task_of(row)
    size_bytes, first_seen_at, identification, notes, tags, names, results_removed_at = row[TASK_WIDTH:]
    return TaskRecord(
        task,
        Sample(
            sha256=task.sha256,
            size_bytes=size_bytes,
            first_seen_at=first_seen_at,
            names=tuple(
                SampleName(bytes.fromhex(name), bytes.fromhex(origin), archive)
                for _, name, origin, archive in sorted(_names(names))
            ),
            identification=_optional(_identification, identification),
            notes=() if notes == "[]" else notes_of(notes),
            tags=() if tags == "[]" else tags_of(tags),
        ),
        results_removed_at=results_removed_at,
    )


def event_of(row: Row) -> Event:
    """The event in a row of `events`."""
    engine_id, epoch, seq, at, body = row
    return Event(Position(engine_id, epoch, seq), at, _body(body))


def row_of_action(record: ActionRecord) -> tuple[Any, ...]:
    """The values of a row of `add_actions`."""
    action, done_to = json_text(record.action), json_text(record.done_to)
    return record.number, record.at, record.actor, record.origin, action, record.done, record.message, done_to


def action_of(row: Row) -> ActionRecord:
    """The record in a row of `actions`."""
    number, at, actor, origin, action, done, message, done_to = row
    return ActionRecord(
        number=number,
        at=at,
        actor=actor,
        origin=origin,
        action=_action(action),
        done=bool(done),
        message=message,
        done_to=_done_to(done_to),
    )


def pending_entries(rows: Iterable[Row]) -> Iterator[PendingEntry]:
    """The entries in the rows of `pending`; those of one row share their requirement class."""
    for requires, priority, ids in rows:
        wanted = requirement_class(requires)
        for task_id in _ids(ids):
            yield PendingEntry(task_id, priority, wanted)


@lru_cache(maxsize=1024)
def requirement_class(text: str) -> RequirementClass:
    """The requirement class in JSON text; equal texts give the same object."""
    return msgspec.json.decode(text, type=RequirementClass)


def _optional(decode: Any, value: str | None) -> Any:
    return None if value is None else decode(value)
