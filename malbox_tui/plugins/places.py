"""Where plugins come from."""

from __future__ import annotations

from pathlib import Path

from malbox_tui.config.folders import DataFolders
from malbox_tui.plugins.entry_points import entry_point_folders
from malbox_tui.plugins.registry import BUILTIN_FOLDER


def all_places(folders: DataFolders) -> tuple[Path, ...]:
    """The built-in plugins, those of the operator's folders, and those of installed packages. Raises `ManifestError`."""
    return (BUILTIN_FOLDER, *folders.plugin_folders, *entry_point_folders())


def origin_of(folder: Path, folders: DataFolders) -> str:
    """Where the plugin in a folder comes from, in words."""
    if folder.parent == BUILTIN_FOLDER:
        return "built-in"
    return "folder" if folder.parent in folders.plugin_folders else "package"
