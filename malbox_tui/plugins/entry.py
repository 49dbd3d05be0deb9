"""The file that a plugin's process runs, and why one can't be run here."""

from __future__ import annotations

import ast
import re
import stat
from pathlib import Path

from malbox_tui.model.errors import ManifestError
from malbox_tui.plugins.manifest import MANIFEST_NAME, Manifest, PluginType

_HEAD_BYTES = 256
_SCRIPT_BYTES = 1024 * 1024
_PYTHON = re.compile(rb"#!\s*(/\S*/)?(env\s+(-S\s+)?)?(\S*/)?python[\d.]*(\s|$)")


def entry_of(folder: Path, manifest: Manifest) -> str:
    """The entry script's file name. Raises `ManifestError` when it can't be run."""
    entry = manifest.plugin.binary or folder.name
    if (problem := _problem(folder, entry, manifest.plugin.type)) is not None:
        raise ManifestError(str(folder / MANIFEST_NAME), "plugin.binary", problem)
    return entry


def syntax_problem(folder: Path, entry: str) -> str | None:
    """What this Python can't make of the script, without running it; None when it can, or there is no saying."""
    path = folder / entry
    try:
        with path.open("rb") as file:
            content = file.read(_SCRIPT_BYTES)
        ast.parse(content, str(path))
    except SyntaxError as exc:
        return f"{entry}{f', line {exc.lineno}' if exc.lineno else ''}: {exc.msg}"
    except ValueError as exc:
        return f"{entry}: {exc}"
    except (OSError, RecursionError, MemoryError):
        return None
    return None


def _problem(folder: Path, entry: str, plugin_type: PluginType) -> str | None:
    if entry in ("", ".", "..") or "/" in entry or "\0" in entry or len(entry) > 255:
        return f"{entry[:100]!r} must be the name of a file in the plugin's folder"
    path = folder / entry
    try:
        if not path.is_file():
            return f"there is no file {entry!r} in the plugin's folder"
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        may_run = bool(path.stat().st_mode & stat.S_IXUSR)
    except OSError as exc:
        return f"{entry!r} can't be read ({exc.strerror})"
    if plugin_type is PluginType.GUEST or entry.endswith(".py"):
        return None
    return _not_python(entry, head, may_run=may_run)


def _not_python(entry: str, head: bytes, *, may_run: bool) -> str | None:
    """Why a file that isn't called .py is no Python script either."""
    if head.startswith((b"\x7fELF", b"MZ")):
        return f"{entry!r} is a native program; host plugins are Python scripts here"
    if not head.startswith(b"#!"):
        return f"{entry!r} is not a Python script: call it .py, or let it begin with #!/usr/bin/env python3"
    if not _PYTHON.match(head.partition(b"\n")[0]):
        return f"{entry!r} is a script for another interpreter; host plugins are Python scripts here"
    return None if may_run else f"{entry!r} is a script without the right to be run: chmod +x it, or call it .py"
