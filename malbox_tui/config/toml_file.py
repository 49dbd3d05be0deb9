"""Reads a TOML file as an operator's editor may have left it; what is wrong with it is told by file and line."""

from __future__ import annotations

import codecs
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
    """The whole file as a table. Raises `ConfigError` when it can't be read, and FileNotFoundError when there is none."""
    shown = shown_path(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
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
