"""Which changes become one row, and which have to be written one after the other."""

from __future__ import annotations

import msgspec

from malbox_tui.model.events import PoolResumed
from malbox_tui.model.task import Task, TaskState, claimed
from malbox_tui.ports import Change
from malbox_tui.store.waves import Span, waves
from tests.store.builders import NOON, give_back, run, settle, stop


def owned(task_id: int, token: str = "token") -> Task:
    task = Task(id=task_id, sha256="a", created_at=NOON, stage_since=NOON)
    return claimed(task, "worker", f"{token}-{task_id}", NOON, NOON + 60)


def chain(task: Task) -> list[Change]:
    changes = [run(task)]
    changes.append(stop(changes[-1].after))
    changes.append(settle(changes[-1].after))
    return changes


def edit(task: Task, **values: object) -> Change:
    return Change(task, msgspec.structs.replace(task, **values), PoolResumed(), NOON)


def test_moves_that_follow_each_other_are_one_row() -> None:
    task = owned(1)
    changes = chain(task)
    assert waves(changes) == [{1: Span(task, changes[-1].after)}]


def test_interleaved_tasks_are_one_row_each() -> None:
    first, second = chain(owned(1)), chain(owned(2))
    changes = [change for pair in zip(first, second, strict=True) for change in pair]
    assert waves(changes) == [{1: Span(first[0].before, first[-1].after), 2: Span(second[0].before, second[-1].after)}]


def test_a_move_from_elsewhere_begins_a_new_wave() -> None:
    task = owned(1)
    running = run(task)
    stale = run(task)
    assert waves([running, stale]) == [{1: Span(task, running.after)}, {1: Span(task, stale.after)}]


def test_what_follows_the_end_of_ownership_is_written_after_it() -> None:
    back = give_back(owned(1))
    reordered = edit(back.after, priority=9)
    assert waves([back, reordered]) == [{1: Span(back.before, back.after)}, {1: Span(back.after, reordered.after)}]


def test_changes_of_a_waiting_task_are_one_row() -> None:
    task = Task(id=1, sha256="a", created_at=NOON, stage_since=NOON)
    second = edit(task, priority=2)
    third = edit(second.after, priority=3)
    assert waves([second, third]) == [{1: Span(task, third.after)}]


def test_a_change_that_takes_a_token_is_written_between_those_before_and_after_it() -> None:
    gone, taken = (
        settle(stop(run(owned(1)).after).after),
        edit(Task(id=2, sha256="b", created_at=NOON, stage_since=NOON), token="token-1", state=TaskState.INITIALIZING),
    )
    later = run(owned(3))
    assert [list(wave) for wave in waves([gone, taken, later])] == [[1], [2], [3]]


def test_a_lease_that_a_later_move_would_shorten_keeps_the_moves_apart() -> None:
    task = owned(1)
    longer = edit(task, lease_until=NOON + 900)
    shorter = edit(longer.after, lease_until=NOON + 100)
    assert len(waves([longer, shorter])) == 2


def test_no_changes_are_no_waves() -> None:
    assert waves([]) == []
