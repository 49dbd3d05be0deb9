"""What was changed while the engine ran and outlives it: in a file beside the operator's, never in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import tomli_w
from msgspec import inspect as types

from malbox_tui.config.faults import Fault, value_faults
from malbox_tui.config.section import SettingsTable
from malbox_tui.config.toml_file import read_table, shown_path
from malbox_tui.config.whole_file import remove_file, replace_file
from malbox_tui.model.errors import ConfigError, StoreError

S = TypeVar("S", bound=SettingsTable)


@dataclass(frozen=True, slots=True)
class KeptFile(Generic[S]):
    """A file of this `shape` that malbox-tui writes; it is there only while there is something to keep."""

    path: Path
    shape: type[S]
    subject: str
    """What it keeps, such as "limits"."""
    head: str
    """What it says first, as comments of TOML."""

    @property
    def shown(self) -> str:
        """The path, safe to print."""
        return shown_path(self.path)

    def read(self, faults: Callable[[S], Iterable[Fault]]) -> S:
        """What is kept; nothing when there is no file. Raises `ConfigError` for the first fault that makes it unusable."""
        try:
            table = read_table(self.path)
        except FileNotFoundError:
            return self.shape()
        except ConfigError as exc:
            raise self._unusable(None, exc.problem) from exc
        for fault in value_faults(table, types.type_info(self.shape)):
            raise self._unusable(fault.key, fault.problem)
        kept = msgspec.convert(table, self.shape)
        for fault in faults(kept):
            raise self._unusable(fault.key, fault.problem)
        return kept

    def write(self, content: Mapping[str, Any]) -> None:
        """Put this in place of what was kept, whole or not at all; without any there is no file. Raises `StoreError`."""
        try:
            if content:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                replace_file(self.path, f"{self.head}\n{tomli_w.dumps(content)}".encode())
            else:
                remove_file(self.path)
        except OSError as exc:
            problem = f"The {self.subject} can't be kept in {self.shown}: {exc.strerror or exc}."
            remedy = "Make its folder writable and do it again; until then they hold for this run only."
            raise StoreError(f"{problem} {remedy}") from exc

    def _unusable(self, key: str | None, problem: str) -> ConfigError:
        remedy = f"Remove this file to go back to the {self.subject} of the configuration."
        return ConfigError(self.shown, key, f"{problem} {remedy}")


def kept_beside(config: Path, kind: str) -> Path:
    """Where that of a configuration file is kept: `config.KIND.toml` for `config.toml`."""
    return config.parent / f"{config.name.removesuffix('.toml')}.{kind}.toml"
