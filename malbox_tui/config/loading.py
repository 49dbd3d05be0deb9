"""From a TOML file to `Settings`, strictly: nothing in a file is ignored, and each fault is told with file, key and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from malbox_tui.config.faults import value_faults
from malbox_tui.config.folders import DataFolders
from malbox_tui.config.machine_list import doubles
from malbox_tui.config.rules import contradictions
from malbox_tui.config.saved_limits import Limits, LimitsFile, SavedLimits, limits_of, with_limits
from malbox_tui.config.saved_machines import MachineChanges, MachinesFile, SavedMachines, machine_notes, with_machines
from malbox_tui.config.saved_watches import SavedWatches, WatchChanges, WatchesFile, watch_notes, with_watches
from malbox_tui.config.settings import Settings
from malbox_tui.config.toml_file import read_table, shown_path
from malbox_tui.config.watching import WatchSettings
from malbox_tui.model.errors import ConfigError
from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.sample import visible

__all__ = ["ConfigSource", "Configuration", "shown_path"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a source comes to. With `faults`, every one there is, `settings` are the defaults.

    `doubles` are the faults of machines that are there twice: the first of them, and everything else, is in effect.
    `notes` are sentences on what doesn't come from the operator's file: limits of worker groups that were saved, machines
    and watched folders that were added, changed or removed.
    """

    settings: Settings
    faults: tuple[ConfigError, ...] = ()
    doubles: tuple[ConfigError, ...] = ()
    notes: tuple[str, ...] = ()


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
        """The settings in effect: the defaults, the file over them, what was saved over that. Raises `ConfigError`, the first fault."""
        configuration = self.read()
        if configuration.faults:
            raise configuration.faults[0]
        return configuration.settings

    def examine(self) -> tuple[Settings, list[ConfigError]]:
        """The settings in effect and every fault; with faults, the settings are the defaults."""
        configuration = self.read()
        return configuration.settings, list(configuration.faults)

    def read(self) -> Configuration:
        """The settings in effect, every fault, and what comes from elsewhere than the operator's file."""
        own, faults = self._own_settings()
        saved: Limits = {}
        changed, watched = MachineChanges(), WatchChanges()
        try:
            saved = self._limits_file.read()
        except ConfigError as fault:
            faults.append(fault)
        try:
            changed = self._machines_file.read()
        except ConfigError as fault:
            faults.append(fault)
        try:
            watched = self._watches_file.read()
        except ConfigError as fault:
            faults.append(fault)
        if faults:
            return Configuration(Settings(), tuple(faults))
        notes = (
            *_notes(self._limits_file.shown, limits_of(own), saved),
            *machine_notes(self._machines_file, own, changed),
            *watch_notes(self._watches_file, own, watched),
        )
        settings = with_watches(with_machines(with_limits(own, saved), changed), watched)
        return Configuration(settings, doubles=tuple(self._doubles(settings, own)), notes=notes)

    def saved_limits(self) -> SavedLimits:
        """Where an engine that runs on this configuration keeps limits for its next start."""
        return SavedLimits(self._limits_file, self._own_limits)

    def saved_machines(self) -> SavedMachines:
        """Where an engine that runs on this configuration keeps machines for its next start."""
        return SavedMachines(self._machines_file, self._own_machines)

    def saved_watches(self) -> SavedWatches:
        """Where an engine that runs on this configuration keeps watched folders for its next start."""
        return SavedWatches(self._watches_file, self._own_watches)

    @property
    def _watches_file(self) -> WatchesFile:
        return WatchesFile.beside(self.path)

    @property
    def _machines_file(self) -> MachinesFile:
        return MachinesFile.beside(self.path)

    @property
    def _limits_file(self) -> LimitsFile:
        return LimitsFile.beside(self.path)

    def _own_settings(self) -> tuple[Settings, list[ConfigError]]:
        try:
            table = self._read()
        except ConfigError as fault:
            return Settings(), [fault]
        faults = [*value_faults(table, types.type_info(Settings))]
        faults += contradictions(table, tuple(faults))
        if faults:
            return Settings(), [ConfigError(self.shown, fault.key or None, fault.problem) for fault in faults]
        return msgspec.convert(table, Settings), []

    def _doubles(self, settings: Settings, own: Settings) -> Iterator[ConfigError]:
        """Those of `settings`, each with its place in the file that it is from: the operator's, whose machines are `own`, or ours."""
        places = {id(machine): f"machines[{index}]" for index, machine in enumerate(own.machines)}
        for double in doubles([machine.spec() for machine in settings.machines]):
            machine = settings.machines[double.index]
            place = places.get(id(machine))
            key = None if place is None else f"{place}.{double.key}"
            problem = f"machine {machine.name}: {double.problem} Until then it is not used."
            yield ConfigError(self._machines_file.shown if place is None else self.shown, key, problem)

    def _own_limits(self) -> Limits | None:
        settings = self._settings_again()
        return None if settings is None else limits_of(settings)

    def _own_machines(self) -> Sequence[MachineSpec] | None:
        settings = self._settings_again()
        return None if settings is None else [machine.spec() for machine in settings.machines]

    def _own_watches(self) -> Sequence[WatchSettings] | None:
        settings = self._settings_again()
        return None if settings is None else settings.watch

    def _settings_again(self) -> Settings | None:
        """None when the file has none that hold."""
        settings, faults = self._own_settings()
        return None if faults else settings

    def _read(self) -> Mapping[str, Any]:
        if not self.named and not self.exists:
            return {}
        try:
            return read_table(self.path)
        except FileNotFoundError as exc:
            raise ConfigError(self.shown, None, "there is no such file. `malbox-tui config init` writes one.") from exc


def _notes(limits_file: str, own: Limits, saved: Limits) -> Iterator[str]:
    for name, limits in saved.items():
        if name not in own:
            yield f"{limits_file}: there is no group {visible(name)} in the configuration; its saved limits are not used."
        elif limits != own[name]:
            group = f"the group {name} has min_workers = {limits[0]} and max_workers = {limits[1]}, as saved"
            yield f"{limits_file}: {group}; by the configuration itself they are {own[name][0]} and {own[name][1]}."
