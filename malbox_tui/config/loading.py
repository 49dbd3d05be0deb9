"""From a TOML file to `Settings`, strictly: nothing in a file is ignored, and each fault is told with file, key and remedy."""

from __future__ import annotations

import codecs
import difflib
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import Settings
from malbox_tui.config.shape import in_words
from malbox_tui.model.errors import ConfigError
from malbox_tui.model.sample import escape, visible

_MAX_FILE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """The file that a configuration comes from. A file that is `named` by the operator has to be there."""

    path: Path
    named: bool

    @classmethod
    def chosen(cls, config: Path | None, folders: DataFolders) -> ConfigSource:
        """The file given with --config, else the one of the data folder."""
        return cls(config, named=True) if config is not None else cls(folders.config_file, named=False)

    @property
    def exists(self) -> bool:
        """True also when it can't be told, because the folder can't be looked into."""
        try:
            return self.path.exists()
        except OSError:
            return True

    @property
    def shown(self) -> str:
        """The path, safe to print."""
        return shown_path(self.path)

    def load(self) -> Settings:
        """The settings of the file, or the defaults when there is none. Raises `ConfigError` with the first fault."""
        settings, faults = self.examine()
        if faults:
            raise faults[0]
        return settings

    def examine(self) -> tuple[Settings, list[ConfigError]]:
        """The settings and every fault of the file; with faults, the settings are the defaults."""
        if not self.named and not self.exists:
            return Settings(), []
        try:
            table = self._read()
        except ConfigError as fault:
            return Settings(), [fault]
        faults = [ConfigError(self.shown, key or None, problem) for key, problem in _faults(table)]
        return (Settings() if faults else msgspec.convert(table, Settings)), faults

    def _read(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as file:
                content = file.read(_MAX_FILE_BYTES + 1)
        except FileNotFoundError as exc:
            raise ConfigError(self.shown, None, "there is no such file. `malbox-tui config init` writes one.") from exc
        except OSError as exc:
            raise ConfigError(self.shown, None, f"the file can't be read: {exc.strerror or exc}.") from exc
        if len(content) > _MAX_FILE_BYTES:
            raise ConfigError(self.shown, None, "the file is too large for a configuration.")
        try:
            return tomllib.loads(content.removeprefix(codecs.BOM_UTF8).decode())
        except UnicodeDecodeError as exc:
            line = content.count(b"\n", 0, exc.start) + 1
            raise ConfigError(self.shown, None, f"line {line} is not UTF-8, which TOML has to be.") from exc
        except tomllib.TOMLDecodeError as exc:
            raise ConfigError(self.shown, None, f"not valid TOML: {visible(str(exc))}.") from exc
        except RecursionError as exc:
            raise ConfigError(self.shown, None, "not a configuration: its values are nested too deeply.") from exc


def shown_path(path: Path) -> str:
    """A path as text that is safe to print."""
    return escape(bytes(path))


def _faults(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(key path, problem) of everything in `table` that `Settings` doesn't take."""
    found = list(_value_faults(table, types.type_info(Settings), ""))
    return found if found else list(_contradictions(msgspec.convert(table, Settings)))


def _contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    general = settings.general
    if general.min_workers > general.max_workers:
        yield (
            "general.min_workers",
            f"{general.min_workers} is above general.max_workers, which is {general.max_workers}. Lower the one or raise the other.",
        )


def _value_faults(value: Any, type_: types.Type, key: str) -> Iterator[tuple[str, str]]:
    match type_:
        case types.StructType(fields=fields) if isinstance(value, Mapping):
            known = {field.encode_name: field.type for field in fields}
            for name, member in value.items():
                if name in known:
                    yield from _value_faults(member, known[name], _joined(key, name))
                else:
                    yield _joined(key, name), _unknown(name, known, key)
        case types.DictType(value_type=member_type) if isinstance(value, Mapping):
            for name, member in value.items():
                yield from _value_faults(member, member_type, _joined(key, name))
        case types.VarTupleType(item_type=item_type) if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _value_faults(item, item_type, f"{key}[{index}]")
        case _ if not _fits(value, type_):
            yield key, f"expected {in_words(type_)}, got {_shown(value)}."


def _fits(value: Any, type_: types.Type) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    match type_:
        case types.IntType() | types.FloatType() if isinstance(value, bool):
            return False
        case types.IntType():
            return isinstance(value, int) and _in_range(value, type_)
        case types.FloatType():
            return isinstance(value, (int, float)) and _in_range(value, type_)
        case types.StrType():
            return isinstance(value, str)
        case types.BoolType():
            return isinstance(value, bool)
        case types.EnumType(cls=cls):
            return isinstance(value, str) and value in {member.value for member in cls}
        case _:
            return False


def _in_range(value: float, type_: types.IntType | types.FloatType) -> bool:
    return (
        (type_.ge is None or value >= type_.ge)
        and (type_.gt is None or value > type_.gt)
        and (type_.le is None or value <= type_.le)
        and (type_.lt is None or value < type_.lt)
        and abs(value) < 2**63
    )


def _unknown(name: str, known: Iterable[str], section: str) -> str:
    what = "key" if section else "section"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean {_joined(section, near[0])}?" if near else f"Known here: {', '.join(known)}."
    return f"unknown {what}. {hint}"


def _joined(key: str, name: str) -> str:
    return f"{key}.{visible(name)}" if key else visible(name)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = visible(value)
        return f'the string "{text if len(text) <= 60 else text[:57] + "..."}"'
    return visible(str(value))[:60]
