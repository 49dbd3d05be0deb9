"""What profiles say of plugins, checked against those that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from malbox_tui.model.errors import ConfigError
from malbox_tui.model.profile import Profile
from malbox_tui.plugins.options import configured, must_know
from malbox_tui.plugins.registry import FoundPlugin
from malbox_tui.plugins.tray import IDENTIFYING_PLUGIN


def check_profiles(
    profiles: Sequence[Profile], hosts: Sequence[FoundPlugin], guests: Sequence[str], config_file: str = "configuration"
) -> None:
    """Raises `ConfigError` for the first profile that names a plugin that doesn't take part, or an option that a plugin doesn't have.
    `guests` are the names of the plugins for guests."""
    by_name = {plugin.name: plugin for plugin in hosts}
    for index, profile in enumerate(profiles):
        key = f"profiles[{index}]"
        for list_name, names in (
            ("plugins", profile.plugins),
            ("required", profile.required),
            ("options", tuple(profile.options)),
        ):
            for name in names:
                must_know(name, (*by_name, *guests), config_file, f"{key}.{list_name}")
        if profile.kinds and IDENTIFYING_PLUGIN not in by_name:
            problem = f"nobody tells kinds, since the plugin {IDENTIFYING_PLUGIN} is disabled"
            raise ConfigError(config_file, f"{key}.kinds", problem)
        _check_options(profile.options, by_name, config_file, key)


def _check_options(
    options: Mapping[str, Mapping[str, str]], by_name: Mapping[str, FoundPlugin], config_file: str, key: str
) -> None:
    for name, given in options.items():
        place = f"{key}.options.{name}"
        if name not in by_name:
            raise ConfigError(config_file, place, "it runs in guests, and has no options")
        configured(by_name[name].manifest, given, config_file, place)
