"""Configurations as TOML text: a commented file to start from, and the one in effect."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from malbox_tui.config.loading import shown_path
from malbox_tui.config.settings import Settings
from malbox_tui.config.shape import Key, Section, sections
from malbox_tui.model.errors import ConfigError

_WIDTH = 100
_EXAMPLE_PLUGIN = "yara-x"
_EXAMPLE_OPTIONS = (("rules", "/path/to/rules"), ("scan_timeout_s", "120"))
_HEAD = """\
# The configuration of malbox-tui. Each key stands here with its default, commented out: take the # away to change it.
# `malbox-tui config check` finds mistakes, `malbox-tui config show` prints what is in effect.
"""


def template() -> str:
    """A file with every section and key, its default and its explanation. It says nothing: loaded, it gives the defaults."""
    return _HEAD + "".join(f"\n{_section_text(section)}" for section in sections())


def write_template(path: Path) -> None:
    """Write the template to a new file, readable by its owner alone. Raises `ConfigError`; a file that is there stays as it is."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as exc:
        raise ConfigError(shown_path(path), None, "there already is such a file; it was left as it was.") from exc
    except OSError as exc:
        raise ConfigError(shown_path(path), None, f"the file can't be written: {exc.strerror or exc}.") from exc
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(template())


def as_toml(settings: Settings) -> str:
    """`settings` whole, as a file that would load as the same."""
    return tomli_w.dumps(msgspec.to_builtins(settings))


def _section_text(section: Section) -> str:
    lines = [*_comment(section.explanation), f"[{section.name}]"]
    for key in section.keys:
        lines += ["", *_comment(_explanation(key)), *_default(section, key)]
    return "\n".join(lines) + "\n"


def _explanation(key: Key) -> str:
    if isinstance(key.default, dict):
        return key.explanation
    return f"{key.explanation.rstrip('.')}. {key.expected[0].upper()}{key.expected[1:]}.".lstrip(". ")


def _default(section: Section, key: Key) -> list[str]:
    value: Any = msgspec.to_builtins(key.default)
    if isinstance(value, dict):
        return [
            f"#[{section.name}.{key.name}.{_EXAMPLE_PLUGIN}]",
            *(f'#{option} = "{value}"' for option, value in _EXAMPLE_OPTIONS),
        ]
    return [f"#{line}" for line in tomli_w.dumps({key.name: value}).splitlines()]


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]
