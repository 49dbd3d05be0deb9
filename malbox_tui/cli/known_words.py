"""`malbox-tui completion words`: what a shell may put at the end of a command line, a word a line.

It knows ids of tasks, worker groups, machines and profiles. It only looks, starts no engine, is silent when there is nothing or
something is wrong, and loads little: a shell asks for it at each press of the tab key.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from malbox_tui.config.folders import DataFolders
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.profile import AUTO
from malbox_tui.model.task import FINAL_STATES, TaskState

if TYPE_CHECKING:
    from malbox_tui.config.settings import Settings

MOST = 50
"""So many ids are offered; more of it typed leaves fewer."""

_ALL = frozenset(TaskState)
_STATES: Mapping[str, frozenset[TaskState]] = MappingProxyType(
    {
        "task": _ALL,
        "tasks": _ALL,
        "cancel": _ALL - FINAL_STATES,
        "retry": FINAL_STATES,
        "priority": frozenset({TaskState.PENDING}),
        "profile": frozenset({TaskState.PENDING}),
        "change": frozenset({TaskState.PENDING}),
        "identify": frozenset({TaskState.PENDING}),
    }
)
"""A command → the states of the tasks that it can do something to."""
ASKING_COMMANDS = (*_STATES, "resize", "machines", "submit", "analyze")
"""Behind these words there may be something to know."""
_MACHINE_ORDERS = frozenset({"remove", "disable", "enable", "return", "probe"})
"""Behind `machines`: they take any number of names."""
_MACHINE_PAGES = frozenset({"show", "edit"})
"""They take one."""
_WITH_NAME = frozenset({"--machine", "--profile"})
"""Their values are known here."""
_WITH_VALUE = frozenset({"--data-dir", "--config", "--log-level", "--state", "--name", "--limit", "--min", "--max"})


def print_known_words(words: Sequence[str]) -> int:
    """Print them for a command line: its words behind the program's name, the one that is being typed (or "") last."""
    with suppress(MalboxError, OSError, ValueError, UnicodeError):
        for word in known_words(words):
            sys.stdout.write(f"{word}\n")
        sys.stdout.flush()
    return 0


def known_words(words: Sequence[str]) -> list[str]:
    """See `print_known_words`."""
    *before, typed = words or [""]
    options, plain, awaited = _read(before)
    if awaited == "--profile":
        return _beginning_with(typed, _profiles(options))
    if awaited == "--machine":
        return _beginning_with(typed, _machines(options))
    if awaited or typed.startswith("-") or not plain:
        return []
    command, *arguments = plain
    if command == "profile" and not arguments:
        return _beginning_with(typed, [*_profiles(options), AUTO])
    if command in _STATES:
        return _task_ids(options, command, arguments, typed)
    if command == "resize" and not arguments:
        return _beginning_with(typed, _groups(options))
    if command == "machines" and arguments and _may_follow(arguments):
        return _beginning_with(typed, [name for name in _machines(options) if name not in arguments])
    return []


def _may_follow(arguments: Sequence[str]) -> bool:
    """Whether the name of a machine may stand behind these words of `machines`."""
    what, *names = arguments
    return what in _MACHINE_ORDERS or (what in _MACHINE_PAGES and not names)


def _read(words: Sequence[str]) -> tuple[dict[str, str], list[str], str]:
    """Options with their values, the other words, and the option whose value is being typed (empty: none)."""
    options: dict[str, str] = {}
    plain: list[str] = []
    awaited = ""
    for word in words:
        if awaited:
            options[awaited], awaited = word, ""
        elif word in _WITH_VALUE or word in _WITH_NAME:
            awaited = word
        elif word.startswith("--") and "=" in word:
            name, _, options[name] = word.partition("=")
        elif not word.startswith("-"):
            plain.append(word)
    return options, plain, awaited


def _task_ids(options: Mapping[str, str], command: str, arguments: Sequence[str], typed: str) -> list[str]:
    from malbox_tui.store.glance import task_ids

    if command == "priority" and not arguments:
        return []  # the number comes first
    first, dash, last = typed.rpartition("-")
    if (not (last.isascii() and last.isdigit()) and last) or (dash and not first.isdigit()):
        return []
    given = {f"{first}{dash}{task_id}" for task_id in arguments}
    found = task_ids(_folders(options).store, _STATES[command], last, MOST)
    words = [f"{first}{dash}{task_id}" for task_id in found if not dash or task_id >= int(first)]
    return [word for word in words if word not in given]


def _groups(options: Mapping[str, str]) -> list[str]:
    return [group.name for group in _settings(options).groups()]


def _machines(options: Mapping[str, str]) -> list[str]:
    return [machine.name for machine in _settings(options).machines]


def _profiles(options: Mapping[str, str]) -> list[str]:
    return [profile.name for profile in _settings(options).profiles]


def _folders(options: Mapping[str, str]) -> DataFolders:
    return DataFolders.chosen(_path(options, "--data-dir"))


def _settings(options: Mapping[str, str]) -> Settings:
    from malbox_tui.config.loading import ConfigSource

    return ConfigSource.chosen(_path(options, "--config"), _folders(options)).read().settings


def _path(options: Mapping[str, str], name: str) -> Path | None:
    return Path(options[name]).expanduser() if options.get(name) else None


def _beginning_with(typed: str, words: Sequence[str]) -> list[str]:
    return [word for word in words if word.startswith(typed) and word.isprintable()]
