"""Limits of worker groups that were changed while the engine ran and outlive it: in a file beside the operator's, never in it.

The file holds only groups whose limits differ from the operator's, so that later changes of the operator's file count for all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from malbox_tui.config.faults import Fault
from malbox_tui.config.kept_file import KeptFile, kept_beside
from malbox_tui.config.section import Count, SettingsTable
from malbox_tui.config.settings import Settings

Limits = Mapping[str, tuple[int, int]]
"""(min, max) by the name of the worker group."""

_HEAD = """\
# Limits of worker groups that were changed while malbox-tui ran, and saved. malbox-tui writes this file; what it says
# goes over the configuration beside it. Remove it to go back to that.
"""


class _GroupLimits(SettingsTable, frozen=True, kw_only=True):
    min_workers: Count
    max_workers: Count


class _File(SettingsTable, frozen=True, kw_only=True):
    groups: dict[str, _GroupLimits] = msgspec.field(default_factory=dict)


class LimitsFile:
    """The file with the saved limits of one configuration; it is there only while limits are saved."""

    def __init__(self, path: Path) -> None:
        self._file = KeptFile(path, _File, "limits", _HEAD)
        self.shown = self._file.shown

    @classmethod
    def beside(cls, config: Path) -> LimitsFile:
        """The one that belongs to this configuration file: `config.limits.toml` for `config.toml`."""
        return cls(kept_beside(config, "limits"))

    def read(self) -> Limits:
        """The saved limits; none when there is no file. Raises `ConfigError` when it can't be used."""
        groups = self._file.read(_crossed).groups
        return {name: (group.min_workers, group.max_workers) for name, group in groups.items()}

    def write(self, limits: Limits) -> None:
        """Put these in place of what was saved, whole or not at all; without any there is no file. Raises `StoreError`."""
        groups = {name: {"min_workers": low, "max_workers": high} for name, (low, high) in limits.items()}
        self._file.write({"groups": groups} if groups else {})


class SavedLimits:
    """Keeps the limits of a running engine for its next start: a `LimitsStore`.

    `own_limits` tells, at the time of saving, those of the operator's file; None when it has none that could be compared with.
    """

    def __init__(self, file: LimitsFile, own_limits: Callable[[], Limits | None]) -> None:
        self._file = file
        self._own_limits = own_limits
        self._saving = asyncio.Lock()

    async def save(self, limits: Limits) -> str:
        """Keep (min, max) of all groups; returns where, for a person. Raises `StoreError`, with nothing changed.

        What was saved before is forgotten. Limits that are the operator's own need no file: it is removed. Cancelled: they are saved
        or not, but never in part.
        """
        async with self._saving:
            return await asyncio.to_thread(self._save_blocking, dict(limits))

    def _save_blocking(self, limits: Limits) -> str:
        own = self._own_limits() or {}
        differing = {name: pair for name, pair in limits.items() if own.get(name) != pair}
        self._file.write(differing)
        return self._file.shown if differing else "the configuration itself, which has the same limits"


def with_limits(settings: Settings, saved: Limits) -> Settings:
    """`settings` with the saved limits in place of its own; those of groups that it doesn't have are passed over.

    A group without a ceiling of its own keeps the one that it has by the operator's file, whatever was saved for `default`.
    """
    own = limits_of(settings)
    if not own.keys() & saved.keys():
        return settings
    (default_min, default_max), *others = ({**own, **saved}[name] for name in own)
    general = msgspec.structs.replace(settings.general, min_workers=default_min, max_workers=default_max)
    workers = tuple(
        msgspec.structs.replace(worker, min_workers=low, max_workers=high)
        for worker, (low, high) in zip(settings.workers, others, strict=True)
    )
    return msgspec.structs.replace(settings, general=general, workers=workers)


def limits_of(settings: Settings) -> Limits:
    """(min, max) of each group, in the order of the groups."""
    return {group.name: (group.min_workers, group.max_workers) for group in settings.groups()}


def _crossed(file: _File) -> Iterator[Fault]:
    for name, group in file.groups.items():
        if group.min_workers > group.max_workers:
            problem = f"{group.min_workers} is above the group's max_workers, which is {group.max_workers}."
            yield Fault(f"groups.{name}.min_workers", problem)
