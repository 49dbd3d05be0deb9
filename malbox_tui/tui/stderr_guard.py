"""Keeps the screen clean of what others write to the standard error: libraries of C, children, the interpreter's last words.

Textual draws on Python's `sys.__stderr__`. So that one gets a descriptor of its own for the terminal, and descriptor 2, which
everything else knows, leads to a file: not to a pipe, whose reader would take the last words before an abort to its grave. A thread
keeps the file short.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STDERR = 2
MAX_BYTES = 5 * 1024 * 1024
KEPT_BYTES = 1024 * 1024
"""What is left of a file that became longer: its end."""
LOOK_EVERY_S = 1.0
"""The file may outgrow `MAX_BYTES` by what is written in this time."""


@contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """While it lasts, what goes to descriptor 2 and `sys.stderr` is appended to the file `path`; `sys.__stderr__` is the terminal.

    The app is made and run inside. The file is made for its owner alone. At the end, whatever the end is, everything is as before.
    Raises `OSError` when the file can't be opened; nothing has changed then. Children inherit the file and not the terminal. Of a file
    that is longer than `MAX_BYTES` only the end is kept.
    """
    _flush()
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    original, terminal = sys.__stderr__, os.dup(STDERR)
    try:
        os.dup2(file, STDERR)
        with (
            _kept_short(file),
            os.fdopen(os.dup(terminal), "w", encoding=_encoding(), errors="backslashreplace") as screen,
        ):
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
        os.close(file)


def shorten(file: int) -> None:
    """Keep the end of a file that has become too long. It is open for appending, so whoever writes to it goes on at the new end."""
    size_bytes = os.fstat(file).st_size
    if size_bytes > MAX_BYTES:
        end = os.pread(file, KEPT_BYTES, size_bytes - KEPT_BYTES)
        os.ftruncate(file, 0)
        os.write(file, end)


@contextmanager
def _kept_short(file: int) -> Iterator[None]:
    over = threading.Event()

    def look() -> None:
        while True:
            with suppress(OSError):  # a full disk: the next look may find room
                shorten(file)
            if over.wait(LOOK_EVERY_S):
                return

    thread = threading.Thread(target=look, name="malbox stderr", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _encoding() -> str:
    return getattr(sys.__stderr__, "encoding", None) or "utf-8"


def _flush() -> None:
    """What was written before must not come out on the other side."""
    for stream in (sys.stderr, sys.__stderr__):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
