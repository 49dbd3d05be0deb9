"""Reads a TOML file as an operator's editor may have left it; what is wrong with it is told by file and line."""

from __future__ import annotations

import codecs
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from malbox_tui.model.errors import ConfigError
from malbox_tui.model.sample import escape, visible

_MAX_FILE_BYTES = 4 * 1024 * 1024


def shown_path(path: Path) -> str:
    """A path as text that is safe to print."""
    return escape(bytes(path))


def read_table(path: Path) -> dict[str, Any]:
    """The whole file as a table. Raises `ConfigError` when it can't be read, and FileNotFoundError when there is none.

    Only a regular file, or a link to one, is read: a pipe or a device may have no end, or never begin.
    """
    shown = shown_path(path)
    try:
        content = _read(path)
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise FileNotFoundError(*exc.args) from exc
    except OSError as exc:
        raise ConfigError(shown, None, f"the file can't be read: {exc.strerror or exc}.") from exc
    if len(content) > _MAX_FILE_BYTES:
        raise ConfigError(shown, None, "the file is too large for a configuration.")
    try:
        return tomllib.loads(content.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as exc:
        line = content.count(b"\n", 0, exc.start) + 1
        raise ConfigError(shown, None, f"line {line} is not UTF-8, which TOML has to be.") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(shown, None, f"not valid TOML: {visible(str(exc))}.") from exc
    except RecursionError as exc:
        raise ConfigError(shown, None, "not a configuration: its values are nested too deeply.") from exc


def _read(path: Path) -> bytes:
    """Its first bytes, one more than it may have. Looked at before it is opened (opening a device can act on it), and again after."""
    _check_kind(path, path.stat())
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY), "rb") as file:
        _check_kind(path, os.fstat(file.fileno()))
        return file.read(_MAX_FILE_BYTES + 1)


def _check_kind(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise ConfigError(shown_path(path), None, f"it is {kind}; a configuration has to be a file, or a link to one.")


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
