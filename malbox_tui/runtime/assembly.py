"""Puts engine, store, quarantine, plugins, machines and lock together for one data folder. Concrete adapters are named here, and those
of machines in `machine_assembly`, and nowhere else."""

from __future__ import annotations

import getpass
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.machine_list import listed
from malbox_tui.config.saved_watches import SavedWatches
from malbox_tui.config.settings import Settings
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.engine import Engine
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.intake.selection import SelectiveIntake
from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.events import Event, EventBody
from malbox_tui.model.intake import IntakePage, IntakeView, LineQuery
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import ResultRef
from malbox_tui.model.selection import ALL_OF_IT, IntakeChoice
from malbox_tui.model.task import TaskState
from malbox_tui.plugins.entry_points import entry_point_folders
from malbox_tui.plugins.registry import BUILTIN_FOLDER, find_guest_plugins
from malbox_tui.plugins.runner import HostPluginRunner
from malbox_tui.ports import Intake, LimitsStore, MachineBook, Machinery
from malbox_tui.runtime.archives import clear_leftovers, with_archives
from malbox_tui.runtime.engine_thread import EngineThread
from malbox_tui.runtime.machine_assembly import build_machinery
from malbox_tui.runtime.watching import Watching
from malbox_tui.store.folder_lock import FolderLock
from malbox_tui.store.marks import MarksFile
from malbox_tui.store.pause_file import PauseFile, read_pause
from malbox_tui.store.quarantine import CartQuarantine
from malbox_tui.store.results import FileResultStore
from malbox_tui.store.sqlite import SqliteStore
from malbox_tui.store.sqlite_reader import SqliteReader
from malbox_tui.store.stockroom import FileStockroom, Places
from malbox_tui.store.upkeep_book import SqliteUpkeep


class TaskReader(Protocol):
    """Looks into a data folder without an engine; one may be running in another process."""

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """See `ActionBook`."""
        ...

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """See `IntakeBook`."""
        ...

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """See `IntakeBook`."""
        ...

    async def tasks(self, query: TaskQuery, clock: float) -> TaskPage:
        """A window of tasks."""
        ...

    async def counts(self) -> dict[TaskState, int]:
        """How many tasks are in each state."""
        ...

    async def latest_events(self, limit: int) -> Sequence[Event]:
        """At most `limit` stored events, the last of all, in order."""
        ...


class ResultReader(Protocol):
    """Reads the results in a data folder."""

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """See `ResultStore`."""
        ...


def start_engine(
    settings: Settings,
    folders: DataFolders,
    limits: LimitsStore | None = None,
    book: MachineBook | None = None,
    *,
    watches: SavedWatches | None = None,
) -> EngineThread:
    """A running engine on a data folder, which it owns until it has ended. `limits` keeps changed limits of worker groups, `book`
    changed machines. With `watches`, which keeps changed watched folders, it takes what comes into those, too.

    Raises `DataFolderInUse`, `ConfinementUnavailable`, `PluginUnavailable`, `ManifestError`, `StoreTooNew`, `StoreError`.
    """
    folders.create()
    lock = FolderLock(folders.root)
    lock.acquire(SystemClock().now())
    clear_leftovers(SystemClock().now())
    thread = EngineThread(
        lambda: build_engine(settings, folders, limits=limits, book=book),
        lock.close,
        None if watches is None else partial(Watching, settings, folders, watches),
    )
    thread.start()
    return thread


def start_engine_at_rest(settings: Settings, folders: DataFolders) -> EngineThread:
    """An engine that takes no task, and touches no plugin and no machine, on a data folder that it owns until it has ended.

    Raises `DataFolderInUse`, `StoreTooNew`, `StoreError`.
    """
    folders.create()
    lock = FolderLock(folders.root)
    lock.acquire(SystemClock().now())
    thread = EngineThread(lambda: build_engine(settings, folders, at_rest=True), lock.close)
    thread.start()
    return thread


def build_engine(
    settings: Settings,
    folders: DataFolders,
    plugin_folder: Path = BUILTIN_FOLDER,
    limits: LimitsStore | None = None,
    book: MachineBook | None = None,
    *,
    at_rest: bool = False,
) -> Engine:
    """An engine on its real adapters; must be called on the event loop that it will live on."""
    services = TaskTracker()
    results = FileResultStore(folders.results)
    plugin_folders = (plugin_folder, *folders.plugin_folders)
    listing = listed([machine.spec() for machine in settings.machines])

    def announce(body: EventBody) -> None:
        engine.announce(body)

    store = SqliteStore(folders.store, services.spawn)
    engine = Engine(
        settings,
        Adapters(
            store=store,
            actions=store,
            intakes=store,
            owner=login_name(),
            quarantine=CartQuarantine(folders.quarantine),
            upkeep=SqliteUpkeep(store, folders.store),
            stockroom=FileStockroom(places_of(folders)),
            results=results,
            runner=HostPluginRunner(settings, results, folders.scratch, announce, *plugin_folders, installed=entry_point_folders),
            wall=SystemClock(),
            machinery=Machinery(listing.machines, faults=listing.faults)
            if at_rest
            else build_machinery(listing, settings.machinery.silence_timeout_s),
            limits=limits,
            book=book,
            marks=MarksFile(folders.marks),
            pauses=PauseFile(folders.pause),
            guest_plugins=() if at_rest else find_guest_plugins(settings.plugins, *plugin_folders, *entry_point_folders()),
            free_bytes=lambda: _free_bytes(folders.root),
        ),
        at_rest=at_rest,
    )
    return engine


def places_of(folders: DataFolders) -> Places:
    """Where the stockroom finds things."""
    return Places(folders.store, folders.quarantine, folders.results, folders.scratch)


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def login_name() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


@asynccontextmanager
async def open_reader(folders: DataFolders) -> AsyncIterator[TaskReader]:
    """A reader on the store of a data folder. Raises `StoreError` when there is none yet."""
    reader = SqliteReader(folders.store)
    await reader.open()
    try:
        yield reader
    finally:
        await reader.close()


@asynccontextmanager
async def open_results(folders: DataFolders) -> AsyncIterator[ResultReader]:
    """What reads the results of a data folder, also beside a running engine."""
    results = FileResultStore(folders.results)
    try:
        yield results
    finally:
        await results.close()


def pause_of(folders: DataFolders) -> str | None:
    """Why the pool of a data folder is paused, until somebody resumes it; None: it isn't."""
    return read_pause(folders.pause)


def open_intake(settings: Settings, folders: DataFolders | None = None, choice: IntakeChoice = ALL_OF_IT) -> Intake:
    """What finds samples on this host, in archives too; the engine's own folders are never taken for samples."""
    selection = choice.selection
    own_root = None if folders is None else str(folders.root).encode("utf-8", "surrogateescape")
    found = FolderIntake(settings.intake.max_sample_bytes, own_root, recursive=selection.recursive)
    opened = with_archives(settings, found, choice.archives)
    return opened if selection.takes_all else SelectiveIntake(opened, selection)
