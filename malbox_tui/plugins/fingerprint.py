"""What plugins are at one moment, so that it can be told afterwards which of them changed."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

from malbox_tui.plugins.registry import FoundPlugin

Fingerprints = Mapping[str, tuple[Hashable, str]]
"""By the names of plugins: something that is another when the plugin is, and its version."""

_MOST_FILES = 10_000
"""Of one plugin; more are not looked at."""


def fingerprints(plugins: Sequence[FoundPlugin]) -> Fingerprints:
    """Those of these plugins, as they are now."""
    return {plugin.name: ((repr(plugin), _files(plugin.folder)), plugin.version) for plugin in plugins}


def changes_between(before: Fingerprints, after: Fingerprints) -> tuple[str, ...]:
    """What was added, removed and changed, a part of a sentence each."""
    added = [f"{name} {after[name][1]} was added" for name in after if name not in before]
    removed = [f"{name} was removed" for name in before if name not in after]
    changed = [f"{name} {after[name][1]} was changed" for name in after if name in before and before[name] != after[name]]
    return (*added, *changed, *removed)


def _files(folder: Path) -> tuple[tuple[str, int, int], ...]:
    found: list[tuple[str, int, int]] = []
    for place, _folders, names in os.walk(folder):
        for name in names:
            if len(found) == _MOST_FILES:
                return tuple(found)
            path = Path(place, name)
            try:
                status = path.lstat()
            except OSError:
                continue
            if path.suffix != ".pyc":
                found.append((str(path), status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))
