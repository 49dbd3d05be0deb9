"""Watched folders beside an engine, on its event loop: what they take goes in by the engine's own door, in the name of the folder."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.saved_watches import SavedWatches
from malbox_tui.config.settings import Settings
from malbox_tui.config.watch_tables import checked
from malbox_tui.config.watching import WatchSettings
from malbox_tui.engine.engine import Engine
from malbox_tui.intake.watching.taken import TakenFiles
from malbox_tui.intake.watching.watched_folder import WatchedFolder
from malbox_tui.intake.watching.watcher import FolderWatch
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.errors import RefusedCommand, StoreError
from malbox_tui.model.events import FolderTold
from malbox_tui.model.overview import Overview
from malbox_tui.model.sample import visible
from malbox_tui.model.watching import WatchSpec
from malbox_tui.ports import Intake
from malbox_tui.runtime.archives import with_archives

NAMED = 8
"""So many folders are named to whoever asked for one that isn't there."""


class Watching:
    """Everything but `in_overview` belongs to the engine's event loop. A `WatchKeeper` of the engine's.

    `book` keeps what was added and removed for the next start; None: that has the folders of the configuration again.
    """

    def __init__(self, settings: Settings, folders: DataFolders, book: SavedWatches | None, engine: Engine) -> None:
        self._settings = settings
        self._folders = folders
        self._book = book
        self._engine = engine
        self._watch = FolderWatch([self._watched(watch) for watch in settings.watch])
        self._one_at_a_time = asyncio.Lock()
        engine.watched_by(self)

    async def run(self) -> None:
        """Until `close`."""
        await self._watch.run()

    def reload(self, settings: Settings) -> None:
        """Go on with what can be taken over of these."""
        self._settings = msgspec.structs.replace(settings, watch=self._settings.watch)
        self._watch.reload(settings.intake.max_sample_bytes)

    def close(self) -> None:
        """Take nothing more; what is being handed in is handed in to its end."""
        self._watch.close()

    def in_overview(self, overview: Overview) -> Overview:
        """The same, with the folders and their troubles. In any thread."""
        troubles = (*overview.troubles, *self._watch.troubles)
        return msgspec.structs.replace(overview, watches=self._watch.views, troubles=troubles)

    async def add(self, watch: WatchSpec) -> str:
        """As `WatchKeeper.add`."""
        async with self._one_at_a_time:
            if self._watch.is_ending(watch.path):
                problem = "is still handing in what it had before it was removed; add it again in a moment"
                raise RefusedCommand(f"Folder {visible(watch.path)} {problem}. Nothing was changed.")
            found = await asyncio.to_thread(checked, watch, self._settings)
            folder = await asyncio.to_thread(self._watched, found)
            there = await asyncio.to_thread(Path(found.path).is_dir)
            self._watch.add(folder)
            self._settings = msgspec.structs.replace(self._settings, watch=(*self._settings.watch, found))
            away = "" if there else " No such folder is there now; it is looked for."
            return f"Folder {visible(found.path)} on {socket.gethostname()} is watched.{away} {await self._kept()}"

    async def remove(self, path: str) -> str:
        """As `WatchKeeper.remove`."""
        async with self._one_at_a_time:
            staying = tuple(watch for watch in self._settings.watch if watch.path != path)
            if len(staying) == len(self._settings.watch):
                raise RefusedCommand(f"No folder is watched as '{visible(path)}'; {_there(staying)}. Nothing was changed.")
            self._watch.remove(path)
            self._settings = msgspec.structs.replace(self._settings, watch=staying)
            return f"Folder {visible(path)} on {socket.gethostname()} is watched no more. {await self._kept()}"

    async def _kept(self) -> str:
        """Whether the next start will know of it."""
        if self._book is None:
            return "The next start has the watched folders of the configuration again."
        try:
            return f"Kept in {await self._book.save(self._settings.watch)}."
        except StoreError as error:
            return str(error)

    def _watched(self, watch: WatchSettings) -> WatchedFolder:
        def tell(sentence: str, is_bad: bool) -> None:
            self._engine.announce(FolderTold(folder=watch.path, message=sentence, bad=is_bad))

        return WatchedFolder(
            watch,
            submit=self._engine.submit,
            opener=partial(_opened, self._settings, watch.archives()),
            taken=TakenFiles(self._folders.watched, watch.path),
            max_sample_bytes=self._settings.intake.max_sample_bytes,
            tell=tell,
            own_root=self._folders.root,
        )


def _there(watches: Sequence[WatchSettings]) -> str:
    names = [visible(watch.path) for watch in watches[:NAMED]]
    more = [f"{len(watches) - NAMED} more"] if len(watches) > NAMED else []
    return f"there are: {', '.join(names + more) or 'none'}"


def _opened(settings: Settings, choice: ArchiveChoice, inner: Intake) -> Intake:
    return with_archives(settings, inner, choice)
