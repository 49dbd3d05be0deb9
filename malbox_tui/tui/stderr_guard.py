"""Keeps the screen clean of what others write to the standard error: libraries of C, children, the interpreter's last words.

Textual draws on Python's `sys.__stderr__`. So that one gets a descriptor of its own for the terminal, and descriptor 2, which
everything else knows, leads to a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STDERR = 2


@contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """While it lasts, what goes to descriptor 2 and `sys.stderr` is appended to the file `path`; `sys.__stderr__` is the terminal.

    The app is made and run inside. The file is made for its owner alone. At the end, whatever the end is, everything is as before.
    Raises `OSError` when the file can't be opened; nothing has changed then. Children inherit the file and not the terminal.
    """
    _flush()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    original, terminal = sys.__stderr__, os.dup(STDERR)
    try:
        os.dup2(file, STDERR)
        os.close(file)
        with os.fdopen(os.dup(terminal), "w", encoding=_encoding(), errors="backslashreplace") as screen:
            sys.__stderr__ = screen  # type: ignore[misc]
            try:
                yield
            finally:
                _flush()
                with suppress(OSError):
                    screen.flush()
                sys.__stderr__ = original  # type: ignore[misc]
    finally:
        _flush()
        os.dup2(terminal, STDERR)
        os.close(terminal)


def _encoding() -> str:
    return getattr(sys.__stderr__, "encoding", None) or "utf-8"


def _flush() -> None:
    """What was written before must not come out on the other side."""
    for stream in (sys.stderr, sys.__stderr__):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
