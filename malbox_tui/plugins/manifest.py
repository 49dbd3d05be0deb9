"""A plugin's `plugin.toml`: every field of Malbox's manifest is known, checked, and honoured or refused by name.

Source: Malbox's plugin configuration reference. `[config]` (default options), `[sandbox]` (which options are paths that the process may
read) and `[guest]` (the guests that a guest plugin is for) are this project's own.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec

from malbox_tui.model.errors import ManifestError

MANIFEST_NAME = "plugin.toml"
LOG_LEVELS = ("trace", "debug", "info", "warn", "error")

_MAX_MANIFEST_BYTES = 256 * 1024
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
_SEMVER = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"
"""semver.org, without the finer rules for pre-releases."""


class PluginType(StrEnum):
    """Where a plugin runs."""

    HOST = "host"
    GUEST = "guest"


class State(StrEnum):
    """How long a plugin's process lives."""

    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    SCOPED = "scoped"


class Execution(StrEnum):
    """What may run beside a plugin."""

    EXCLUSIVE = "exclusive"
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    UNRESTRICTED = "unrestricted"


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

    description: str = ""
    user_visible: bool = True
    display_name: str | None = None
    render: str | None = None


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


class Guests(_Table, frozen=True, kw_only=True):
    """[guest]"""

    platforms: tuple[Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,32}$")], ...] = ()
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
    guest: Guests | None = None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the plugin in `folder`. Raises `ManifestError`, with file, key and remedy."""
    path = folder / MANIFEST_NAME
    try:
        with path.open("rb") as file:
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
        manifest = msgspec.convert(tables, Manifest)
    except msgspec.ValidationError as exc:
        raise ManifestError(str(path), *_located(str(exc))) from exc
    for beyond, problem in _beyond_this_version(manifest):
        raise ManifestError(str(path), beyond, problem)
    return manifest


def entry_of(folder: Path, manifest: Manifest) -> str:
    """The entry script's file name. Raises `ManifestError` when it can't be run."""
    path = str(folder / MANIFEST_NAME)
    key = "plugin.binary"
    entry = manifest.plugin.binary or folder.name
    if Path(entry).name != entry or entry in ("", ".", ".."):
        raise ManifestError(path, key, f"{entry!r} must be the name of a file in the plugin's folder")
    if manifest.plugin.type is PluginType.HOST and not entry.endswith(".py"):
        raise ManifestError(path, key, f"{entry!r} is not a Python script (.py); this version runs no other host plugins")
    if not (folder / entry).is_file():
        raise ManifestError(path, key, f"there is no file {entry!r} in the plugin's folder")
    return entry


def _beyond_this_version(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """What is valid in Malbox and can't be honoured here: nothing is accepted and then ignored."""
    yield from _of_guest(manifest) if manifest.plugin.type is PluginType.GUEST else _of_host(manifest)
    for key in ("port", "paths", "stash", "auto_collect"):
        if getattr(manifest.runtime, key) is not None:
            yield f"runtime.{key}", _NOT_IN_GUESTS if manifest.plugin.type is PluginType.GUEST else _OF_GUESTS
    if manifest.events.subscribe or manifest.events.filters:
        yield "events", "event subscriptions are not supported by this version"
    if manifest.scope is not None:
        yield "scope", "belongs to the state 'scoped', which is not supported by this version"


_OF_GUESTS = "belongs to guest plugins; a host plugin has no use for it"
_NOT_IN_GUESTS = "is not supported by this version: a guest plugin gets the folder for its results as its only argument"


def _of_guest(manifest: Manifest) -> Iterator[tuple[str, str]]:
    runtime = manifest.runtime
    if runtime.state is not State.EPHEMERAL:
        yield (
            "runtime.state",
            f"{runtime.state.value!r} is not what a guest plugin does: each run begins it anew; use 'ephemeral'",
        )
    if runtime.execution not in (Execution.PARALLEL, Execution.UNRESTRICTED):
        yield "runtime.execution", f"{runtime.execution.value!r} is not supported in guests by this version; use 'parallel'"
    if runtime.log_filter != "info":
        yield "runtime.log_filter", "is not passed on to guest plugins by this version"
    if runtime.analysis_timeout is not None:
        yield "runtime.analysis_timeout", "belongs to host plugins; a guest plugin runs as long as the sample does"
    if manifest.config:
        yield "config", "belongs to host plugins; a guest plugin gets the folder for its results as its only argument"
    if manifest.sandbox.paths:
        yield "sandbox.paths", "belongs to host plugins"


def _of_host(manifest: Manifest) -> Iterator[tuple[str, str]]:
    runtime = manifest.runtime
    if manifest.guest is not None:
        yield "guest", _OF_GUESTS
    if runtime.state is not State.PERSISTENT:
        yield "runtime.state", f"{runtime.state.value!r} is not supported by this version; use 'persistent'"
    if runtime.execution is Execution.EXCLUSIVE:
        yield "runtime.execution", "'exclusive' is not supported by this version; use 'sequential' to run after the others"
    if runtime.log_filter not in LOG_LEVELS:
        yield "runtime.log_filter", f"must be one of {', '.join(LOG_LEVELS)} in this version"
    for key in manifest.sandbox.paths:
        if key not in manifest.config:
            yield "sandbox.paths", f"{key!r} is not a key of [config]; add it there, empty if there is no default"


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


def _located(message: str) -> tuple[str | None, str]:
    """msgspec's message, split into the key and the problem."""
    found = re.fullmatch(r"(?s)(.*?)(?: - at `\$\.?(.*)`)?", message)
    if found is None:
        return None, message
    missing = re.fullmatch(r"Object missing required field `(.+)`", found[1])
    where = found[2] or ""
    if missing:
        return (f"{where}." if where else "") + missing[1], "is missing"
    return where or None, found[1][:1].lower() + found[1][1:]
