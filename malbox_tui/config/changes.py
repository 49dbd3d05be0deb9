"""What differs between two configurations, and what of it a running engine can take over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from malbox_tui.config.settings import Settings

_LIVE = re.compile(
    r"general\.(min_workers|max_workers|drain_timeout_s)"
    r"|workers\.[^.]+\.(min_workers|max_workers)"
    r"|machines\..+"
    r"|intake\.max_sample_bytes"
    r"|machinery\.(start_timeout_s|probe_interval_s|max_attempts)"
    r"|machinery\.(max_dropped_files|max_dropped_file_mb|max_dropped_mb|max_traffic_mb|max_memory_mb)"
    r"|analysis\.(timeout_s|critical_timeout_s|initializing_timeout_s|preparing_timeout_s|stopping_timeout_s|enforce_timeout)"
)
"""The keys that a running engine can take over. A worker group stands under its name, and so does a machine."""

_NAMES = {"workers": "name", "machines": "name", "watch": "path", "profiles": "name"}
"""The key by which the tables of a list are told apart, by the list's key."""


@dataclass(frozen=True, slots=True)
class Change:
    """One key with its values before and after; None: it is not there."""

    key: str
    before: Any
    after: Any

    @property
    def is_live(self) -> bool:
        """Whether a running engine can take it over."""
        return _LIVE.fullmatch(self.key) is not None

    def __str__(self) -> str:
        """For a person: `general.max_workers: 4 → 6`."""
        return f"{self.key}: {_shown(self.before)} → {_shown(self.after)}"


def changes(before: Settings, after: Settings) -> tuple[Change, ...]:
    """Every key that differs, in the order of the settings."""
    return tuple(_differences("", _tables(before), _tables(after)))


def with_live(before: Settings, after: Settings) -> Settings:
    """`before`, with what can be taken over of `after`.

    A group's limits that come from [general] follow it.
    """
    own = {change.key for change in changes(before, after) if change.is_live}
    groups = {worker.name: worker for worker in after.workers}
    return msgspec.structs.replace(
        before,
        general=_taken("general", own, before.general, after.general),
        workers=tuple(
            _taken(f"workers.{worker.name}", own, worker, groups[worker.name]) if worker.name in groups else worker
            for worker in before.workers
        ),
        machines=after.machines,
        machinery=_taken("machinery", own, before.machinery, after.machinery),
        intake=_taken("intake", own, before.intake, after.intake),
        analysis=_taken("analysis", own, before.analysis, after.analysis),
    )


def _taken(table: str, live: set[str], before: Any, after: Any) -> Any:
    names = [name for name in before.__struct_fields__ if f"{table}.{name}" in live]
    return msgspec.structs.replace(before, **{name: getattr(after, name) for name in names})


def _tables(settings: Settings) -> Any:
    """Nested tables, those of lists under their names."""
    tables = msgspec.to_builtins(settings)
    return {key: {entry[_NAMES[key]]: entry for entry in value} if key in _NAMES else value for key, value in tables.items()}


def _differences(key: str, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from _differences(f"{key}.{name}".lstrip("."), before.get(name), after.get(name))
    elif before != after:
        yield Change(key, before, after)


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    return "(a table)" if isinstance(value, dict) else msgspec.json.encode(value).decode()
