"""The real engine on the real store, with nothing else: no content is kept, no plugin runs, no result is written."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.engine import Engine
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.events import Event, EventBody, TaskCanceled, TaskCompleted
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.plan import Plan
from malbox_tui.model.report import ResultRef
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer
from malbox_tui.ports import (
    BatchMember,
    Findings,
    PluginBench,
    PluginInfo,
    PluginJob,
    PluginsRead,
    ResultWriter,
    StopSignal,
    StoredContent,
)
from malbox_tui.store.sqlite import SqliteStore

Run = Callable[[PluginJob, StopSignal], Awaitable[Findings]]
"""What stands for the plugins of one task."""


async def nothing(_job: PluginJob, _stop: StopSignal) -> Findings:
    """Plugins that find nothing, at once."""
    return Findings(())


@asynccontextmanager
async def running_engine(store: Path, workers: int, run: Run = nothing) -> AsyncIterator[Engine]:
    """An engine that is ready, with as many workers always there; at the end what still runs is given back."""
    settings = Settings(general=GeneralSettings(min_workers=workers, max_workers=workers))
    adapters = Adapters(SqliteStore(store, TaskTracker().spawn), NoQuarantine(), NoResults(), StandInPlugins(run), SystemClock())
    engine = Engine(settings, adapters)
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run(ready.set))
        try:
            await ready.wait()
            yield engine
        finally:
            engine.stop(ShutdownMode.GIVE_BACK)


class Ends:
    """Counts how many tasks with an id above `above` ended in one way. It listens as a console does."""

    def __init__(self, engine: Engine, kind: type[TaskCompleted | TaskCanceled], above: int = 0) -> None:
        self._engine = engine
        self._kind = kind
        self._above = above
        self._seen = 0
        self._more = asyncio.Event()

    async def follow(self) -> None:
        """Count until cancelled or the engine ends."""
        async for item in self._engine.events(None):
            if isinstance(item, Event) and isinstance(item.body, self._kind) and item.body.task_id > self._above:
                self._seen += 1
                self._more.set()

    async def reach(self, count: int) -> None:
        """Wait until `count` were seen in all."""
        while self._seen < count:
            self._more.clear()
            await self._more.wait()


async def offers(numbers: Sequence[int]) -> AsyncIterator[Offer]:
    """A content of its own for each number, scattered as real ones are."""
    for number in numbers:
        yield Offer(SampleName(b"%d" % number), _content(hashlib.sha256(b"%d" % number).hexdigest().encode()))


async def _content(text: bytes) -> AsyncIterator[bytes]:
    yield text


class NoQuarantine:
    """A `Quarantine` that takes the first 64 characters of a content for its SHA-256 and keeps nothing."""

    async def open(self) -> None: ...

    async def store(self, content: AsyncIterator[bytes], max_bytes: int) -> StoredContent:
        whole = b"".join([chunk async for chunk in content])
        return StoredContent(whole.decode(), len(whole))

    async def extract(self, sha256: str, target: Path) -> int:
        return 0

    async def close(self) -> None: ...


class NoResults:
    """A `ResultStore` with nothing in it."""

    async def open(self) -> None: ...

    def begin(self, task_id: int, token: str, plugin: str, name: str, format: str) -> ResultWriter:
        raise AssertionError("no plugin runs")

    def place_for(self, task_id: int, token: str, plugin: str, name: str) -> Path:
        raise AssertionError("no machine runs")

    async def take_in(self, task_id: int, token: str, plugin: str, name: str, max_bytes: int) -> tuple[ResultRef, bool]:
        raise AssertionError("no machine runs")

    async def lay_out(self, reference: ResultRef, target: Path) -> None:
        raise AssertionError("no machine runs")

    async def settle(self, task_id: int, token: str) -> None: ...

    async def discard(self, task_id: int, token: str) -> None: ...

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        return b""

    async def close(self) -> None: ...


class StandInPlugins:
    """A `PluginRunner` and all its benches in one."""

    isolation = "nothing runs"
    plan = Plan()
    troubles = ()
    inbox = Path("/nowhere")

    def __init__(self, run: Run) -> None:
        self._run = run

    async def open(self) -> Sequence[PluginInfo]:
        return []

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        return self

    async def release(self, bench: PluginBench) -> None: ...

    async def trim(self, benches: int) -> None: ...

    async def reload(self) -> PluginsRead:
        return PluginsRead([])

    def tell(self, news: EventBody) -> None: ...

    async def watch(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def identify(self, sample_name: str) -> None:
        return None

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        return await self._run(job, stop)

    async def run_batch(self, members: Sequence[BatchMember]) -> None:
        for member in members:
            member.on_found(await self.run(member.job, member.stop))

    async def close(self) -> None: ...
