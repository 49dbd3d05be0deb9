"""Many events over many tasks: keys answer all the while, and what the console holds stays bounded."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from textual.pilot import Pilot

from malbox_tui.model.events import Event, EventBody, Gap, Position, TaskCompleted, TaskCreated, TaskStageChanged, TaskStarting
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.live import KEPT_LINES, KEPT_TASKS
from tests.tui.scripted import ENGINE_ID, NOW, ScriptedClient, record, sha256_of, surroundings, worker

TASKS = 20_000
EVENTS = 10_000
EVENTS_BETWEEN_KEYS = 500
ROOM_BYTES = 3_000_000
"""What the second half of the events may add: caches that fill up, far less than the events themselves."""

pytestmark = pytest.mark.slow


class Stream(ScriptedClient):
    """Gives events as they are handed over, and keeps none."""

    def __init__(self) -> None:
        super().__init__([record(number, TaskState.PENDING) for number in range(1, TASKS + 1)], [worker(1), worker(2)])
        self.coming: asyncio.Queue[EventBody] = asyncio.Queue()
        self.given = 0

    async def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        while True:
            body = await self.coming.get()
            self.given += 1
            yield Event(Position(ENGINE_ID, 1, self.given), NOW, body)


def _life_of(number: int) -> list[EventBody]:
    return [
        TaskCreated(task_id=number, sha256=sha256_of(number), type="static", priority=1, name=f"sample-{number}.exe"),
        TaskStarting(task_id=number, worker="w", attempt=1),
        TaskStageChanged(task_id=number, state=TaskState.RUNNING),
        TaskStageChanged(task_id=number, state=TaskState.STOPPING),
        TaskCompleted(task_id=number, ended_by=EndedBy.FINISHED, reason="Finished."),
    ]


async def _events(app: MalboxApp, pilot: Pilot[object], client: Stream, numbers: range) -> None:
    """Hand over the lives of tasks, a key pressed after each few hundred events; each key moves the cursor by a row."""
    bodies = [body for number in numbers for body in _life_of(number)]
    for start in range(0, len(bodies), EVENTS_BETWEEN_KEYS):
        for body in bodies[start : start + EVENTS_BETWEEN_KEYS]:
            client.coming.put_nowait(body)
        before = app.dashboard.tasks.cursor_index()
        await pilot.press("down")
        await app.show_changes()
        assert app.dashboard.tasks.cursor_index() == (before or 0) + 1
    while not client.coming.empty():
        await pilot.pause()
    await app.show_changes()


async def test_keys_answer_and_memory_stays_flat_under_a_flood_of_events() -> None:
    client = Stream()
    app = MalboxApp(surroundings(client))
    lives = EVENTS // 5
    async with app.run_test(size=(120, 40)) as pilot:
        while not app.dashboard.tasks.total:
            await pilot.pause()
            await app.show_changes()
        await _events(app, pilot, client, range(TASKS + 1, TASKS + lives // 2 + 1))
        tracemalloc.start()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        await _events(app, pilot, client, range(TASKS + lives // 2 + 1, TASKS + lives + 1))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert client.given == EVENTS
    assert len(app.picture.tasks) <= KEPT_TASKS
    assert len(app.picture.log) <= KEPT_LINES
    assert after - before < ROOM_BYTES
