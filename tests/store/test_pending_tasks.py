"""The pending tasks that a claim needn't read."""

from __future__ import annotations

import asyncio
from pathlib import Path

from malbox_tui.model.task import Task, TaskState
from malbox_tui.store.pending_tasks import CAPACITY, PendingTasks
from tests.store.builders import NOON, Told, claim_request, new_task, sqlite_store


def task(task_id: int) -> Task:
    return Task(id=task_id, sha256="a", created_at=NOON, stage_since=NOON)


def test_a_task_is_given_out_once() -> None:
    held = PendingTasks()
    held.keep([task(1), task(2)])
    assert [held.take(1), held.take(1), held.take(3)] == [task(1), None, None]


def test_the_oldest_go_when_there_are_too_many() -> None:
    held = PendingTasks(capacity=2)
    held.keep([task(1), task(2)])
    held.keep([task(3)])
    assert [held.take(1), held.take(2), held.take(3)] == [None, task(2), task(3)]


def test_nothing_is_held_after_a_failure() -> None:
    held = PendingTasks()
    held.keep([task(1)])
    held.clear()
    assert held.take(1) is None


async def test_tasks_of_a_long_queue_are_claimed_as_they_were_added(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path / "store.sqlite")
    await store.open(Told())
    added = await asyncio.gather(*(store.add(new_task(f"content {number}")) for number in range(CAPACITY + 9)))
    claims = [store.claim(claim_request(result.task.id, f"token-{result.task.id}")) for result in (*added[:20], *added[-20:])]
    owned = await asyncio.gather(*claims)
    await store.close()
    assert [task and (task.id, task.sha256, task.state) for task in owned] == [
        (result.task.id, result.task.sha256, TaskState.INITIALIZING) for result in (*added[:20], *added[-20:])
    ]
