"""Watched folders beside a running engine: real folders, hints, loops and threads; only the engine's adapters are scripted."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.saved_watches import SavedWatches
from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.config.watching import Afterwards, WatchSettings
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.engine import Engine
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.commands import Action, AddWatch, Command, CommandOutcome, RemoveWatch, ShutdownMode
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import ActionTaken, Event, FolderTold, Gap, TaskCreated
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.watching import WatchSpec, WatchState
from malbox_tui.runtime.engine_thread import EngineThread
from malbox_tui.runtime.watching import Watching
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import ScriptedQuarantine, ScriptedResults, ScriptedRunner

PATIENCE_S = 60


def _engine(settings: Settings) -> Engine:
    runner = ScriptedRunner(seconds=0.0)
    return Engine(settings, Adapters(MemoryStore(), ScriptedQuarantine(), ScriptedResults(), runner, SystemClock()))


@contextmanager
def watching(tmp_path: Path, *watches: WatchSettings, book: SavedWatches | None = None) -> Iterator[EngineThread]:
    settings = Settings(general=GeneralSettings(max_workers=1), watch=watches)
    folders = DataFolders.under(tmp_path / "data")
    folders.create()
    thread = EngineThread(lambda: _engine(settings), lambda: None, partial(Watching, settings, folders, book))
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


async def do(thread: EngineThread, action: Action) -> CommandOutcome:
    return await thread.client.do(Command(action=action, actor="ana"))


def tasks_of(thread: EngineThread, name: str) -> asyncio.Task[object]:
    return TaskTracker().spawn(until(thread.client.events(None), is_task(name)), name="following")


@pytest.mark.slow
def test_a_folder_is_added_and_removed_while_the_engine_runs(tmp_path: Path) -> None:
    folder, source = tmp_path / "in", ConfigSource(tmp_path / "config.toml", named=False)
    folder.mkdir()
    (folder / "before").write_bytes(b"lay there")
    spec = WatchSpec(path=str(folder), settle_s=0.01)

    async def work(thread: EngineThread) -> None:
        assert (await thread.client.overview()).watches == ()
        following = tasks_of(thread, "before")
        outcome = await do(thread, AddWatch(watch=spec))
        where = f"on {socket.gethostname()}"
        assert outcome == CommandOutcome(
            done=True, message=f"Folder {folder} {where} is watched. Kept in {tmp_path}/config.watch.toml."
        )
        await following
        following = tasks_of(thread, "after")
        (folder / "after").write_bytes(b"came later")
        await following
        assert [watch.path for watch in (await thread.client.overview()).watches] == [str(folder)]
        assert [watch.path for watch in source.load().watch] == [str(folder)]

        refused = await do(thread, AddWatch(watch=spec))
        assert not refused.done
        assert "is the same folder as that of" in refused.message
        outcome = await do(thread, RemoveWatch(path=str(folder)))
        assert outcome.message.startswith(f"Folder {folder} {where} is watched no more. Kept in the configuration itself")
        assert (await thread.client.overview()).watches == ()
        assert source.load().watch == ()

        (folder / "unseen").write_bytes(b"while nobody watched")
        other = tmp_path / "other"
        other.mkdir()
        (other / "elsewhere").write_bytes(b"a whole look at another folder later")
        following = tasks_of(thread, "elsewhere")
        await do(thread, AddWatch(watch=WatchSpec(path=str(other), settle_s=0.01)))
        await following
        assert (await thread.client.query(TaskQuery())).total == 3

        following = tasks_of(thread, "unseen")
        while not (outcome := await do(thread, AddWatch(watch=spec))).done:
            assert "is still handing in what it had" in outcome.message
        await following
        assert (await thread.client.query(TaskQuery())).total == 4, "what was taken before is not taken again"

    with watching(tmp_path, book=source.saved_watches()) as thread:
        asyncio.run(work(thread))


def test_orders_for_watched_folders_are_in_the_log_of_actions_and_what_makes_no_sense_changes_nothing(tmp_path: Path) -> None:
    async def work(thread: EngineThread) -> None:
        following = TaskTracker().spawn(
            until(thread.client.events(None), lambda body: isinstance(body, ActionTaken)), name="following"
        )
        missing = WatchSpec(path=f"{tmp_path}/later")
        outcome = await do(thread, AddWatch(watch=missing))
        assert "No such folder is there now; it is looked for." in outcome.message
        assert outcome.message.endswith("The next start has the watched folders of the configuration again.")
        action = await following
        assert isinstance(action, ActionTaken)
        assert (action.actor, action.action, action.done) == ("ana", AddWatch(watch=missing), True)

        outcome = await do(thread, RemoveWatch(path="/nowhere"))
        there = f"there are: {tmp_path}/later. Nothing was changed."
        assert outcome == CommandOutcome(done=False, message=f"No folder is watched as '/nowhere'; {there}")
        outcome = await do(thread, AddWatch(watch=WatchSpec(path="relative")))
        assert not outcome.done
        assert len((await thread.client.overview()).watches) == 1

    with watching(tmp_path) as thread:
        asyncio.run(work(thread))


async def test_an_engine_beside_which_nobody_watches_says_so() -> None:
    engine = _engine(Settings())
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run(ready.set))
        await ready.wait()
        for action in (AddWatch(watch=WatchSpec(path="/in")), RemoveWatch(path="/in")):
            outcome = await engine.do(Command(action=action, actor="ana"))
            assert outcome.message == "This engine watches no folders; `serve` and the console do. Nothing was changed."
        engine.stop(ShutdownMode.GIVE_BACK)
