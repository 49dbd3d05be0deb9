"""The engine on all its real adapters: SQLite, the quarantine, confined plugins. What is scripted is the plugins' code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import AnalysisSettings, GeneralSettings, Settings
from malbox_tui.engine.engine import Engine
from malbox_tui.model.commands import CancelTasks, Command, RetryTasks, ShutdownMode
from malbox_tui.model.events import Event, PluginStarted, TaskCanceled, TaskCompleted, TaskFailed, TaskTimedOut
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.report import PluginStatus
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.model.task import EndedBy, Task, TaskState
from malbox_tui.runtime.assembly import build_engine
from tests.confine.rig import write_plugin

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.slow]

GRACE_S = 0.5

SPIN_IN_C = """
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(1000)
        os._exit(0)
    ctx.results().push(malbox.PluginResult.json("before", 1))
    import re
    re.match(r"(a*)*b", "a" * 64)
"""


@dataclass
class Running:
    """A running engine, its events so far, and where it keeps things."""

    engine: Engine
    events: list[Event]
    folders: DataFolders

    async def add(self, *contents: bytes) -> None:
        await self.engine.submit(_offers(*contents), SubmissionOptions())

    async def until(self, seen: Callable[[list[Event]], bool]) -> None:
        self.events.clear()
        async with asyncio.timeout(60):
            async for item in self.engine.events(self.start):
                assert isinstance(item, Event)
                self.events.append(item)
                if seen(self.events):
                    return
        raise AssertionError("the events ended")

    async def task(self, task_id: int) -> Task:
        page = await self.engine.query(TaskQuery(where=TaskFilter(task_ids=(task_id,))))
        return page.rows[0].task

    def __post_init__(self) -> None:
        self.start = self.engine._newsroom.position


@asynccontextmanager
async def running(tmp_path: Path, plugin: str, *, timeout_s: float = 60.0, workers: int = 1) -> AsyncIterator[Running]:
    write_plugin(tmp_path / "plugins", plugin)
    folders = DataFolders.under(tmp_path / "data")
    folders.create()
    settings = Settings(
        general=GeneralSettings(min_workers=workers, max_workers=workers),
        analysis=AnalysisSettings(timeout_s=timeout_s, cancel_grace_s=GRACE_S),
    )
    ready = asyncio.Event()
    engine = build_engine(settings, folders, tmp_path / "plugins")
    async with asyncio.TaskGroup() as group:
        life = group.create_task(engine.run(ready.set))
        await ready.wait()
        try:
            yield Running(engine, [], folders)
        finally:
            engine.stop(ShutdownMode.GIVE_BACK)
    assert life.result() == []
    assert psutil.Process().children(recursive=True) == []


def _saw(kind: type, count: int = 1) -> Callable[[list[Event]], bool]:
    return lambda events: sum(isinstance(event.body, kind) for event in events) >= count


async def test_canceling_a_plugin_that_spins_in_c_ends_its_whole_process_tree_and_the_worker_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path, SPIN_IN_C.replace("import re", "import re\n    if ctx.task().id != 1: return")) as rig:
        await rig.add(b"spins", b"ends")
        await rig.until(_saw(PluginStarted))
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        outcome = await rig.engine.do(Command(action=CancelTasks(task_ids=(1,)), actor="ana"))
        assert outcome.done
        await rig.until(_saw(TaskCanceled))
        assert not {child.pid for child in psutil.Process().children(recursive=True)} & before
        task = await rig.task(1)
        assert (task.state, task.ended_by) == (TaskState.CANCELED, EndedBy.USER)
        assert task.reason == "Canceled by ana while running: its plugins were at work."
        assert task.plugins[0].status is PluginStatus.CANCELED
        await rig.until(_saw(TaskCompleted))


async def test_a_timeout_keeps_the_results_there_are(tmp_path: Path) -> None:
    async with running(tmp_path, SPIN_IN_C, timeout_s=1.0) as rig:
        await rig.add(b"spins")
        await rig.until(_saw(TaskTimedOut))
        task = await rig.task(1)
        assert (task.state, task.ended_by) == (TaskState.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT)
        assert [result.name for result in task.plugins[0].results] == ["before"]
        assert await rig.engine.read(task.plugins[0].results[0], 100) == b"1"


async def test_stopping_with_a_deaf_plugin_gives_its_task_back_in_bounded_time(tmp_path: Path) -> None:
    async with running(tmp_path, SPIN_IN_C) as rig:
        await rig.add(b"spins")
        await rig.until(_saw(PluginStarted))
    async with running(tmp_path / "again", "pass") as other:
        assert other.folders != rig.folders
    settings = Settings(general=GeneralSettings(min_workers=0, max_workers=0))
    ready = asyncio.Event()
    engine = build_engine(settings, rig.folders, tmp_path / "plugins")
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run(ready.set))
        await ready.wait()
        task = (await engine.query(TaskQuery())).rows[0].task
        engine.stop(ShutdownMode.GIVE_BACK)
    assert (task.state, task.attempts, task.crashes) == (TaskState.PENDING, 0, 0)
    assert list(rig.folders.results.iterdir()) == []


async def test_a_sample_that_was_damaged_in_the_quarantine_fails_its_task_and_submitting_it_again_mends_it(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, "pass") as rig:
        await rig.add(b"sound")
        await rig.until(_saw(TaskCompleted))
        [kept] = rig.folders.quarantine.rglob("*.cart")
        kept.chmod(0o600)
        kept.write_bytes(kept.read_bytes()[:-20])
        await rig.engine.do(Command(action=RetryTasks(task_ids=(1,)), actor="ana"))
        await rig.until(_saw(TaskFailed))
        task = await rig.task(2)
        assert (task.state, task.ended_by) == (TaskState.FAILED, EndedBy.SAMPLE_CHANGED)
        assert "Submit the file again" in task.reason
        await rig.engine.submit(_offers(b"sound"), SubmissionOptions(again=True))
        await rig.until(_saw(TaskCompleted, 2))
        assert (await rig.task(3)).state is TaskState.COMPLETED


async def _offers(*contents: bytes) -> AsyncIterator[Offer]:
    for content in contents:
        yield Offer(SampleName(content), _chunks(content))


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content
