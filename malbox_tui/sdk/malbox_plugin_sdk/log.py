"""Log lines of a plugin: they go to stderr, which the engine keeps with the task.

Lines below the level that the manifest's `log_filter` sets are dropped.
"""

from __future__ import annotations

import os
import sys

LEVEL_VARIABLE = "MALBOX_LOG_LEVEL"
LEVELS = ("trace", "debug", "info", "warn", "error", "off")
"""`off` is that of no line."""


def trace(message: str) -> None:
    """What only the plugin's author wants to see."""
    _write("trace", message)


def debug(message: str) -> None:
    """What helps to find a fault."""
    _write("debug", message)


def info(message: str) -> None:
    """What happened."""
    _write("info", message)


def warn(message: str) -> None:
    """What may be wrong."""
    _write("warn", message)


def error(message: str) -> None:
    """What is wrong."""
    _write("error", message)


def _write(level: str, message: str) -> None:
    least = os.environ.get(LEVEL_VARIABLE, "info")
    if LEVELS.index(level) >= LEVELS.index(least if least in LEVELS else "info"):
        sys.stderr.write(f"{level.upper():5} {message}\n")
        sys.stderr.flush()
