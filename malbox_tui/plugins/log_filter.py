"""`log_filter` of a manifest: directives as Rust's tracing has them, of which one sets the level of a plugin in Python.

Source: the documentation of `tracing_subscriber::filter::EnvFilter`. A directive is a level, `TARGET`, or `TARGET=LEVEL`; those with
spans and fields say nothing of a plugin that logs lines. A plugin's targets are its name, with `_` for `-`, and the SDK's.
"""

from __future__ import annotations

import re

LEVELS = ("trace", "debug", "info", "warn", "error", "off")
_SDK = "malbox_plugin_sdk"
_TARGET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*")


def level_of(log_filter: str, plugin: str) -> str:
    """The least level of lines that the plugin's log keeps. Raises ValueError, in words, for what is no filter."""
    if not log_filter.strip():
        return "info"
    general, own = None, None
    own_targets = (plugin.replace("-", "_"), _SDK)
    for directive in log_filter.split(","):
        target, level = _parsed(directive.strip(), own_targets)
        if target is None:
            general = level
        elif target in own_targets:
            own = level
    return own or general or "error"


def _parsed(directive: str, own_targets: tuple[str, ...]) -> tuple[str | None, str]:
    """(target, None for all; level). A target alone is believed to be one if it is the plugin's own: else it is a slip."""
    if "[" in directive or "{" in directive:
        raise ValueError(f"{directive!r} is about spans, which a plugin here has none of")
    target, equals, level = directive.partition("=")
    if not equals and target.lower() in LEVELS:
        return None, target.lower()
    target = target.replace("-", "_")
    if not _TARGET.fullmatch(target) or not (equals or target in own_targets):
        raise ValueError(f"{directive!r} is no directive: a level ({', '.join(LEVELS)}), or TARGET=LEVEL")
    if not equals:
        return target, "trace"
    if level.lower() not in LEVELS:
        raise ValueError(f"{level!r} in {directive!r} is no level; there are {', '.join(LEVELS)}")
    return target, level.lower()
