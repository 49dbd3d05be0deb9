"""Plugins that installed Python packages bring along, by entry points of the group `malbox_tui.plugins`.

An entry point names a package whose folder is a plugin: `my-plugin = "my_package.plugin"`. Nothing of it is imported: code that isn't
confined would run then.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from malbox_tui.model.errors import ManifestError

GROUP = "malbox_tui.plugins"


def entry_point_folders() -> tuple[Path, ...]:
    """The folders that entry points name, by their names. Raises `ManifestError` for one that names none."""
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(dict.fromkeys(_folder(point) for point in found))


def _folder(point: EntryPoint) -> Path:
    package, *inner = point.module.split(".")
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (folder := Path(location, *inner)).is_dir():
            return folder
    installed = "" if point.dist is None else f" of {point.dist.name}"
    raise ManifestError(f"entry point {point.name}{installed}", None, f"{point.value!r} is no package with a folder")
