"""What adding, claiming and changing mean, whatever the store is made of. Pure functions on values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import attrgetter

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.errors import LeaseLost, StaleTask
from malbox_tui.model.events import ActionTaken, SampleMarked, SampleRemoved, TaskCreated, TaskStarting
from malbox_tui.model.intake import Fate, IntakeEntry, IntakeLine
from malbox_tui.model.sample import Marks, Note, escape, marks_after
from malbox_tui.model.task import Task, TaskState, claimed
from malbox_tui.model.upkeep import Cause
from malbox_tui.ports import Added, Change, ClaimRequest, NewTask

_FIXED = ("id", "sha256", "retry_of", "created_at")
"""What no change of a task alters."""

_fixed = attrgetter(*_FIXED)


def task_to_join(new: NewTask, live: Task | None, completed: Task | None, latest: Task | None) -> Task | None:
    """The task that stands for `new` instead of one of its own: the content's pending or owned one, else its completed one. What is to
    be unique joins the latest of all, which is not looked up for others."""
    if new.retry_of is not None:
        return None
    if live is not None or new.again:
        return live
    return completed or (latest if new.unique else None)


def created(new: NewTask, task_id: int) -> Task:
    """The task that `new` becomes."""
    return Task(
        id=task_id,
        sha256=new.sha256,
        type=new.requires.task_type,
        requires=new.requires,
        priority=new.priority,
        timeout_s=new.timeout_s,
        enforce_timeout=new.enforce_timeout,
        run=new.run,
        profile=new.profile,
        wishes=new.wishes,
        owner=new.owner,
        retry_of=new.retry_of,
        created_at=new.at,
        stage_since=new.at,
    )


def news_of_creation(task: Task, name: bytes) -> TaskCreated:
    """The event of a new task; `name` is what to call its sample, empty when it has no name."""
    return TaskCreated(
        task_id=task.id,
        sha256=task.sha256,
        type=task.type,
        priority=task.priority,
        name=escape(name),
        retry_of=task.retry_of,
    )


def entry_of(new: NewTask, added: Added) -> IntakeEntry | None:
    """The line of a content that came to the store; None: it belongs to no intake."""
    if new.intake is None or new.name is None:
        return None
    line = IntakeLine(
        fate=Fate.ACCEPTED if added.created else Fate.DUPLICATE,
        name=new.name,
        at=new.at,
        sha256=new.sha256,
        size_bytes=new.size_bytes,
        task_id=added.task.id,
    )
    return IntakeEntry(new.intake, line)


def claimed_by(task: Task, claim: ClaimRequest) -> Task:
    """`task`, which is pending, as the claimer owns it."""
    return claimed(task, claim.worker, claim.token, claim.at, claim.lease_until, claim.machine)


def news_of_claim(task: Task) -> TaskStarting:
    """The event of a claim; `task` is as it was claimed."""
    return TaskStarting(task_id=task.id, worker=task.worker or "", attempt=task.attempts, machine=task.machine)


def record_of(taken: ActionTaken, number: int, at: float) -> ActionRecord:
    """What the log of actions keeps of an event with this number."""
    return ActionRecord(
        number=number,
        at=at,
        actor=taken.actor,
        origin=taken.origin,
        action=taken.action,
        done=taken.done,
        message=taken.message,
        done_to=taken.done_to,
    )


def news_of_removal(sha256: str, cause: Cause, states: Mapping[int, TaskState]) -> SampleRemoved:
    """The event of a sample that goes with its tasks, which are in these states."""
    return SampleRemoved(sha256=sha256, cause=cause, task_ids=tuple(states), states=dict(Counter(states.values())))


def marks_of(marks: Marks, marking: SampleMarked, at: float) -> Marks:
    """A sample's notes and tags after somebody marked it."""
    note = Note(at, marking.actor, marking.note) if marking.note else None
    return marks_after(marks, note, marking.tags, marking.untags)


def loss(change: Change) -> StaleTask:
    """Why a change was not made although the store works."""
    kind = LeaseLost if change.before.state.is_owned else StaleTask
    return kind(change.before.id, change.before.state.value)


def check_change(change: Change) -> None:
    """Raises ValueError when `change` isn't the move of one task."""
    before, after = change.before, change.after
    if _fixed(before) != _fixed(after):
        altered = [name for name, old, new in zip(_FIXED, _fixed(before), _fixed(after), strict=True) if old != new]
        raise ValueError(f"a change can't alter {', '.join(altered)} of task {before.id}")
