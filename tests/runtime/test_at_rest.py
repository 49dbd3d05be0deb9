"""An engine at rest: it does what can be done to tasks that wait or have ended, and touches no plugin and no machine."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.machines import MachineSettings, Provider
from malbox_tui.config.settings import Settings
from malbox_tui.model.commands import Action, CancelTasks, Command, RetryTasks, ShutdownMode
from malbox_tui.model.errors import DataFolderInUse
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.ports import Client
from malbox_tui.runtime import start_engine_at_rest
from malbox_tui.runtime.engine_thread import EngineThread
from tests.store.builders import added, claimed, run, sqlite_store

LINUX = RequirementClass("dynamic", "linux")


@pytest.fixture
def folders(tmp_path: Path) -> DataFolders:
    return DataFolders.under(tmp_path / "data")


@contextmanager
def at_rest(folders: DataFolders, settings: Settings = Settings()) -> Iterator[EngineThread]:  # noqa: B008 - immutable
    engine = start_engine_at_rest(settings, folders)
    try:
        yield engine
    finally:
        engine.stop(ShutdownMode.GIVE_BACK)
        assert engine.join(60)
    assert engine.error is None


def with_machine() -> Settings:
    return Settings(machines=(MachineSettings(name="m1", provider=Provider.SIMULATED, platform="linux"),))


async def submit(client: Client, *contents: bytes, requires: RequirementClass = LINUX) -> list[str]:
    async def chunks(content: bytes) -> AsyncIterator[bytes]:
        yield content

    async def offers() -> AsyncIterator[Offer]:
        for content in contents:
            yield Offer(SampleName(content), chunks(content))

    account = await client.submit(offers(), SubmissionOptions(requires=requires))
    return [type(receipt).__name__ for receipt in account.receipts]


def events(folders: DataFolders) -> list[str]:
    connection = sqlite3.connect(folders.store)
    kinds = [kind for (kind,) in connection.execute("SELECT json_extract(body, '$.event') FROM event ORDER BY seq")]
    connection.close()
    return kinds


async def done(client: Client, action: Action) -> bool:
    return (await client.do(Command(action=action, actor="ana"))).done


def test_nothing_is_told_of_its_coming_and_going(folders: DataFolders) -> None:
    with at_rest(folders, with_machine()) as engine:
        asyncio.run(submit(engine.client, b"a", b"b"))
        asyncio.run(done(engine.client, CancelTasks(task_ids=(1,))))
    assert events(folders) == ["TaskCreated", "TaskCreated", "ActionTaken", "TaskCanceled", "ActionTaken"]


def test_a_machine_that_is_there_twice_is_no_news_either(folders: DataFolders) -> None:
    with at_rest(folders, Settings(machines=with_machine().machines * 2)) as engine:
        names = [machine.name for machine in asyncio.run(engine.client.overview()).machines]
    assert names == ["m1", "m1 (2)"]
    assert events(folders) == []


def test_no_plugin_is_started_and_no_task_is_taken(folders: DataFolders) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with at_rest(folders) as engine:
        asyncio.run(submit(engine.client, b"a", requires=RequirementClass()))
        overview = asyncio.run(engine.client.overview())
        assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
        assert overview.workers == ()
        assert overview.counts[TaskState.PENDING] == 1


def test_it_knows_what_the_configured_machines_could_serve(folders: DataFolders) -> None:
    with at_rest(folders, with_machine()) as engine:
        assert asyncio.run(submit(engine.client, b"a")) == ["Accepted"]
        assert asyncio.run(submit(engine.client, b"b", requires=RequirementClass("dynamic", "windows"))) == ["Refused"]
        assert [machine.name for machine in asyncio.run(engine.client.overview()).machines] == ["m1"]


def test_what_a_dead_engine_left_at_work_is_put_right_and_can_be_canceled(folders: DataFolders) -> None:
    async def interrupted() -> None:
        store = sqlite_store(folders.store)
        await store.open(lambda events: None)
        await store.write(run(await claimed(store, await added(store))))
        await store.close()

    folders.create()
    asyncio.run(interrupted())
    with at_rest(folders) as engine:
        assert asyncio.run(done(engine.client, CancelTasks(task_ids=(1,))))
        assert asyncio.run(done(engine.client, RetryTasks(task_ids=(1,))))
        page = asyncio.run(engine.client.query(TaskQuery()))
    assert [row.task.state for row in page.rows] == [TaskState.PENDING, TaskState.CANCELED]
    assert events(folders)[3:] == ["TaskGivenBack", "TaskCanceled", "ActionTaken", "TaskCreated", "ActionTaken"]


def test_two_can_not_have_one_folder(folders: DataFolders) -> None:
    with at_rest(folders), pytest.raises(DataFolderInUse):
        start_engine_at_rest(Settings(), folders)
    with at_rest(folders):
        pass
