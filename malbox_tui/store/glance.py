"""A quick look into a store, without an event loop: for completing words in a shell, where each tenth of a second is felt."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path

from malbox_tui.model.task import TaskState
from malbox_tui.store.read_only import read_only
from malbox_tui.store.statements import statement

BUSY_TIMEOUT_S = 0.2


def task_ids(path: Path, states: Collection[TaskState], beginning: str, limit: int) -> list[int]:
    """The newest tasks in one of `states` whose ids begin with these digits, at most `limit`; none when the store can't be read."""
    marks = ", ".join("?" * len(states))
    sql = statement("glance").format(states=marks)
    try:
        connection = read_only(path, BUSY_TIMEOUT_S)
        try:
            return [task_id for (task_id,) in connection.execute(sql, (*map(str, states), f"{beginning}*", limit))]
        finally:
            connection.close()
    except (sqlite3.Error, OSError):
        return []
