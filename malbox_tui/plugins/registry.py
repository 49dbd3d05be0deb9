"""Which plugins there are, and with which options each takes part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from malbox_tui.config.settings import PluginSettings
from malbox_tui.confine.work import Interpreter
from malbox_tui.model.errors import ConfigError, MalboxError, ManifestError
from malbox_tui.model.plan import Plan, PlanFault, plan_of
from malbox_tui.plugins.entry import entry_of
from malbox_tui.plugins.interpreter import interpreter_at
from malbox_tui.plugins.manifest import MANIFEST_NAME, Manifest, PluginType, State
from malbox_tui.plugins.manifest_rules import read_manifest
from malbox_tui.plugins.options import configured, must_know
from malbox_tui.plugins.tray import IDENTIFYING_PLUGIN
from malbox_tui.ports import GuestPlugin, PluginInfo

BUILTIN_FOLDER = Path(__file__).resolve().parent / "builtin"


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """One plugin: where it is, what its manifest says, its options, and the Python that it runs under."""

    folder: Path
    entry: str
    manifest: Manifest
    config: Mapping[str, str] = field(default_factory=dict)
    interpreter: Interpreter = field(default_factory=Interpreter)

    @property
    def name(self) -> str:
        """As in its manifest."""
        return self.manifest.plugin.name

    @property
    def version(self) -> str:
        """As in its manifest."""
        return self.manifest.plugin.version

    @property
    def is_guest(self) -> bool:
        """It runs in guests."""
        return self.manifest.plugin.type is PluginType.GUEST

    @property
    def info(self) -> PluginInfo:
        """As the engine sees it."""
        about, paths = self.manifest.plugin.description, frozenset(self.manifest.sandbox.paths)
        return PluginInfo(self.name, self.version, about, options=self.config, host_paths=paths)

    def host_paths(self) -> dict[str, Path]:
        """The paths of the host that its options name, by option."""
        return {key: Path(self.config[key]).expanduser() for key in self.manifest.sandbox.paths if self.config[key]}


def find_plugins(settings: PluginSettings, *places: Path, config_file: str = "configuration") -> tuple[FoundPlugin, ...]:
    """The host plugins in `places` (none given: the built-in ones) that are not disabled, by name, which is that of one of all only.

    A place is the folder of one plugin, or one of such folders; one that isn't there has none. Raises `ManifestError` for a plugin that
    can't be used, or not together with the others, `ConfigError` (naming `config_file`) for settings of a plugin that isn't there or
    has no such option.
    """
    hosts = tuple(plugin for plugin in _found(settings, places, config_file) if not plugin.is_guest)
    plan_for(hosts)
    _check_scopes(hosts)
    return hosts


def find_guest_plugins(settings: PluginSettings, *places: Path, config_file: str = "configuration") -> tuple[GuestPlugin, ...]:
    """The guest plugins in `places` that are not disabled, as `find_plugins` finds those of the host."""
    return tuple(_as_guest_plugin(plugin, settings) for plugin in _found(settings, places, config_file) if plugin.is_guest)


def plan_for(plugins: Sequence[FoundPlugin]) -> Plan:
    """How these host plugins run together. Raises `ManifestError` when they can't."""
    by_name = {plugin.name: plugin for plugin in plugins}
    try:
        return plan_of([plugin.manifest.planned for plugin in plugins], IDENTIFYING_PLUGIN)
    except PlanFault as fault:
        manifest = by_name[fault.plugin].folder / MANIFEST_NAME
        raise ManifestError(str(manifest), f"plan.{fault.key}", fault.problem) from fault


def load(folder: Path) -> FoundPlugin:
    """The plugin in a folder, with the options that its manifest gives. Raises `ManifestError`."""
    manifest = read_manifest(folder)
    return FoundPlugin(folder, entry_of(folder, manifest), manifest, manifest.config)


def survey(places: Sequence[Path]) -> Iterator[FoundPlugin | ManifestError]:
    """Each plugin in `places`, in order, or what is wrong with it."""
    for place in places:
        try:
            folders = plugin_folders(place)
        except ManifestError as fault:
            yield fault
            continue
        for folder in folders:
            try:
                yield load(folder)
            except ManifestError as fault:
                yield fault


