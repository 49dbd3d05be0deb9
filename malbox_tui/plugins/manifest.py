"""A plugin's `plugin.toml`: every field of Malbox's manifest is known, checked, and honoured or refused by name (`manifest_rules`).

Source: Malbox's plugin configuration reference. `[config]` (default options), `[sandbox]` (which options are paths that the process may
read), `[plan]` (what it needs and gives) and `[guest]` (the guests that a guest plugin is for) are this project's own.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec

from malbox_tui.model.errors import ManifestError
from malbox_tui.model.plan import Execution, PlannedPlugin

MANIFEST_NAME = "plugin.toml"

_MAX_MANIFEST_BYTES = 256 * 1024
_NAME = r"\A[A-Za-z0-9_-]{1,64}\Z"
_SEMVER = (
    r"\A(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?\Z"
)
"""The regular expression of semver.org."""
_THING = r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z"
_KIND = r"\A[a-z0-9][a-z0-9+._-]{0,31}\Z"
_PLATFORM = r"\A[a-z0-9-]{1,32}\Z"
_FORMS = {
    _NAME: "1 to 64 letters, digits, - and _",
    _SEMVER: "a version of three numbers, such as 0.1.0 or 1.4.0-beta.2",
    _THING: "the name of a result: 1 to 100 letters, digits, ., - and _, a letter or digit first",
    _KIND: "a kind in small letters, such as pe",
    _PLATFORM: "a platform in small letters, such as linux",
}
"""What texts of a form are, for a person."""


class PluginType(StrEnum):
    """Where a plugin runs."""

    HOST = "host"
    GUEST = "guest"


class State(StrEnum):
    """How long a plugin's process lives."""

    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    SCOPED = "scoped"


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Identity(_Table, frozen=True, kw_only=True):
    """[plugin]"""

    name: Annotated[str, msgspec.Meta(pattern=_NAME)]
    version: Annotated[str, msgspec.Meta(pattern=_SEMVER, max_length=64)]
    type: PluginType
    description: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    authors: tuple[str, ...] = ()
    binary: str | None = None
    """The entry script, a file in the plugin's folder; None: named as the folder."""


class GuestPaths(_Table, frozen=True, kw_only=True):
    """[runtime.paths]"""

    sample_dir: str | None = None
    artifact_dir: str | None = None
    stash_dir: str | None = None
    log_dir: str | None = None
    external_log_dir: str | None = None


class Stash(_Table, frozen=True, kw_only=True):
    """[runtime.stash]"""

    threshold_bytes: Annotated[int, msgspec.Meta(ge=4096)] = 1024 * 1024
    ttl_secs: Annotated[int, msgspec.Meta(ge=1)] = 120


class Collection(_Table, frozen=True, kw_only=True):
    """[runtime.auto_collect.artifacts] and [runtime.auto_collect.external_logs]"""

    enabled: bool = True
    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    max_file_size: Annotated[int, msgspec.Meta(ge=1)] = 50 * 1024 * 1024


class AutoCollect(_Table, frozen=True, kw_only=True):
    """[runtime.auto_collect]"""

    artifacts: Collection | None = None
    external_logs: Collection | None = None


class Runtime(_Table, frozen=True, kw_only=True):
    """[runtime]"""

    state: State
    execution: Execution
    port: Annotated[int, msgspec.Meta(ge=1024, le=65535)] | None = None
    log_filter: str = "info"
    analysis_timeout: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Seconds for one sample; None: only the task's own limit."""
    paths: GuestPaths | None = None
    stash: Stash | None = None
    auto_collect: AutoCollect | None = None


class ResultDeclaration(_Table, frozen=True, kw_only=True):
    """[results.NAME]"""

    description: Annotated[str, msgspec.Meta(max_length=1000)] = ""
    user_visible: bool = True
    """Whether people are shown it beside its plugin; programs always are."""
    display_name: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    render: Annotated[str, msgspec.Meta(max_length=32)] | None = None


class EventFilter(_Table, frozen=True, kw_only=True):
    """[events.filters.EVENT]"""

    from_plugins: tuple[str, ...] = ()


class Events(_Table, frozen=True, kw_only=True):
    """[events]"""

    subscribe: tuple[str, ...] = ()
    filters: dict[str, EventFilter] = {}


class Scope(_Table, frozen=True, kw_only=True):
    """[scope]"""

    plugins: tuple[str, ...] = ()
    task_types: tuple[str, ...] = ()


class Sandbox(_Table, frozen=True, kw_only=True):
    """[sandbox]"""

    paths: tuple[str, ...] = ()
    """Keys of [config] that hold a path of the host; where one is set, the plugin can read it and is told where."""


class PlanTable(_Table, frozen=True, kw_only=True):
    """[plan]"""

    needs: tuple[Annotated[str, msgspec.Meta(pattern=_THING)], ...] = ()
    """What other plugins give and this one has to have before it begins."""
    gives: tuple[Annotated[str, msgspec.Meta(pattern=_THING)], ...] = ()
    """Results of this plugin that others may need, by name."""
    kinds: tuple[Annotated[str, msgspec.Meta(pattern=_KIND)], ...] = ()
    """The kinds of content that it is for, such as "pe"; empty: all. For content of another kind it is skipped."""


