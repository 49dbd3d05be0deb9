"""Watched folders beside a running engine: real folders, hints, loops and threads; only the engine's adapters are scripted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.config.watching import Afterwards, WatchSettings
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.engine import Engine
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import ActionTaken, Event, FolderTold, Gap, TaskCreated
from malbox_tui.model.watching import WatchState
from malbox_tui.runtime.engine_thread import EngineThread
from malbox_tui.runtime.watching import Watching
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import ScriptedQuarantine, ScriptedResults, ScriptedRunner

PATIENCE_S = 60


def _engine(settings: Settings) -> Engine:
    runner = ScriptedRunner(seconds=0.0)
    return Engine(settings, Adapters(MemoryStore(), ScriptedQuarantine(), ScriptedResults(), runner, SystemClock()))


@contextmanager
def watching(tmp_path: Path, *watches: WatchSettings) -> Iterator[EngineThread]:
    settings = Settings(general=GeneralSettings(max_workers=1), watch=watches)
    folders = DataFolders.under(tmp_path / "data")
    folders.create()
    thread = EngineThread(lambda: _engine(settings), lambda: None, partial(Watching, settings, folders))
    thread.start()
    try:
        yield thread
    finally:
        thread.stop(ShutdownMode.GIVE_BACK)
        assert thread.join(PATIENCE_S)
        assert thread.error is None


async def until(events: AsyncIterator[Event | Gap], is_it: Callable[[object], bool]) -> object:
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            if isinstance(event, Event) and is_it(event.body):
                return event.body
    raise AssertionError("the engine ended before")


def is_task(name: str) -> Callable[[object], bool]:
    return lambda body: isinstance(body, TaskCreated) and body.name == name


@pytest.mark.slow
def test_what_comes_becomes_tasks_whatever_happens_to_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "before").write_bytes(b"while nothing ran")

    async def work(thread: EngineThread) -> None:
        tracker = TaskTracker()
        following = tracker.spawn(until(thread.client.events(None), is_task("hostile\\xff")), name="following")
        (folder / os.fsdecode(b"hostile\xff")).write_bytes(b"one")
        await following
        following = tracker.spawn(until(thread.client.events(None), lambda body: isinstance(body, FolderTold)), name="following")
        folder.rename(tmp_path / "gone")
        told = await following
        assert told == FolderTold(folder=str(folder), message="It can't be looked into: No such file or directory.", bad=True)
        overview = await thread.client.overview()
        assert [watch.state for watch in overview.watches] == [WatchState.AWAY]
        assert overview.troubles == (f"Watched folder {folder}: It can't be looked into: No such file or directory.",)
        following = tracker.spawn(until(thread.client.events(None), is_task("after")), name="following")
        (tmp_path / "gone").rename(folder)
        (folder / "after").write_bytes(b"two")
        await following
        async with asyncio.timeout(PATIENCE_S):
            while (overview := await thread.client.overview()).watches[0].added < 3:
                pass  # A task is told before it is counted.
        assert overview.troubles == ()
        assert [(watch.state, watch.added) for watch in overview.watches] == [(WatchState.WATCHING, 3)]

    with watching(tmp_path, WatchSettings(path=str(folder), settle_s=0.05)) as thread:
        asyncio.run(work(thread))


@pytest.mark.slow
def test_what_a_folder_hands_in_is_done_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    async def work(thread: EngineThread) -> None:
        tracker = TaskTracker()
        following = tracker.spawn(until(thread.client.events(None), lambda body: isinstance(body, ActionTaken)), name="following")
        (folder / "a").write_bytes(b"one")
        await following
        action = following.result()
        assert isinstance(action, ActionTaken)
        assert (action.actor, action.origin) == (f"watch:{folder}", "a watched folder")

    with watching(tmp_path, WatchSettings(path=str(folder), settle_s=0.01, afterwards=Afterwards.MOVE)) as thread:
        asyncio.run(work(thread))
    assert (folder / "done" / "a").read_bytes() == b"one"


def test_it_ends_with_the_engine(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "missing")]
    for folder in folders[:2]:
        folder.mkdir()
    with watching(tmp_path, *(WatchSettings(path=str(folder)) for folder in folders)) as thread:
        thread.stop(ShutdownMode.DRAIN)
        assert thread.join(PATIENCE_S)
    with pytest.raises(EngineStopped):
        asyncio.run(thread.client.overview())
