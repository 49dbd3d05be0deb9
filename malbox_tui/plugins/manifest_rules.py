"""What a manifest must not say although each of its fields is right by itself: fields that contradict each other, and what is valid in
Malbox and can't be honoured here. Nothing is accepted and then ignored."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from malbox_tui.model.errors import ManifestError
from malbox_tui.model.plan import Execution
from malbox_tui.model.report import GUEST_RUN
from malbox_tui.plugins.log_filter import level_of
from malbox_tui.plugins.manifest import MANIFEST_NAME, Manifest, PluginType, State, parse_manifest
from malbox_tui.sdk.malbox_plugin_sdk.values import EVENT_KINDS

_OF_GUESTS = "belongs to guest plugins; a host plugin has no use for it"
_OF_HOSTS = "belongs to host plugins"
_NOT_IN_GUESTS = "is not supported by this version: a guest plugin gets the folder for its results as its only argument"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the plugin in `folder`, which can be honoured whole. Raises `ManifestError`, with file, key and remedy."""
    manifest = parse_manifest(folder)
    for key, problem in problems(manifest):
        raise ManifestError(str(folder / MANIFEST_NAME), key, problem)
    return manifest


def problems(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """(key, what is wrong with it), all of them."""
    if manifest.plugin.name == GUEST_RUN:
        yield "plugin.name", f"{GUEST_RUN!r} is the engine's own: the run of the sample in its guest; choose another"
    is_guest = manifest.plugin.type is PluginType.GUEST
    yield from _of_guest(manifest) if is_guest else _of_host(manifest)
    for key in ("port", "paths", "stash", "auto_collect"):
        if getattr(manifest.runtime, key) is not None:
            yield f"runtime.{key}", _NOT_IN_GUESTS if is_guest else _OF_GUESTS
    for name in manifest.results:
        if name in ("", ".", "..") or "/" in name or not name.isprintable() or len(name) > 100:
            yield f"results.{name[:100]!r}", "is not a plain file name of at most 100 characters, as names of results have to be"


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
        yield "config", f"{_OF_HOSTS}; a guest plugin gets the folder for its results as its only argument"
    if manifest.sandbox.paths:
        yield "sandbox.paths", _OF_HOSTS
    if manifest.events.subscribe or manifest.events.filters:
        yield "events", f"{_OF_HOSTS}: no event reaches a guest"
    if manifest.scope is not None:
        yield "scope", f"{_OF_HOSTS} whose state is 'scoped'"
    for key in ("needs", "gives", "kinds"):
        if getattr(manifest.plan, key):
            yield f"plan.{key}", f"{_OF_HOSTS}; a guest plugin begins before the sample and ends after it"


def _of_host(manifest: Manifest) -> Iterator[tuple[str, str]]:
    runtime = manifest.runtime
    if manifest.guest is not None:
        yield "guest", _OF_GUESTS
    try:
        level_of(runtime.log_filter, manifest.plugin.name)
    except ValueError as exc:
        yield "runtime.log_filter", str(exc)
    yield from _of_scope(manifest)
    for kind in manifest.events.filters:
        if kind not in EVENT_KINDS:
            near = difflib.get_close_matches(kind, EVENT_KINDS, n=1, cutoff=0.5) or EVENT_KINDS
            yield f"events.filters.{kind}", f"is no event; {'did you mean' if len(near) == 1 else 'there are'} {', '.join(near)}"
    for key in manifest.sandbox.paths:
        if key not in manifest.config:
            yield "sandbox.paths", f"{key!r} is not a key of [config]; add it there, empty if there is no default"
    for thing in manifest.plan.gives:
        if thing not in manifest.results:
            yield "plan.gives", f"{thing!r} is not declared as a result; add [results.{thing}]"
    for key in ("needs", "gives", "kinds"):
        listed = getattr(manifest.plan, key)
        if len(set(listed)) < len(listed):
            yield f"plan.{key}", "names something twice"


def _of_scope(manifest: Manifest) -> Iterator[tuple[str, str]]:
    scope = manifest.scope
    if (scope is not None) is not (manifest.runtime.state is State.SCOPED):
        if scope is None:
            yield "scope", "is missing: the state 'scoped' needs it to say which plugins and task types share the scope"
        else:
            yield "scope", f"belongs to the state 'scoped', and the state is {manifest.runtime.state.value!r}"
    elif scope is not None and not scope.plugins and not scope.task_types:
        yield "scope", "names neither plugins nor task_types; with the state 'ephemeral' each task has a process of its own"
    elif scope is not None and manifest.plugin.name in scope.plugins:
        yield "scope.plugins", "names the plugin itself"
