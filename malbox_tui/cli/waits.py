"""Why nothing moves: told while an analysis waits for something that no worker is at."""

from __future__ import annotations

from collections.abc import Callable

from malbox_tui.cli.text import sentence
from malbox_tui.engine import clock
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.queries import TaskFilter, TaskQuery, TaskSort
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Client

LOOK_EVERY_S = 5.0
ROWS = 100

_PENDING = TaskQuery(where=TaskFilter(states=frozenset({TaskState.PENDING})), sort=TaskSort.QUEUE, limit=ROWS)


async def tell_of_waits(client: Client, tell: Callable[[str], None]) -> None:
    """For ever: when tasks wait and no worker is busy, `tell` why, each reason once. Ends with the engine, or by cancellation."""
    told: set[str] = set()
    try:
        while True:
            await clock.sleep(LOOK_EVERY_S)
            overview = await client.overview()
            if any(group.busy for group in overview.groups):
                continue
            for row in (await client.query(_PENDING)).rows:
                if row.waiting is not None and row.waiting.position is not None and row.waiting.reason not in told:
                    told.add(row.waiting.reason)
                    tell(sentence(f"Task {row.task.id}: {row.waiting.reason.rstrip('.')}."))
    except EngineStopped:
        return