def plugin_folders(place: Path) -> list[Path]:
    """The folders of plugins in a place: itself, or those in it that have a manifest, by name. Raises `ManifestError`."""
    try:
        if (place / MANIFEST_NAME).exists():
            return [place]
        if not place.is_dir():
            return []
        return [entry for entry in sorted(place.iterdir()) if entry.is_dir() and _has_manifest(entry)]
    except OSError as exc:
        raise ManifestError(str(exc.filename or place), None, f"can't be looked into ({exc.strerror})") from exc


def _has_manifest(folder: Path) -> bool:
    """Raises OSError when the folder can't be looked into."""
    return (folder / MANIFEST_NAME).exists() or (folder / MANIFEST_NAME).is_symlink()


def _as_guest_plugin(plugin: FoundPlugin, settings: PluginSettings) -> GuestPlugin:
    guests = plugin.manifest.guest
    return GuestPlugin(
        name=plugin.name,
        version=plugin.version,
        program=plugin.folder / plugin.entry,
        platforms=frozenset(guests.platforms) if guests is not None and guests.platforms else None,
        max_results=settings.max_results,
        max_result_bytes=settings.max_result_bytes,
    )


def _found(settings: PluginSettings, places: Sequence[Path], config_file: str) -> tuple[FoundPlugin, ...]:
    """All plugins that are not disabled, of both kinds, by name."""
    found: dict[str, FoundPlugin] = {}
    for folder in (folder for place in places or (BUILTIN_FOLDER,) for folder in plugin_folders(place)):
        plugin = load(folder)
        if plugin.name in found:
            where = f"{plugin.name!r} is also the name of {found[plugin.name].folder}"
            raise ManifestError(str(folder / MANIFEST_NAME), "plugin.name", where)
        found[plugin.name] = plugin
    for name in settings.disabled:
        must_know(name, found, config_file, "plugins.disabled")
    for name in settings.config:
        must_know(name, found, config_file, f"plugins.config.{name}")
    for name in settings.interpreters:
        must_know(name, found, config_file, f"plugins.interpreters.{name}")
    taking_part = [plugin for name, plugin in sorted(found.items()) if name not in settings.disabled]
    for name in settings.required:
        must_know(name, {plugin.name: plugin for plugin in taking_part}, config_file, "plugins.required")
    return tuple(_with_settings(plugin, settings, config_file) for plugin in taking_part)


def _with_settings(plugin: FoundPlugin, settings: PluginSettings, config_file: str) -> FoundPlugin:
    config = configured(plugin.manifest, settings.config.get(plugin.name, {}), config_file, f"plugins.config.{plugin.name}")
    if (option := settings.interpreters.get(plugin.name)) is None:
        return replace(plugin, config=config)
    key = f"plugins.interpreters.{plugin.name}"
    if plugin.is_guest:
        raise ConfigError(config_file, key, "it runs in guests, and no Python of this host runs it")
    try:
        return replace(plugin, config=config, interpreter=interpreter_at(option))
    except ValueError as exc:
        raise ConfigError(config_file, key, str(exc)) from exc


def _check_scopes(plugins: Sequence[FoundPlugin]) -> None:
    by_name = {plugin.name: plugin for plugin in plugins}
    for plugin in plugins:
        for name in plugin.manifest.scope.plugins if plugin.manifest.scope is not None else ():
            other = by_name.get(name)
            if other is None or other.manifest.runtime.state is not State.SCOPED:
                problem = f"{name!r} is no plugin" if other is None else f"{name!r} is {other.manifest.runtime.state.value}"
                path = str(plugin.folder / MANIFEST_NAME)
                raise ManifestError(path, "scope.plugins", f"{problem}; a scope is shared by plugins whose state is 'scoped'")


def first_fault(settings: PluginSettings, *places: Path, config_file: str) -> MalboxError | None:
    """The first thing that is wrong with the settings of plugins, or with the plugins in `places`; None when all is right."""
    try:
        find_plugins(settings, *places, config_file=config_file)
    except MalboxError as error:
        return error
    return None
