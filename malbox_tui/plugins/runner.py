"""Runs the host plugins: benches of confined processes, handed out and taken back."""

from __future__ import annotations

import asyncio
import errno
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.config.settings import Settings
from malbox_tui.confine.control_groups import ControlGroups, remove_leftovers
from malbox_tui.confine.enforcement import Means, Shortfall, not_enforced
from malbox_tui.confine.hierarchies import find_hierarchies
from malbox_tui.confine.marks import kill_marked
from malbox_tui.confine.probe import Confinement, choose
from malbox_tui.confine.removal import remove_tree
from malbox_tui.model.errors import PluginUnavailable, StoreError
from malbox_tui.model.events import EventBody
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.plan import Plan
from malbox_tui.model.profile import Profile
from malbox_tui.model.sample import escape
from malbox_tui.plugins.bench import HostBench
from malbox_tui.plugins.condition import Condition
from malbox_tui.plugins.events import PluginEvent, deliver, emitted, event_of, numbers_of
from malbox_tui.plugins.fingerprint import Fingerprints, changes_between, fingerprints
from malbox_tui.plugins.floor import Floor
from malbox_tui.plugins.profiles import check_profiles
from malbox_tui.plugins.registry import FoundPlugin, find_guest_plugins, find_plugins, plan_for
from malbox_tui.plugins.replies import Emitted
from malbox_tui.plugins.surroundings import Surroundings
from malbox_tui.ports import GuestPlugin, PluginBench, PluginInfo, PluginsRead, ResultStore


