"""A watched folder as its table in `[[watch]]` would say it, for those that come another way than by the operator's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import inspect as types

from malbox_tui.config.faults import Fault, value_faults
from malbox_tui.config.settings import Settings
from malbox_tui.config.watch_rules import profile_fault, watch_faults
from malbox_tui.config.watching import WatchSettings
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.sample import visible
from malbox_tui.model.watching import WatchSpec

MOST_WATCHED = 100
"""So many folders may be watched for one to be added: each has hints of the kernel's and a thread."""
_NOTHING = "Nothing was changed."


def table_of(watch: WatchSpec) -> dict[str, Any]:
    """Its table, without the keys that say nothing new."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(WatchSpec)}
    said = {name: value for name, value in msgspec.structs.asdict(watch).items() if value != defaults[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


def spec_of(watch: WatchSettings) -> WatchSpec:
    """What this table asks for."""
    return msgspec.convert(msgspec.to_builtins(watch), WatchSpec)


def table_faults(watch: WatchSpec) -> Iterator[Fault]:
    """What is wrong with a watched folder by itself, by its keys."""
    try:
        msgspec.json.encode(watch)
    except UnicodeEncodeError:
        yield Fault("path", "it is no UTF-8, so no configuration can say it. Watch the folder above it, recursively.")
        return
    faults = list(value_faults(table_of(watch), types.type_info(WatchSettings)))
    yield from faults
    if not faults:
        for fault in watch_faults([("", msgspec.convert(table_of(watch), WatchSettings))]):
            yield Fault(fault.key.lstrip("."), fault.problem)


def checked(watch: WatchSpec, settings: Settings) -> WatchSettings:
    """The watched folder, where the configuration `settings` could say so, too. Raises `RefusedCommand`. Looks at the disk."""
    for fault in table_faults(watch):
        raise RefusedCommand(f"{fault.key}: {fault.problem} {_NOTHING}")
    found = msgspec.convert(table_of(watch), WatchSettings)
    for fault in faults_beside(found, settings.watch, settings):
        raise RefusedCommand(f"{fault.key}: {fault.problem} {_NOTHING}")
    if len(settings.watch) >= MOST_WATCHED:
        raise RefusedCommand(f"{len(settings.watch)} folders are watched already, which is as many as may be. {_NOTHING}")
    return found


def faults_beside(watch: WatchSettings, others: Sequence[WatchSettings], settings: Settings) -> Iterator[Fault]:
    """What is wrong with a watched folder beside others and with the profiles of `settings`, by its keys."""
    for fault in watch_faults([*((visible(other.path), other) for other in others), ("", watch)]):
        if fault.key.startswith("."):
            yield Fault(fault.key.lstrip("."), fault.problem)
    if watch.profile and all(profile.name != watch.profile for profile in settings.profiles):
        yield profile_fault("profile", watch.profile)
