"""What the tests of the contract ask of a store, and do to it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from malbox_tui.model.events import TaskCanceled
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.task import EndedBy, Task, Trigger, ended_while_pending
from malbox_tui.ports import Change, Store
from tests.store.builders import NOON

T = TypeVar("T")


async def query(store: Store, **values: object) -> list[int]:
    page = await store.tasks(TaskQuery(where=TaskFilter(**values)), NOON)  # type: ignore[arg-type]
    return [record.task.id for record in page.rows]


async def stored(store: Store, task_id: int) -> Task:
    page = await store.tasks(TaskQuery(where=TaskFilter(task_ids=(task_id,))), NOON)
    return page.rows[0].task


async def begun(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """`work` as a task that has reached its first wait."""
    handle = asyncio.get_running_loop().create_task(work)
    reached = asyncio.Event()
    asyncio.get_running_loop().call_soon(reached.set)
    await reached.wait()
    return handle


def cancel_pending(task: Task) -> Change:
    after = ended_while_pending(task, Trigger.CANCEL, NOON + 1, EndedBy.USER, "canceled by an operator")
    return Change(task, after, TaskCanceled(task_id=task.id, ended_by=EndedBy.USER, reason=after.reason), NOON + 1)
