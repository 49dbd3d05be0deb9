"""Which time limit each attempt reaches next, added to what is told of workers and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from malbox_tui.engine.attempt import Attempt
from malbox_tui.model.due import Due
from malbox_tui.model.queries import TaskPage
from malbox_tui.model.worker import WorkerView


def of_workers(views: Iterable[WorkerView], attempts: Mapping[int, Attempt], now: float) -> tuple[WorkerView, ...]:
    """The workers, each with what is due for the tasks that it holds; `now` is the wall time."""
    return tuple(
        msgspec.structs.replace(view, dues=tuple(_due(task_id, attempts, now) for task_id in view.task_ids))
        if view.task_ids
        else view
        for view in views
    )


def of_tasks(page: TaskPage, attempts: Mapping[int, Attempt]) -> TaskPage:
    """The page, each task at work with what is due for it."""
    rows = [
        msgspec.structs.replace(row, due=_due(row.task.id, attempts, page.clock)) if row.task.state.is_owned else row
        for row in page.rows
    ]
    return msgspec.structs.replace(page, rows=tuple(rows))


def _due(task_id: int, attempts: Mapping[int, Attempt], now: float) -> Due | None:
    attempt = attempts.get(task_id)
    return None if attempt is None else attempt.time.due(now)
