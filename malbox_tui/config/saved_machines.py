"""Machines that were added, changed or removed while the engine ran and outlive it: in a file beside the operator's, never in it.

The file holds only what differs from the operator's, so that later changes of the operator's file count for all other machines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from malbox_tui.config.faults import Fault
from malbox_tui.config.kept_file import KeptFile, kept_beside
from malbox_tui.config.machine_list import listed
from malbox_tui.config.machine_rules import machine_faults
from malbox_tui.config.machine_tables import table_of
from malbox_tui.config.machines import MachineSettings
from malbox_tui.config.section import SettingsTable, Text
from malbox_tui.config.settings import Settings
from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.sample import visible

_HEAD = """\
# Machines that were added, changed or removed while malbox-tui ran. malbox-tui writes this file; what it says goes over the
# configuration beside it. Remove it to go back to that.
"""


class MachineChanges(SettingsTable, frozen=True, kw_only=True):
    """What the file says: `machines` are added or stand in place of the operator's, `removed` names those of the operator's that are
    not to be used."""

    removed: tuple[Text, ...] = ()
    machines: tuple[MachineSettings, ...] = ()


class MachinesFile:
    """The file with the changed machines of one configuration; it is there only while some are."""

    def __init__(self, path: Path) -> None:
        self._file = KeptFile(path, MachineChanges, "machines", _HEAD)
        self.shown = self._file.shown

    @classmethod
    def beside(cls, config: Path) -> MachinesFile:
        """The one that belongs to this configuration file: `config.machines.toml` for `config.toml`."""
        return cls(kept_beside(config, "machines"))

    def read(self) -> MachineChanges:
        """What was changed; nothing when there is no file. Raises `ConfigError` when it can't be used."""
        return self._file.read(_faults)

    def write(self, machines: Sequence[MachineSpec], removed: Sequence[str]) -> None:
        """Put these in place of what was kept, whole or not at all; without any there is no file. Raises `StoreError`."""
        content: dict[str, Any] = {}
        if removed:
            content["removed"] = list(removed)
        if machines:
            content["machines"] = [table_of(machine) for machine in machines]
        self._file.write(content)


class SavedMachines:
    """Keeps the machines of a running engine for its next start: a `MachineBook`.

    `own_machines` tells, at the time of saving, those of the operator's file; None when it has none that could be compared with.
    """

    def __init__(self, file: MachinesFile, own_machines: Callable[[], Sequence[MachineSpec] | None]) -> None:
        self._file = file
        self._own_machines = own_machines
        self._saving = asyncio.Lock()

    async def save(self, machines: Sequence[MachineSpec]) -> str:
        """Keep all machines as they are now; returns where, for a person. Raises `StoreError`, with nothing changed.

        What was kept before is forgotten. Machines that are the operator's own need no file: it is removed. Cancelled: they are kept
        or not, but never in part.
        """
        async with self._saving:
            return await asyncio.to_thread(self._save_blocking, tuple(machines))

    def _save_blocking(self, machines: Sequence[MachineSpec]) -> str:
        own = {machine.name: machine for machine in listed(self._own_machines() or ()).machines}
        differing = [machine for machine in machines if own.get(machine.name) != machine]
        removed = [name for name in own if name not in {machine.name for machine in machines}]
        self._file.write(differing, removed)
        return self._file.shown if differing or removed else "the configuration itself, which has the same machines"


def with_machines(settings: Settings, changes: MachineChanges) -> Settings:
    """`settings` with what was changed: changed machines in their places, added ones behind them, removed ones gone."""
    changed = {machine.name: machine for machine in changes.machines}
    names = _names(settings)
    staying = [changed.pop(name, own) for name, own in zip(names, settings.machines, strict=True) if name not in changes.removed]
    return msgspec.structs.replace(settings, machines=(*staying, *changed.values()))


def machine_notes(file: MachinesFile, settings: Settings, changes: MachineChanges) -> Iterator[str]:
    """What of the operator's `settings` was changed while the engine ran, a sentence each."""
    names = _names(settings)
    for machine in changes.machines:
        what = "is as it was changed" if machine.name in names else "was added"
        yield f"Machine {visible(machine.name)} {what} while malbox-tui ran: {file.shown}."
    for name in changes.removed:
        if name in names:
            yield f"Machine {visible(name)} is left out: it was removed while malbox-tui ran ({file.shown})."


def _names(settings: Settings) -> list[str]:
    """What the engine calls the machines of the operator's file, in their order."""
    return [machine.name for machine in listed([machine.spec() for machine in settings.machines]).machines]


def _faults(changes: MachineChanges) -> Iterator[Fault]:
    for index, machine in enumerate(changes.machines):
        yield from machine_faults(f"machines[{index}]", machine)