class HostPluginRunner:
    """Implements `PluginRunner` for the plugins in `plugin_folders` and in those that `installed` gives whenever they are read.

    `scratch_folder` is its own: what an earlier engine left there, processes included, is removed at `open`. `on_news` is told of
    starts, ends and results of plugins, on the loop's thread.
    """

    def __init__(
        self,
        settings: Settings,
        results: ResultStore,
        scratch_folder: Path,
        on_news: Callable[[EventBody], None],
        *plugin_folders: Path,
        installed: Callable[[], Sequence[Path]] = tuple,
    ) -> None:
        self._settings = settings
        self._results = results
        self._scratch_folder = scratch_folder
        self._on_news = on_news
        self._plugin_folders = plugin_folders
        self._installed = installed
        self._plugins: tuple[FoundPlugin, ...] = ()
        self._fingerprints: Fingerprints = {}
        self._plan = Plan()
        self._conditions: dict[str, Condition] = {}
        self._floor = Floor()
        self._plugin_numbers: dict[str, int] = {}
        self._generation = 0
        self._confinement: Confinement | None = None
        self._groups = ControlGroups()
        self._means = Means(has_sandbox=False, controllers=frozenset())
        self._not_enforced: tuple[Shortfall, ...] = ()
        self._numbers = itertools.count(1)
        self._idle: list[HostBench] = []
        self._used: set[HostBench] = set()
        self._profiles: Sequence[Profile] = [profile.profile() for profile in settings.profiles]
        self._closed = False

    async def open(self) -> Sequence[PluginInfo]:
        """Read the manifests and find out how to confine; processes start with the first task of a bench.

        Raises `ManifestError`, `ConfigError`, `ConfinementUnavailable`, `PluginUnavailable`, `StoreError`.
        """
        self._take(await asyncio.to_thread(self._find, self._profiles))
        confinement = await choose(self._settings.confinement.isolation)
        hierarchies = await asyncio.to_thread(find_hierarchies)
        self._groups = ControlGroups(hierarchies)
        self._means = Means(confinement.walls.has_namespace, self._groups.controllers)
        self._not_enforced = not_enforced(self._settings.groups(), self._means)
        await asyncio.to_thread(remove_leftovers, hierarchies)
        await asyncio.to_thread(self._fresh_folder)
        self._confinement = confinement
        return [plugin.info for plugin in self._plugins]

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        """An idle bench, the one used last (its processes are warm), else a new one. Raises `PluginUnavailable`."""
        if self._closed or self._confinement is None:
            raise PluginUnavailable("host", "the plugins are not open")
        fitting = [bench for bench in self._idle if bench.asked == limits and bench.generation == self._generation]
        if fitting:
            bench = fitting[-1]
            self._idle.remove(bench)
        else:
            bench = self._new_bench(limits, self._confinement)
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
            if emptied and not self._closed and bench.generation == self._generation:
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
        if self._confinement is None:
            return "not yet known"
        missing = f"; not enforced: {', '.join(map(str, self._not_enforced))}" if self._not_enforced else ""
        return f"{self._confinement.isolation}{missing}"

    async def reload(self, profiles: Sequence[Profile] | None = None) -> PluginsRead:
        """Read the manifests again; what works goes on with the plugins that it began with, and idle benches are ended.

        Raises as `open`.
        """
        former = self._fingerprints
        asked = self._profiles if profiles is None else profiles
        found = await asyncio.to_thread(self._find, asked)
        self._profiles = asked
        self._take(found)
        ending, self._idle = self._idle, []
        await _close_all(ending)
        changes = changes_between(former, found.fingerprints)
        return PluginsRead([plugin.info for plugin in found.plugins], found.guests, changes)

    def tell(self, body: EventBody) -> None:
        """Pass news on to the processes that want it."""
        if (event := event_of(body, self._plugin_numbers)) is not None:
            self._deliver(event)

    @property
    def plan(self) -> Plan:
        """How the plugins run together; empty before `open`."""
        return self._plan

    @property
    def troubles(self) -> Sequence[str]:
        """The plugins that were given up."""
        return tuple(condition.trouble for condition in self._conditions.values() if condition.trouble)

    async def watch(self) -> None:
        """Ask idle plugins how they are, again and again, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.plugins.health_check_s):
                    await asyncio.get_running_loop().create_future()
            await self.check_health()

    async def check_health(self) -> None:
        """Ask the plugins on idle benches how they are, once."""
        async with asyncio.TaskGroup() as group:
            for bench in self._idle:
                group.create_task(bench.check_health())

    async def close(self) -> None:
        """End all processes: a second for `on_stop`, then they are killed."""
        self._closed = True
        ending, self._idle = [*self._idle, *self._used], []
        self._used.clear()
        try:
            await _close_all(ending)
        finally:
            await asyncio.to_thread(self._groups.remove)

    def _find(self, profiles: Sequence[Profile]) -> _Found:
        places, settings = (*self._plugin_folders, *self._installed()), self._settings.plugins
        plugins = find_plugins(settings, *places)
        guests = find_guest_plugins(settings, *places)
        check_profiles(profiles, plugins, [guest.name for guest in guests])
        return _Found(plugins, guests, fingerprints(plugins))

    def _take(self, found: _Found) -> None:
        plugins = found.plugins
        self._plugins, self._fingerprints = plugins, found.fingerprints
        self._plan = plan_for(self._plugins)
        self._conditions = {plugin.name: Condition(plugin.name) for plugin in plugins}
        self._plugin_numbers = numbers_of(plugins)
        self._generation += 1

    def _on_emitted(self, plugin: str, said: Emitted) -> None:
        if (event := emitted(plugin, said)) is not None:
            self._deliver(event)

    def _deliver(self, event: PluginEvent) -> None:
        deliver(event, (listener for bench in (*self._idle, *self._used) for listener in bench.listeners()))

    def _new_bench(self, asked: ResourceLimits, confinement: Confinement) -> HostBench:
        number = next(self._numbers)
        folder = self._scratch_folder / f"bench-{number}"
        around = Surroundings(
            walls=confinement.walls,
            settings=self._settings.plugins,
            cancel_grace_s=self._settings.analysis.cancel_grace_s,
            flush_grace_s=self._settings.analysis.flush_grace_s,
            results=self._results,
            on_news=self._on_news,
            plan=self._plan,
            conditions=self._conditions,
            floor=self._floor,
            results_declared={plugin.name: plugin.manifest.results for plugin in self._plugins},
            on_event=self._on_emitted,
        )
        limits = self._means.limits(asked, self._settings.confinement, number)
        groups = self._groups.for_bench(folder.name, self._means.quota(asked))
        return HostBench(folder, self._plugins, around, asked, limits, groups, self._generation)

    def _fresh_folder(self) -> None:
        """The folder itself stays: it may be a mount, or lie where nothing may be made."""
        kill_marked(self._scratch_folder)
        try:
            self._scratch_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._scratch_folder.is_symlink():
                raise NotADirectoryError(errno.ENOTDIR, "it is a link, and not followed to remove things")
            self._scratch_folder.chmod(0o700)
            for entry in self._scratch_folder.iterdir():
                remove_tree(entry)
        except OSError as exc:
            shown = escape(bytes(self._scratch_folder))
            raise StoreError(f"The scratch folder {shown} can't be emptied: {exc.strerror or exc}. Empty it yourself.") from exc


@dataclass(frozen=True, slots=True)
class _Found:
    """What there was when the plugins were read."""

    plugins: tuple[FoundPlugin, ...]
    guests: tuple[GuestPlugin, ...]
    fingerprints: Fingerprints


async def _close_all(benches: Sequence[HostBench]) -> None:
    async with asyncio.TaskGroup() as group:
        for bench in benches:
            group.create_task(bench.close())
