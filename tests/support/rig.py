"""A real engine on the in-memory store under turned time, with plugins and a quarantine that a test scripts.

`with_engine(test)` runs `test(rig)` against a running engine and checks afterwards what must always hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from malbox_tui.config.settings import AnalysisSettings, GeneralSettings, Settings
from malbox_tui.engine.engine import Adapters, Engine
from malbox_tui.model.commands import Action, Command, CommandOutcome, ShutdownMode
from malbox_tui.model.errors import RefusedContent
from malbox_tui.model.events import Event, Gap
from malbox_tui.model.queries import TaskQuery, TaskSort
from malbox_tui.model.report import Classification, PluginRun, PluginStatus, ResultRef, Verdict
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Account, Offer, SubmissionOptions
from malbox_tui.model.task import Task, TaskState
from malbox_tui.ports import Findings, PluginBench, PluginInfo, PluginJob, ResultWriter, StopSignal, StoredContent
from malbox_tui.store.memory import MemoryStore
from tests.support.virtual_time import LoopClock, run_virtual, settle_loop

CLEAN_RUN = PluginRun("scripted", "1", PluginStatus.COMPLETED, 0.0, (ResultRef("report", "json", 2, "0" * 64, "r"),))


class ScriptedQuarantine:
    """Holds every content: the sum of a content is its text."""

    def __init__(self) -> None:
        self.extract_raises: list[Exception] = []

    async def open(self) -> None: ...

    async def store(self, content: AsyncIterator[bytes], max_bytes: int) -> StoredContent:
        data = b"".join([chunk async for chunk in content])
        if not data:
            raise RefusedContent("empty", "It is empty.")
        return StoredContent(data.decode(), len(data))

    async def extract(self, sha256: str, target: Path) -> int:
        await settle_loop(2)
        if self.extract_raises:
            raise self.extract_raises.pop(0)
        return len(sha256)

    async def close(self) -> None: ...


class ScriptedResults:
    """Remembers what was settled and discarded."""

    def __init__(self) -> None:
        self.settled: list[int] = []
        self.discarded: list[int] = []

    async def open(self) -> None: ...

    def begin(self, task_id: int, token: str, plugin: str, name: str, format: str) -> ResultWriter:
        raise AssertionError("no scripted plugin writes a result")

    async def settle(self, task_id: int, token: str) -> None:
        self.settled.append(task_id)

    async def discard(self, task_id: int, token: str) -> None:
        self.discarded.append(task_id)

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        return b""

    async def close(self) -> None: ...


@dataclass
class ScriptedBench:
    """Runs `seconds` of turned time, or as long as its runner's gate is shut."""

    runner: ScriptedRunner
    inbox: Path = Path("/nowhere")

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        return await self.runner.work(job, stop)


