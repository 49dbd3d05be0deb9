"""Configuration files for tests."""

from __future__ import annotations

from pathlib import Path

from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.settings import Settings


def source_of(folder: Path, content: str | bytes) -> ConfigSource:
    """A source whose file, `config.toml` in `folder`, holds this."""
    path = folder / "config.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return ConfigSource(path, named=True)


def load(folder: Path, content: str) -> Settings:
    """The settings of such a file, which has to be right."""
    return source_of(folder, content).load()


def faults(folder: Path, content: str | bytes) -> list[tuple[str | None, str]]:
    """(key, problem) of everything that is wrong with such a file."""
    source = source_of(folder, content)
    found = source.read().faults
    assert all(fault.path == str(source.path) for fault in found)
    return [(fault.key, fault.problem) for fault in found]