class Guests(_Table, frozen=True, kw_only=True):
    """[guest]"""

    platforms: tuple[Annotated[str, msgspec.Meta(pattern=_PLATFORM)], ...] = ()
    """The platforms that a guest plugin is for, such as "linux"; empty: all."""


class Manifest(_Table, frozen=True, kw_only=True):
    """A whole manifest."""

    plugin: Identity
    runtime: Runtime
    results: dict[str, ResultDeclaration] = {}
    events: Events = Events()
    scope: Scope | None = None
    config: dict[str, str] = {}
    sandbox: Sandbox = Sandbox()
    plan: PlanTable = PlanTable()
    guest: Guests | None = None

    @property
    def planned(self) -> PlannedPlugin:
        """What a plan has to know of it."""
        return PlannedPlugin(
            name=self.plugin.name,
            execution=self.runtime.execution,
            needs=self.plan.needs,
            gives=self.plan.gives,
            kinds=self.plan.kinds,
        )


def parse_manifest(folder: Path) -> Manifest:
    """The manifest of the plugin in `folder`, as far as each field can be checked by itself.

    Raises `ManifestError`, with file, key and remedy.
    """
    path = folder / MANIFEST_NAME
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ManifestError(str(path), None, "is no file")
            text = file.read(_MAX_MANIFEST_BYTES + 1)
    except OSError as exc:
        raise ManifestError(str(path), None, f"can't be read ({exc.strerror})") from exc
    if len(text) > _MAX_MANIFEST_BYTES:
        raise ManifestError(str(path), None, f"is larger than {_MAX_MANIFEST_BYTES} bytes")
    try:
        tables = tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ManifestError(str(path), None, f"is not TOML: {exc}") from exc
    for key, nearest in _unknown_keys(tables, Manifest, ""):
        raise ManifestError(str(path), key, f"is not a key of a manifest{f'; did you mean {nearest!r}?' if nearest else ''}")
    try:
        return msgspec.convert(tables, Manifest)
    except msgspec.ValidationError as exc:
        raise ManifestError(str(path), *_located(str(exc), tables)) from exc


def _without_waiting(path: str, flags: int) -> int:
    """A pipe that nobody writes to would keep whoever opens it waiting."""
    return os.open(path, flags | os.O_NONBLOCK)


def _unknown_keys(value: Any, type_: Any, where: str) -> Iterator[tuple[str, str | None]]:
    """Keys that the schema doesn't have, and for each the nearest that it has."""
    if not isinstance(value, dict):
        return
    if get_origin(type_) is dict:
        for key, inner in value.items():
            yield from _unknown_keys(inner, get_args(type_)[1], f"{where}{key}.")
        return
    struct = next((t for t in (type_, *get_args(type_)) if isinstance(t, type) and issubclass(t, msgspec.Struct)), None)
    if struct is None:
        return
    fields = {field.name: field.type for field in msgspec.structs.fields(struct)}
    for key, inner in value.items():
        if key in fields:
            yield from _unknown_keys(inner, fields[key], f"{where}{key}.")
        else:
            nearest = difflib.get_close_matches(key, fields, n=1, cutoff=0.5)
            yield f"{where}{key}", nearest[0] if nearest else None


_FORMER_NAMES = {"global": "persistent", "isolated": "ephemeral", "context-aware": "scoped"}
"""Of `runtime.state`."""


def _located(message: str, tables: dict[str, Any]) -> tuple[str | None, str]:
    """msgspec's message, split into the key and the problem."""
    found = re.fullmatch(r"(?s)(.*?)(?: - at `\$\.?(.*)`)?", message)
    if found is None:
        return None, message
    missing = re.fullmatch(r"Object missing required field `(.+)`", found[1])
    where = found[2] or ""
    if missing:
        return (f"{where}." if where else "") + missing[1], "is missing"
    if where in ("runtime.state", "runtime.execution", "plugin.type") and "enum" in found[1]:
        table, _, name = where.partition(".")
        return where, _no_member(tables[table][name], {"state": State, "execution": Execution, "type": PluginType}[name])
    if unlike := re.fullmatch(r"Expected `str` matching regex '(.*)'", found[1]):
        return where, f"must be {_FORMS[unlike[1].replace(chr(92) * 2, chr(92))]}"
    if "[...]" in where:
        where = _named(where, tables)
    return where or None, found[1][:1].lower() + found[1][1:]


def _named(where: str, tables: dict[str, Any]) -> str:
    """`where` with the name of the entry that is at fault, of a table whose keys its author chooses."""
    *outer, last = where.partition("[...]")[0].split(".")
    holder = tables
    for key in outer:
        holder = holder[key]
    entries = holder[last]
    for name, entry in entries.items():
        holder[last] = {name: entry}
        try:
            msgspec.convert(tables, Manifest)
        except msgspec.ValidationError as exc:
            if f"`$.{where}`" in str(exc):
                return where.replace("[...]", f".{name}", 1)
    return where


def _no_member(value: Any, enum: type[StrEnum]) -> str:
    if enum is State and value in _FORMER_NAMES:
        return f"{value!r} is a former name; it is {_FORMER_NAMES[value]!r} now"
    return f"invalid enum value {value!r}; it is one of {', '.join(member.value for member in enum)}"
