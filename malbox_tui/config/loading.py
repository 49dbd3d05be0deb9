"""From a TOML file to `Settings`, strictly: nothing in a file is ignored, and each fault is told with file, key and remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from malbox_tui.config.faults import value_faults
from malbox_tui.config.folders import DataFolders
from malbox_tui.config.rules import contradictions
from malbox_tui.config.settings import Settings
from malbox_tui.config.toml_file import read_table, shown_path
from malbox_tui.model.errors import ConfigError

__all__ = ["ConfigSource", "shown_path"]


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """The file that a configuration comes from. A file that is `named` by the operator has to be there."""

    path: Path
    named: bool

    @classmethod
    def chosen(cls, config: Path | None, folders: DataFolders) -> ConfigSource:
        """The file given with --config, else the one of the data folder."""
        return cls(config, named=True) if config is not None else cls(folders.config_file, named=False)

    @property
    def exists(self) -> bool:
        """True also when it can't be told, because the folder can't be looked into."""
        try:
            return self.path.exists()
        except OSError:
            return True

    @property
    def shown(self) -> str:
        """The path, safe to print."""
        return shown_path(self.path)

    def load(self) -> Settings:
        """The settings of the file, or the defaults when there is none. Raises `ConfigError` with the first fault."""
        settings, faults = self.examine()
        if faults:
            raise faults[0]
        return settings

    def examine(self) -> tuple[Settings, list[ConfigError]]:
        """The settings and every fault of the file; with faults, the settings are the defaults."""
        try:
            table = self._read()
        except ConfigError as fault:
            return Settings(), [fault]
        faults = [*value_faults(table, types.type_info(Settings))]
        faults += contradictions(table, tuple(faults))
        if faults:
            return Settings(), [ConfigError(self.shown, fault.key or None, fault.problem) for fault in faults]
        return msgspec.convert(table, Settings), []

    def _read(self) -> Mapping[str, Any]:
        if not self.named and not self.exists:
            return {}
        try:
            return read_table(self.path)
        except FileNotFoundError as exc:
            raise ConfigError(self.shown, None, "there is no such file. `malbox-tui config init` writes one.") from exc
