"""The streams, whatever became of them: closed, full, or with an encoding that knows few characters."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any, TextIO


class OutputClosed(Exception):
    """Nobody takes the results any more: stdout was closed or can't be written to. `detail` is empty when it was just closed."""

    def __init__(self, detail: str = "") -> None:
        self.detail = detail
        super().__init__(detail or "stdout was closed")


def prepare_streams() -> None:
    """Make the three streams usable for any text: one that is missing is empty, or swallows what is written; a character that an output
    lacks is escaped, and bytes that are none are read as such.

    In this order each gets its own descriptor, so that no file that is opened later stands in for one.
    """
    for name, mode, errors in (
        ("stdin", "r", "replace"),
        ("stdout", "w", "backslashreplace"),
        ("stderr", "w", "backslashreplace"),
    ):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - it lives as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def write_line(text: str) -> None:
    """One line of results to stdout, flushed. Raises `OutputClosed`."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError as exc:
        abandon_stdout()
        raise OutputClosed("" if isinstance(exc, BrokenPipeError) else f"{exc.strerror or exc}") from exc


def write_record(record: dict[str, Any]) -> None:
    """One JSON object to stdout as one line: UTF-8, or ASCII where stdout is not UTF-8. Raises `OutputClosed`."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    write_line(json.dumps(record, ensure_ascii=encoding != "utf8", separators=(", ", ": ")))


def tell(text: str) -> None:
    """One line for the person at the terminal to stderr; lost when stderr is closed."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        _point_at_nothing(sys.stderr)


def abandon_stdout() -> None:
    """Send what is still buffered for stdout nowhere, so that the end of the process doesn't stumble over it."""
    _point_at_nothing(sys.stdout)


def _point_at_nothing(stream: TextIO) -> None:
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        return
