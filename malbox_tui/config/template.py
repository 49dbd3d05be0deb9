"""Configurations as TOML text: a commented file to start from, and the one in effect."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import tomli_w

from malbox_tui.config.loading import shown_path
from malbox_tui.config.settings import Settings
from malbox_tui.config.shape import Key, Section, in_toml, sections
from malbox_tui.model.errors import ConfigError

_WIDTH = 100
_EXAMPLES: Mapping[str, Any] = MappingProxyType(
    {
        "workers.name": "windows",
        "workers.compatible_tasks": ["dynamic"],
        "workers.compatible_platforms": ["windows"],
        "workers.max_workers": 4,
        "workers.batch_processing": False,
        "workers.resource_limits.memory_mb": 2048,
        "workers.resource_limits.cpu_cores": 2,
        "workers.resource_limits.disk_mb": 512,
        "workers.resource_limits.network_kbps": 0,
        "profiles.name": "documents",
        "profiles.plugins": ["file-type", "strings", "yara-x"],
        "profiles.required": ["yara-x"],
        "profiles.kinds": ["ole", "ooxml"],
        "profiles.timeout_s": 120,
        "profiles.type": "dynamic",
        "profiles.platform": "windows",
        "profiles.tags": ["office"],
        "profiles.options": {"strings": {"min_length": "8"}},
        "machines.name": "linux-1",
        "machines.provider": "libvirt",
        "machines.uri": "qemu:///system",
        "machines.domain": "linux-1",
        "machines.snapshot": "clean",
        "machines.platform": "linux",
        "machines.channel": "qga",
        "machines.address": "192.168.122.10",
        "machines.folder": "/tmp",
        "machines.disk_folder": "/var/tmp",
        "machines.disk_kib_s": 20480,
        "machines.network_kbps": 1000,
        "watch.path": "/srv/incoming",
        "watch.profile": "documents",
        "watch.timeout_s": 120.0,
        "watch.type": "dynamic",
        "watch.platform": "windows",
        "watch.arch": "x64",
        "watch.machine": "windows-1",
        "plugins.config": {
            "strings": {"min_length": "6", "max_mib": "128"},
            "yara-x": {"rules": "/path/to/rules", "scan_timeout_s": "120"},
        },
    }
)
"""What stands in the file for a key that has no default, or one that would not show how it is written."""
_HEAD = """\
# The configuration of malbox-tui. Each key stands here with its default, commented out: take the # away to change it.
# Tables in double brackets are examples: there are no such groups, machines and folders until they are written.
# `malbox-tui config check` finds mistakes, `malbox-tui config show` prints what is in effect.
"""

_WHEN_LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {
        "workers.compatible_tasks": "all",
        "workers.compatible_platforms": "all",
        "workers.max_workers": "that of [general]",
        "workers.batch_processing": "as execution_mode says",
        "profiles.timeout_s": "that of [analysis]",
        "profiles.type": "dynamic with a platform or tags, else as without a profile",
        "profiles.platform": "any",
        "machines.uri": "none",
        "machines.domain": "as name",
        "machines.snapshot": "none",
        "machines.channel": "as its provider has it",
        "machines.address": "none",
        "machines.folder": "as its platform has it",
        "machines.disk_folder": "as its platform has it",
        "machines.disk_kib_s": "any amount",
        "machines.network_kbps": "any amount",
        "watch.profile": "by the kind of the content, or the default",
        "watch.timeout_s": "that of [analysis]",
        "watch.type": "by what is asked for",
        "watch.platform": "any",
        "watch.arch": "any",
        "watch.machine": "any",
    }
)
"""What is in effect for a key that may be left out, and is."""


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
    tables: dict[str, Any] = msgspec.to_builtins(settings)
    return "\n".join(text for section in sections() for text in _section_values(section, tables[section.name]))


def _section_values(section: Section, value: Any) -> Iterator[str]:
    if not section.repeated:
        yield tomli_w.dumps({section.name: value})
        return
    if not value:
        yield f"# [[{section.name}]]: none.\n"
    for entry in value:
        absent = [name for name, member in entry.items() if member is None]
        header, rest = tomli_w.dumps({section.name: [_without_none(entry)]}).split("\n", 1)
        yield "\n".join([header, *(f"# {name}: {_WHEN_LEFT_OUT[f'{section.name}.{name}']}" for name in absent), rest])


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    """At any depth. What is in effect for a key that is left out of a table inside is in the explanation of the key."""
    kept = {name: value for name, value in table.items() if value is not None}
    return {name: _without_none(value) if isinstance(value, dict) else value for name, value in kept.items()}


def _section_text(section: Section) -> str:
    return "\n".join(_lines(section, commented=section.repeated)) + "\n"


def _lines(section: Section, *, commented: bool) -> Iterator[str]:
    """A table that is repeated stands there as a whole in comments, since its header alone makes an entry."""
    header = f"[[{section.name}]]" if section.repeated else f"[{section.name}]"
    yield from _comment(section.explanation)
    yield f"#{header}" if commented else header
    for key in section.keys:
        yield from ("", *_comment(_explanation(key)), *_example(section, key))
    for table in section.tables:
        yield from ("", *_lines(table, commented=commented))


def _explanation(key: Key) -> str:
    if isinstance(key.default, dict):
        return key.explanation
    return f"{key.explanation.rstrip('.')}. {key.expected[0].upper()}{key.expected[1:]}.".lstrip(". ")


def _example(section: Section, key: Key) -> Iterator[str]:
    value = _EXAMPLES.get(f"{section.name}.{key.name}", key.default)
    if isinstance(value, dict):
        tables = {f"{section.name}.{key.name}.{name}": table for name, table in value.items()}
        for header, options in (tables or {f"{section.name}.{key.name}": {}}).items():
            yield f"#[{header}]"
            yield from _assignments(options)
    else:
        yield from _assignments({key.name: value})


def _assignments(table: Mapping[str, Any]) -> Iterator[str]:
    for name, value in table.items():
        yield f"#{name} = {in_toml(msgspec.to_builtins(value))}"


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]
