"""A console under test, and what is done in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual import events
from textual.pilot import Pilot

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.task import TaskState
from malbox_tui.tui.app import MalboxApp
from tests.tui.scripted import ScriptedClient, ScriptedIntake, record, surroundings, worker

Play = Callable[[MalboxApp, Pilot[ShutdownMode]], Awaitable[None]]


async def played(
    play: Play, client: ScriptedClient | None = None, *paths: bytes, **around: object
) -> tuple[MalboxApp, ScriptedClient]:
    """Run the console over `client`, or over one with three tasks, let `play` press keys in it, and give both when it has ended."""
    rows = [record(1), record(2, TaskState.RUNNING), record(3, TaskState.PENDING)]
    client = client or ScriptedClient(rows, [worker(1, 2), worker(2)])
    app = MalboxApp(surroundings(client, ScriptedIntake(b"/in/a.exe", b"/in/b.exe"), paths=paths, **around))
    async with app.run_test(size=(120, 40)) as pilot:
        while app.picture.overview is None or not app.dashboard.tasks.total:
            await pilot.pause()
            await app.show_changes()
        await play(app, pilot)
    return app, client


def engine(app: MalboxApp) -> ScriptedClient:
    """What the console is over."""
    client = app._around.client
    assert isinstance(client, ScriptedClient)
    return client


async def until(pilot: Pilot[ShutdownMode], condition: Callable[[], bool]) -> None:
    """Let the console go on until this holds."""
    async with asyncio.timeout(60):
        while not condition():
            await pilot.pause()


def at_once(app: MalboxApp, key: str, times: int) -> None:
    """A key so often before the first of them is acted upon."""
    for _ in range(times):
        app.post_message(events.Key(key, None))
