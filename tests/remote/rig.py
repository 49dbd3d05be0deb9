"""A real engine in its thread, on real stores, served on a real socket; only its plugins are scripted."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import GeneralSettings, IntakeSettings, Settings
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.engine import Engine
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.ports import Client, Findings, PluginBench, PluginJob, StopSignal
from malbox_tui.remote.bounds import Bounds
from malbox_tui.remote.served import Served
from malbox_tui.remote.server import serving
from malbox_tui.remote.socket_file import listening
from malbox_tui.runtime.assembly import places_of
from malbox_tui.runtime.engine_thread import EngineThread
from malbox_tui.store.quarantine import CartQuarantine
from malbox_tui.store.results import FileResultStore
from malbox_tui.store.sqlite import SqliteStore
from malbox_tui.store.stockroom import FileStockroom
from malbox_tui.store.upkeep_book import SqliteUpkeep
from tests.remote.asker import Asker
from tests.support.scripted import ScriptedRunner

FOUND = bytes(range(256))
MAX_SAMPLE_BYTES = 256 * 1024


@dataclass
class ServerRig:
    """A served engine. `connections` counts those that are open."""

    folders: DataFolders
    thread: EngineThread
    connections: Callable[[], int]
    free_bytes: list[int]
    """How much of its disk is free."""

    @property
    def client(self) -> Client:
        return self.thread.client

    @property
    def socket(self) -> Path:
        return self.folders.control_socket

    @asynccontextmanager
    async def asker(self, **headers: str) -> AsyncIterator[Asker]:
        """A connection to ask on."""
        asker = await Asker.connect(self.socket, headers)
        try:
            yield asker
        finally:
            asker.cut()

    async def until_connections(self, number: int) -> None:
        """Wait for the server to notice that so many are open."""
        async with asyncio.timeout(30):
            while self.connections() != number:
                await asyncio.sleep(0)  # noqa: TID251 - one step of the loop


class Reporting(ScriptedRunner):
    """Its one plugin leaves a result: the bytes `found` under the name `notes`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(seconds=0.0)
        self._folder = folder
        self.results = FileResultStore(folder / "results")

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        bench = await super().acquire(limits)
        bench.inbox = Path(tempfile.mkdtemp(dir=self._folder / "scratch"))  # type: ignore[misc]
        return bench

    async def work(self, job: PluginJob, stop: StopSignal) -> Findings:
        writer = self.results.begin(job.task_id, job.token, "scripted", "notes", "bytes")
        writer.write(FOUND)
        return Findings((PluginRun("scripted", "1", PluginStatus.COMPLETED, 0.0, results=(writer.commit(),)),))


FREE_BYTES = 12_345_678_901


def engine_in(folders: DataFolders, runner: ScriptedRunner, settings: Settings, free_bytes: list[int]) -> EngineThread:
    """An engine that has started."""

    def build() -> Engine:
        store = SqliteStore(folders.store, TaskTracker().spawn)
        return Engine(
            settings,
            Adapters(
                store=store,
                actions=store,
                intakes=store,
                quarantine=CartQuarantine(folders.quarantine),
                results=runner.results if isinstance(runner, Reporting) else FileResultStore(folders.results),
                runner=runner,
                wall=SystemClock(),
                free_bytes=lambda: free_bytes[0],
                upkeep=SqliteUpkeep(store, folders.store),
                stockroom=FileStockroom(places_of(folders)),
            ),
        )

    thread = EngineThread(build, lambda: None)
    thread.start()
    return thread


@asynccontextmanager
async def served(
    folder: Path,
    *,
    workers: int = 0,
    bounds: Bounds | None = None,
    runner: ScriptedRunner | None = None,
) -> AsyncIterator[ServerRig]:
    """A served engine in an empty folder, with so many workers; none: its tasks stay as they are."""
    folders = DataFolders.under(folder)
    folders.create()
    settings = Settings(
        general=GeneralSettings(min_workers=workers, max_workers=workers),
        intake=IntakeSettings(max_sample_bytes=MAX_SAMPLE_BYTES),
    )
    free_bytes = [FREE_BYTES]
    thread = engine_in(folders, runner or ScriptedRunner(), settings, free_bytes)
    try:
        what = Served(thread.client, "1.2.3", lambda: settings.intake.max_sample_bytes)
        with listening(folders.control_socket) as place:
            async with serving(what, place.listener, bounds=bounds) as server:
                yield ServerRig(folders, thread, server.connections, free_bytes)
    finally:
        thread.stop(ShutdownMode.GIVE_BACK)
        await asyncio.to_thread(thread.join)
