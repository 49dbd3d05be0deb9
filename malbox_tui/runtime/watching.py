"""Watched folders beside an engine, on its event loop: what they take goes in by the engine's own door, in the name of the folder."""

from __future__ import annotations

from functools import partial

import msgspec

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import Settings
from malbox_tui.config.watching import WatchSettings
from malbox_tui.engine.engine import Engine
from malbox_tui.intake.watching.taken import TakenFiles
from malbox_tui.intake.watching.watched_folder import WatchedFolder
from malbox_tui.intake.watching.watcher import FolderWatch
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.events import FolderTold
from malbox_tui.model.overview import Overview
from malbox_tui.ports import Intake
from malbox_tui.runtime.archives import with_archives


class Watching:
    """Everything but `in_overview` belongs to the engine's event loop."""

    def __init__(self, settings: Settings, folders: DataFolders, engine: Engine) -> None:
        self._watch = FolderWatch([_watched(watch, settings, folders, engine) for watch in settings.watch])

    async def run(self) -> None:
        """Until `close`, or the engine's end."""
        await self._watch.run()

    def reload(self, settings: Settings) -> None:
        """Go on with what can be taken over of these."""
        self._watch.reload(settings.intake.max_sample_bytes)

    def close(self) -> None:
        """Take nothing more; what is being handed in is handed in to its end."""
        self._watch.close()

    def in_overview(self, overview: Overview) -> Overview:
        """The same, with the folders and their troubles. In any thread."""
        troubles = (*overview.troubles, *self._watch.troubles)
        return msgspec.structs.replace(overview, watches=self._watch.views, troubles=troubles)


def _watched(watch: WatchSettings, settings: Settings, folders: DataFolders, engine: Engine) -> WatchedFolder:
    def tell(sentence: str, is_bad: bool) -> None:
        engine.announce(FolderTold(folder=watch.path, message=sentence, bad=is_bad))

    return WatchedFolder(
        watch,
        submit=engine.submit,
        opener=partial(_opened, settings, watch.archives()),
        taken=TakenFiles(folders.watched, watch.path),
        max_sample_bytes=settings.intake.max_sample_bytes,
        tell=tell,
        own_root=folders.root,
    )


def _opened(settings: Settings, choice: ArchiveChoice, inner: Intake) -> Intake:
    return with_archives(settings, inner, choice)