@dataclass
class ScriptedRunner:
    """Plugins that do what the test says, and books of who ran when."""

    seconds: float = 1.0
    deaf: bool = False
    """Takes no notice of being asked to stop, and goes on for `seconds`."""
    runs: tuple[PluginRun, ...] = (CLEAN_RUN,)
    raises: list[BaseException] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    most_at_once: int = 0
    benches_out: int = 0
    isolation: str = "scripted"

    async def open(self) -> Sequence[PluginInfo]:
        return [PluginInfo("scripted", "1", "does what the test says")]

    async def acquire(self) -> PluginBench:
        self.benches_out += 1
        return ScriptedBench(self)

    async def release(self, bench: PluginBench) -> None:
        self.benches_out -= 1

    async def trim(self, benches: int) -> None: ...

    async def close(self) -> None: ...

    async def work(self, job: PluginJob, stop: StopSignal) -> Findings:
        self.order.append(job.task_id)
        self.running.add(job.task_id)
        self.most_at_once = max(self.most_at_once, len(self.running))
        try:
            if self.raises:
                raise self.raises.pop(0)
            return Findings(await self._finish(stop))
        finally:
            self.running.discard(job.task_id)

    async def _finish(self, stop: StopSignal) -> tuple[PluginRun, ...]:
        loop = asyncio.get_running_loop()
        done = loop.create_task(asyncio.sleep(self.seconds))  # noqa: TID251 - turned time
        asked = loop.create_task(stop.wait())
        try:
            await asyncio.wait({done} if self.deaf else {done, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            done.cancel()
            asked.cancel()
        if stop.reason is None:
            return self.runs
        status = PluginStatus.TIMED_OUT if stop.reason == "timeout" else PluginStatus.CANCELED
        return tuple(msgspec.structs.replace(run, status=status) for run in self.runs)


MALICIOUS = msgspec.structs.replace(CLEAN_RUN, verdict=Verdict(Classification.MALICIOUS, 100, labels=("eicar",)))


@dataclass
class EngineRig:
    """A running engine and its scripted surroundings. `store` may outlive the engine, as a disk does."""

    engine: Engine
    store: MemoryStore
    quarantine: ScriptedQuarantine
    results: ScriptedResults
    runner: ScriptedRunner
    events: list[Event] = field(default_factory=list)

    async def add(self, *contents: str, **options: object) -> Account:
        """Submit contents, each named after itself."""

        async def offers() -> AsyncIterator[Offer]:
            for content in contents:
                yield Offer(SampleName(content.encode(), b"/in/" + content.encode()), _chunks(content))

        return await self.engine.submit(offers(), SubmissionOptions(**options))  # type: ignore[arg-type]

    async def do(self, action: Action, **fields: str) -> CommandOutcome:
        return await self.engine.do(Command(action=action, actor="ana", **fields))

    async def tasks(self) -> dict[int, Task]:
        page = await self.engine.query(TaskQuery(sort=TaskSort.OLDEST, limit=1000))
        return {record.task.id: record.task for record in page.rows}

    async def task(self, task_id: int) -> Task:
        return (await self.tasks())[task_id]

    async def all_final(self, within_s: float = 10_000.0) -> dict[int, Task]:
        """Turn time until every task is final."""
        async with asyncio.timeout(within_s):
            while not all(task.state.is_final for task in (await self.tasks()).values()):
                await asyncio.sleep(0.1)  # noqa: TID251 - turned time
        return await self.tasks()

    async def until(self, condition: Callable[[], bool], within_s: float = 10_000.0) -> None:
        """Turn time until `condition` holds."""
        async with asyncio.timeout(within_s):
            while not condition():
                await asyncio.sleep(0.1)  # noqa: TID251 - turned time

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # noqa: TID251 - turned time

    def bodies(self, kind: type) -> list[object]:
        return [event.body for event in self.events if isinstance(event.body, kind)]


Test = Callable[[EngineRig], Awaitable[None]]


def with_engine(
    test: Test,
    *,
    min_workers: int = 1,
    max_workers: int = 4,
    idle_s: float = 60.0,
    timeout_s: float = 300.0,
    store: MemoryStore | None = None,
    runner: ScriptedRunner | None = None,
    stop: ShutdownMode | None = ShutdownMode.GIVE_BACK,
) -> EngineRig:
    """Run `test` against a running engine, stop it (`stop` None: the test does), and check what must always hold."""
    settings = Settings(
        general=GeneralSettings(min_workers=min_workers, max_workers=max_workers, idle_timeout_ms=int(idle_s * 1000)),
        analysis=AnalysisSettings(timeout_s=timeout_s),
    )

    async def live() -> EngineRig:
        nonlocal store, runner
        store, runner = store or MemoryStore(), runner or ScriptedRunner()
        quarantine, results = ScriptedQuarantine(), ScriptedResults()
        engine = Engine(settings, Adapters(store, quarantine, results, runner, LoopClock()))
        rig = EngineRig(engine, store, quarantine, results, runner)
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        life = loop.create_task(engine.run(ready.set))
        readiness = loop.create_task(ready.wait())
        await asyncio.wait({life, readiness}, return_when=asyncio.FIRST_COMPLETED)
        readiness.cancel()
        if life.done():
            await life
        listening = loop.create_task(_listen(rig))
        await settle_loop()
        try:
            await test(rig)
        finally:
            if stop is not None:
                engine.stop(stop)
            left = await life
        await listening
        assert left == []
        assert runner.benches_out == 0
        await store.open(lambda _events: None)
        assert not await store.owned()
        await store.close()
        return rig

    return run_virtual(live())


def survivor(store: MemoryStore) -> MemoryStore:
    """What a disk would hold if the engine were killed at this moment."""
    copy = MemoryStore(store._engine_id)
    for name, value in vars(store).items():
        if isinstance(value, dict | list) and name != "_waiting":
            setattr(copy, name, value.copy())
    copy._epoch = store._epoch
    return copy


async def _listen(rig: EngineRig) -> None:
    async for item in rig.engine.events(None):
        assert not isinstance(item, Gap)
        rig.events.append(item)


async def _chunks(content: str) -> AsyncIterator[bytes]:
    yield content.encode()


def states(tasks: dict[int, Task]) -> list[TaskState]:
    """The states in the order of ids."""
    return [task.state for _, task in sorted(tasks.items())]
