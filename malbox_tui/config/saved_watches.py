"""Watched folders that were added or removed while the engine ran and outlive it: in a file beside the operator's, never in it.

The file holds only what differs from the operator's, so that later changes of the operator's file count for all other folders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from malbox_tui.config.faults import Fault
from malbox_tui.config.kept_file import KeptFile, kept_beside
from malbox_tui.config.section import SettingsTable, Text
from malbox_tui.config.settings import Settings
from malbox_tui.config.watch_rules import watch_faults
from malbox_tui.config.watch_tables import faults_beside, spec_of, table_of
from malbox_tui.config.watching import WatchSettings
from malbox_tui.model.sample import visible

_HEAD = """\
# Watched folders that were added or removed while malbox-tui ran. malbox-tui writes this file; what it says goes over the
# configuration beside it. Remove it to go back to that.
"""


class WatchChanges(SettingsTable, frozen=True, kw_only=True):
    """What the file says: `watch` are added or stand in place of the operator's, `removed` are paths of the operator's that are not to
    be watched."""

    removed: tuple[Text, ...] = ()
    watch: tuple[WatchSettings, ...] = ()


class WatchesFile:
    """The file with the changed watched folders of one configuration; it is there only while some are."""

    def __init__(self, path: Path) -> None:
        self._file = KeptFile(path, WatchChanges, "watched folders", _HEAD)
        self.shown = self._file.shown

    @classmethod
    def beside(cls, config: Path) -> WatchesFile:
        """The one that belongs to this configuration file: `config.watch.toml` for `config.toml`."""
        return cls(kept_beside(config, "watch"))

    def read(self) -> WatchChanges:
        """What was changed; nothing when there is no file. Raises `ConfigError` when it can't be used."""
        return self._file.read(_faults)

    def write(self, watches: Sequence[WatchSettings], removed: Sequence[str]) -> None:
        """Put these in place of what was kept, whole or not at all; without any there is no file. Raises `StoreError`."""
        content: dict[str, Any] = {}
        if removed:
            content["removed"] = list(removed)
        if watches:
            content["watch"] = [table_of(spec_of(watch)) for watch in watches]
        self._file.write(content)


class SavedWatches:
    """Keeps the watched folders of a running engine for its next start.

    `own` tells, at the time of saving, those of the operator's file; None when it has none that could be compared with. `latest` are
    those that were kept last; None: none were.
    """

    def __init__(self, file: WatchesFile, own: Callable[[], Sequence[WatchSettings] | None]) -> None:
        self.latest: tuple[WatchSettings, ...] | None = None
        self._file = file
        self._own = own
        self._saving = asyncio.Lock()

    async def save(self, watches: Sequence[WatchSettings]) -> str:
        """Keep all watched folders as they are now; returns where, for a person. Raises `StoreError`, with nothing changed.

        Folders that are the operator's own need no file: it is removed. Cancelled: they are kept or not, but never in part.
        """
        async with self._saving:
            where = await asyncio.to_thread(self._save_blocking, tuple(watches))
            self.latest = tuple(watches)
            return where

    def _save_blocking(self, watches: Sequence[WatchSettings]) -> str:
        own = {watch.path: watch for watch in self._own() or ()}
        differing = [watch for watch in watches if own.get(watch.path) != watch]
        removed = [path for path in own if path not in {watch.path for watch in watches}]
        self._file.write(differing, removed)
        return self._file.shown if differing or removed else "the configuration itself, which has the same watched folders"


def with_watches(settings: Settings, changes: WatchChanges) -> Settings:
    """`settings` with what was changed. What no longer fits beside the operator's folders is left out."""
    changed = {watch.path: watch for watch in changes.watch}
    staying = [changed.pop(own.path, own) for own in settings.watch if own.path not in changes.removed or own.path in changed]
    for watch in changed.values():
        if next(faults_beside(watch, staying, settings), None) is None:
            staying.append(watch)
    return msgspec.structs.replace(settings, watch=tuple(staying))


def watch_notes(file: WatchesFile, settings: Settings, changes: WatchChanges) -> Iterator[str]:
    """What of the operator's `settings` was changed while the engine ran, a sentence each."""
    own, used = {watch.path for watch in settings.watch}, with_watches(settings, changes).watch
    for watch in changes.watch:
        if watch in used:
            what = "is as it was changed" if watch.path in own else "was added"
            yield f"Watched folder {visible(watch.path)} {what} while malbox-tui ran: {file.shown}."
        else:
            others = [other for other in used if other.path != watch.path]
            why = next(faults_beside(watch, others, settings)).problem
            yield f"Watched folder {visible(watch.path)}, which was added while malbox-tui ran ({file.shown}), is left out: {why}"
    for path in changes.removed:
        if path in own and all(watch.path != path for watch in used):
            yield f"Watched folder {visible(path)} is left out: it was removed while malbox-tui ran ({file.shown})."


def _faults(changes: WatchChanges) -> Iterator[Fault]:
    yield from watch_faults([(f"watch[{index}]", watch) for index, watch in enumerate(changes.watch)])
