"""Runs the host plugins: benches of confined processes, handed out and taken back."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from malbox_tui.config.settings import Settings
from malbox_tui.confine.marks import kill_marked
from malbox_tui.confine.probe import Confinement, choose
from malbox_tui.confine.work import Limits
from malbox_tui.model.errors import PluginUnavailable, StoreError
from malbox_tui.model.events import EventBody
from malbox_tui.model.sample import escape
from malbox_tui.plugins.bench import HostBench
from malbox_tui.plugins.registry import BUILTIN_FOLDER, HostPlugin, find_plugins
from malbox_tui.plugins.seat import Surroundings
from malbox_tui.ports import PluginBench, PluginInfo, ResultStore


class HostPluginRunner:
    """Implements `PluginRunner` for the plugins in `plugin_folder`.

    `scratch_folder` is its own: what an earlier engine left there, processes included, is removed at `open`. `on_news` is told of
    starts, ends and results of plugins, on the loop's thread.
    """

    def __init__(
        self,
        settings: Settings,
        results: ResultStore,
        scratch_folder: Path,
        on_news: Callable[[EventBody], None],
        plugin_folder: Path = BUILTIN_FOLDER,
    ) -> None:
        self._settings = settings
        self._results = results
        self._scratch_folder = scratch_folder
        self._on_news = on_news
        self._plugin_folder = plugin_folder
        self._plugins: tuple[HostPlugin, ...] = ()
        self._confinement: Confinement | None = None
        self._numbers = itertools.count(1)
        self._idle: list[HostBench] = []
        self._used: set[HostBench] = set()
        self._closed = False

    async def open(self) -> Sequence[PluginInfo]:
        """Read the manifests and find out how to confine; processes start with the first task of a bench.

        Raises `ManifestError`, `ConfigError`, `ConfinementUnavailable`, `PluginUnavailable`, `StoreError`.
        """
        self._plugins = await asyncio.to_thread(find_plugins, self._settings.plugins, self._plugin_folder)
        self._confinement = await choose(self._settings.confinement.isolation)
        await asyncio.to_thread(self._fresh_folder)
        return [plugin.info for plugin in self._plugins]

    async def acquire(self) -> PluginBench:
        """An idle bench, the one used last (its processes are warm), else a new one. Raises `PluginUnavailable`."""
        if self._closed or self._confinement is None:
            raise PluginUnavailable("host", "the plugins are not open")
        if self._idle:
            bench = self._idle.pop()
        else:
            bench = HostBench(self._scratch_folder / f"bench-{next(self._numbers)}", self._plugins, self._around())
            try:
                await asyncio.to_thread(bench.prepare)
            except OSError as exc:
                raise PluginUnavailable("host", f"its folder can't be made: {exc.strerror or exc}") from exc
        self._used.add(bench)
        return bench

    async def release(self, bench: PluginBench) -> None:
        """Take a bench back. One whose inbox can't be emptied is ended."""
        if not isinstance(bench, HostBench) or bench not in self._used:
            return
        emptied = False
        try:
            await bench.clear()
            emptied = True
        except OSError:
            pass
        finally:
            self._used.discard(bench)
            if emptied and not self._closed:
                self._idle.append(bench)
            else:
                await bench.close()

    async def trim(self, benches: int) -> None:
        """End idle benches, those idle longest first."""
        surplus = min(len(self._idle), len(self._idle) + len(self._used) - benches)
        ending, self._idle = self._idle[: max(0, surplus)], self._idle[max(0, surplus) :]
        await _close_all(ending)

    @property
    def isolation(self) -> str:
        """How plugins are confined; not known before `open`."""
        return "not yet known" if self._confinement is None else self._confinement.isolation

    async def close(self) -> None:
        """End all processes: a second for `on_stop`, then they are killed."""
        self._closed = True
        ending, self._idle = [*self._idle, *self._used], []
        self._used.clear()
        await _close_all(ending)

    def _around(self) -> Surroundings:
        if self._confinement is None:
            raise PluginUnavailable("host", "the plugins are not open")
        confinement = self._settings.confinement
        return Surroundings(
            walls=self._confinement.walls,
            limits=Limits(memory_mb=confinement.memory_mb, scratch_mb=confinement.scratch_mb),
            settings=self._settings.plugins,
            cancel_grace_s=self._settings.analysis.cancel_grace_s,
            results=self._results,
            on_news=self._on_news,
        )

    def _fresh_folder(self) -> None:
        """The folder itself stays: it may be a mount, or lie where nothing may be made."""
        kill_marked(self._scratch_folder)
        try:
            self._scratch_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._scratch_folder.is_symlink():
                raise NotADirectoryError(errno.ENOTDIR, "it is a link, and not followed to remove things")
            self._scratch_folder.chmod(0o700)
            for entry in self._scratch_folder.iterdir():
                _remove(entry)
        except OSError as exc:
            shown = escape(bytes(self._scratch_folder))
            raise StoreError(f"The scratch folder {shown} can't be emptied: {exc.strerror or exc}. Empty it yourself.") from exc


def _remove(entry: Path) -> None:
    """A file, a link, or a folder with all that is in it, also where its owner may not look."""
    if entry.is_symlink() or not entry.is_dir():
        entry.unlink()
        return
    entry.chmod(0o700)
    for folder, names, _files in os.walk(entry):
        for inner in (Path(folder, name) for name in names):
            if not inner.is_symlink():
                inner.chmod(0o700)
    shutil.rmtree(entry)


async def _close_all(benches: Sequence[HostBench]) -> None:
    async with asyncio.TaskGroup() as group:
        for bench in benches:
            group.create_task(bench.close())
