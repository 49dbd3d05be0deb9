"""The terminal that the console is drawn on: whether it can be, and giving it back as it was, whatever became of the console."""

from __future__ import annotations

import os
import select
import sys
import termios
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

_STDIN = 0

_LEAVE = "".join(
    (
        "\x1b[?2004l",  # bracketed paste off
        "\x1b[?2048l",  # in-band resize reports off
        "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l",  # mouse off
        "\x1b[?1004l",  # focus reports off
        "\x1b[<u",  # the keyboard protocol as it was
        "\x1b[?7h",  # line wrap on
        "\x1b[?1049l",  # the screen as it was
        "\x1b[?25h",  # cursor shown
        "\x1b[0m",
    )
).encode()
"""What undoes everything that Textual's driver switches on (textual/drivers/linux_driver.py, stop_application_mode)."""


def obstacle() -> str | None:
    """Why the console can't be drawn here, as a sentence; None when it can. Stdout is a terminal already."""
    for name, stream in (("stdin", sys.__stdin__), ("stderr", sys.__stderr__)):
        if not is_terminal(stream):
            return f"The console needs a terminal on {name} too"
    term = os.environ.get("TERM", "")
    if term in ("", "dumb"):
        return f"The console can't be drawn on a terminal of type {term or 'unknown (TERM is not set)'}"
    for stream in (sys.__stdout__, sys.__stderr__):
        encoding = (stream.encoding if stream is not None else None) or "unknown"
        if encoding.lower().replace("-", "").replace("_", "") != "utf8":
            return f"The console needs a UTF-8 locale such as LANG=C.UTF-8 (this one is {encoding})"
    return None


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is there, open, and a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


class KeptTerminal:
    """While entered, remembers how the terminal was set, and sets it so again at the end.

    `leave_screen` switches off what a console that could not end by itself left switched on.
    """

    def __init__(self) -> None:
        self._attributes: list[Any] | None = None
        self._output: int | None = None

    def __enter__(self) -> KeptTerminal:
        with suppress(termios.error):
            self._attributes = termios.tcgetattr(_STDIN)
        with suppress(OSError):
            self._output = os.dup(sys.stderr.fileno())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.restore()
        if self._output is not None:
            os.close(self._output)
            self._output = None

    def restore(self) -> None:
        """The line settings as they were; safe from any thread, more than once, and with the terminal gone."""
        if self._attributes is not None:
            with suppress(termios.error):
                termios.tcsetattr(_STDIN, termios.TCSANOW, self._attributes)

    def leave_screen(self) -> None:
        """As `restore`, and out of the full screen, unless the terminal takes nothing (stopped, or gone)."""
        self.restore()
        self._write(_LEAVE)

    def say(self, text: str) -> None:
        """A line for the person at the terminal, whatever has become of stderr; under the same conditions."""
        self._write(text.encode("utf-8", "backslashreplace"))

    def _write(self, content: bytes) -> None:
        if self._output is not None:
            with suppress(OSError):
                if select.select([], [self._output], [], 0)[1]:
                    os.write(self._output, content)
