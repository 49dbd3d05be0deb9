"""Which plugins there are, and with which options each takes part."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.errors import ConfigError, ManifestError
from malbox_tui.plugins.manifest import MANIFEST_NAME, Manifest, PluginType, entry_of, read_manifest
from malbox_tui.ports import GuestPlugin, PluginInfo

BUILTIN_FOLDER = Path(__file__).resolve().parent / "builtin"


@dataclass(frozen=True, slots=True)
class HostPlugin:
    """One plugin that takes part: where it is, what its manifest says, and its options."""

    folder: Path
    entry: str
    manifest: Manifest
    config: Mapping[str, str]

    @property
    def name(self) -> str:
        """As in its manifest."""
        return self.manifest.plugin.name

    @property
    def version(self) -> str:
        """As in its manifest."""
        return self.manifest.plugin.version

    @property
    def info(self) -> PluginInfo:
        """As the engine sees it."""
        return PluginInfo(self.name, self.version, self.manifest.plugin.description)

    def host_paths(self) -> dict[str, Path]:
        """The paths of the host that its options name, by option."""
        return {key: Path(self.config[key]).expanduser() for key in self.manifest.sandbox.paths if self.config[key]}


def find_plugins(settings: PluginSettings, *folders: Path, config_file: str = "configuration") -> tuple[HostPlugin, ...]:
    """The host plugins in `folders` (none given: the built-in ones) that are not disabled, by name, which is that of one of all only.
    A folder that isn't there has none.

    Raises `ManifestError` for one that can't be used, `ConfigError` (naming `config_file`) for settings of a plugin that isn't there
    or has no such option.
    """
    found = _found(settings, folders, config_file)
    return tuple(plugin for plugin in found if plugin.manifest.plugin.type is PluginType.HOST)


def find_guest_plugins(settings: PluginSettings, *folders: Path, config_file: str = "configuration") -> tuple[GuestPlugin, ...]:
    """The guest plugins in `folders` that are not disabled, as `find_plugins` finds those of the host."""
    found = _found(settings, folders, config_file)
    return tuple(_as_guest_plugin(plugin, settings) for plugin in found if plugin.manifest.plugin.type is PluginType.GUEST)


def _as_guest_plugin(plugin: HostPlugin, settings: PluginSettings) -> GuestPlugin:
    guests = plugin.manifest.guest
    return GuestPlugin(
        name=plugin.name,
        version=plugin.version,
        program=plugin.folder / plugin.entry,
        platforms=frozenset(guests.platforms) if guests is not None and guests.platforms else None,
        max_results=settings.max_results,
        max_result_bytes=settings.max_result_bytes,
    )


def _found(settings: PluginSettings, folders: Sequence[Path], config_file: str) -> tuple[HostPlugin, ...]:
    """All plugins that are not disabled, of both kinds, by name."""
    found: dict[str, HostPlugin] = {}
    for manifest_path in (path for folder in folders or (BUILTIN_FOLDER,) for path in sorted(folder.glob(f"*/{MANIFEST_NAME}"))):
        plugin = _load(manifest_path.parent)
        if plugin.name in found:
            raise ManifestError(
                str(manifest_path), "plugin.name", f"{plugin.name!r} is also the name of {found[plugin.name].folder}"
            )
        found[plugin.name] = plugin
    for name in settings.disabled:
        _must_know(name, found, config_file, "plugins.disabled")
    for name in settings.config:
        _must_know(name, found, config_file, f"plugins.config.{name}")
    return tuple(
        _configured(plugin, settings.config.get(name, {}), config_file)
        for name, plugin in sorted(found.items())
        if name not in settings.disabled
    )


def _load(folder: Path) -> HostPlugin:
    manifest = read_manifest(folder)
    return HostPlugin(folder, entry_of(folder, manifest), manifest, manifest.config)


def _configured(plugin: HostPlugin, options: Mapping[str, str], config_file: str) -> HostPlugin:
    for key in options:
        if key not in plugin.manifest.config:
            known = difflib.get_close_matches(key, plugin.manifest.config, n=1, cutoff=0.5) or sorted(plugin.manifest.config)
            hint = f"; it has {', '.join(known)}" if known else "; it has none"
            raise ConfigError(config_file, f"plugins.config.{plugin.name}.{key}", f"the plugin has no such option{hint}")
    configured = HostPlugin(plugin.folder, plugin.entry, plugin.manifest, {**plugin.manifest.config, **options})
    for key in plugin.manifest.sandbox.paths:
        if (problem := _path_problem(configured.config[key])) is not None:
            raise ConfigError(config_file, f"plugins.config.{plugin.name}.{key}", problem)
    return configured


def _path_problem(option: str) -> str | None:
    """Why an option names no path of this host; None for one that does, and for an option that is not set."""
    if not option:
        return None
    try:
        path = Path(option).expanduser()
        if not path.is_absolute():
            return f"{str(path)!r} must be an absolute path"
        return None if path.exists() else f"there is no {path}"
    except RuntimeError:
        return f"there is no such home folder: {option!r}"
    except OSError as exc:
        return f"{option!r} can't be looked at: {exc.strerror or exc}"


def _must_know(name: str, found: Mapping[str, HostPlugin], config_file: str, key: str) -> None:
    if name not in found:
        nearest = difflib.get_close_matches(name, found, n=1, cutoff=0.5)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(sorted(found)) or 'none'}"
        raise ConfigError(config_file, key, f"there is no plugin {name!r}{hint}")
