"""The options that every command takes, before or after its name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.loading import ConfigSource, shown_path


class LogLevel(StrEnum):
    """How much is written to the log file."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def enum_value(name: str) -> str:
    """How a member of an enum is spelt on the command line: as its value, with underscores."""
    return name.lower()


LARGEST = 2**53 - 1
_WHOLE = re.compile(r"[+-]?[0-9]+")


def whole_number(type_: Any, tokens: Sequence[Token]) -> int:
    """A converter that takes nothing but a whole number in plain digits (cyclopts itself would cut 1.5 to 1), and none that no store
    and no JSON reader can hold."""
    text = tokens[0].value
    if _WHOLE.fullmatch(text) is None:
        raise ValueError(f'"{text}" is not a whole number.')
    if len(text) > len(str(LARGEST)) + 1 or abs(int(text)) > LARGEST:
        raise ValueError(f'"{text}" is too large.')
    return int(text)


FLAG = Parameter(negative=(), show_default=False)
"""A switch that is off unless it is given."""


def some_path(type_: Any, tokens: Sequence[Token]) -> Path:
    """A converter that takes no empty path: it comes of a variable that is not set, and would mean the current folder."""
    if not tokens[0].value:
        raise ValueError("An empty path leads nowhere.")
    return Path(tokens[0].value)


@Parameter(name="*", group="Global options")
@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """Where the data and the configuration are, and how much is logged."""

    data_dir: Annotated[Path | None, Parameter(name="--data-dir", converter=some_path)] = None
    """Keep everything under this folder instead of the platform's own places."""
    config: Annotated[Path | None, Parameter(name="--config", converter=some_path)] = None
    """Use this configuration file."""
    log_level: Annotated[LogLevel, Parameter(name="--log-level", name_transform=enum_value)] = LogLevel.INFO
    """How much is written to the log file."""

    @property
    def folders(self) -> DataFolders:
        """The places of the data."""
        return DataFolders.chosen(self.data_dir)

    @property
    def source(self) -> ConfigSource:
        """The configuration file."""
        return ConfigSource.chosen(self.config, self.folders)

    def command(self, name: str | None = None) -> str:
        """A command line for the person to type that means the same data and configuration; without a name, the console."""
        words = ["malbox-tui"] if name is None else ["malbox-tui", name]
        for option, path in (("--data-dir", self.data_dir), ("--config", self.config)):
            if path is not None:
                words += [option, shlex.quote(shown_path(path))]
        return " ".join(words)

    def arguments(self) -> list[str]:
        """The same as `command`, for another process of this program, whatever its working folder is."""
        words = [] if self.data_dir is None else ["--data-dir", str(self.folders.root)]
        return words if self.config is None else [*words, "--config", str(self.config.absolute())]


OPTION_NAMES = frozenset({"--data-dir", "--config", "--log-level"})


def split_leading(tokens: list[str]) -> tuple[list[str], list[str]]:
    """The global options that stand before the command's name, each with its value, and the rest."""
    index = 0
    while index < len(tokens) and tokens[index].partition("=")[0] in OPTION_NAMES:
        index += 1 if "=" in tokens[index] else 2
    return tokens[:index], tokens[index:]
