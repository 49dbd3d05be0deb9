"""The console on a real PTY, seen through a terminal that knows nothing but what the console itself has to say to one.

Whatever else comes out, a control character, a sequence, a byte that is no UTF-8, a character beyond the edge, fails the test at once.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType

from rich.cells import cell_len

PATIENCE_S = 60.0

_OWN = re.compile(
    r"\x1b\[(?:[\d;]*m|(?P<row>\d+);(?P<column>\d+)H|\?(?:7|25|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"
    r"|\?(?:2026|2048)\$p|>\d+u|<u)|\x1b\]22;[a-z-]*\x07|(?P<feed>[\r\n])|(?P<text>[^\x00-\x1f\x7f-\x9f])"
)
"""Colours, cursor, modes, the two questions about modes, the keyboard protocol, the pointer's shape, line ends, text."""

_BEGUN = re.compile(r"\x1b(?:\[[\d;?<>$]*|\][a-z\d;-]*)?\Z")


class ForeignOutput(AssertionError):
    """Something reached the terminal that the console has no reason to send."""


class Screen:
    """What a terminal shows; `cells` are rows of columns."""

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._begun = ""

    @property
    def text(self) -> str:
        """The lines from top to bottom."""
        return "\n".join("".join(row) for row in self.cells)

    def feed(self, read: bytes) -> None:
        """Show what was written. Raises `ForeignOutput`."""
        text, self._begun, place = self._begun + self._decode(read), "", 0
        while place < len(text):
            match = _OWN.match(text, place)
            if match is None:
                if _BEGUN.match(text, place):
                    self._begun = text[place:]
                    return
                raise ForeignOutput(repr(text[max(0, place - 40) : place + 40]))
            place = match.end()
            self._take(match)

    def _take(self, match: re.Match[str]) -> None:
        if match["row"]:
            self._row, self._column = int(match["row"]) - 1, int(match["column"]) - 1
        elif match["feed"] == "\r":
            self._column = 0
        elif match["feed"] == "\n":
            self._row += 1
        elif match["text"]:
            self._put(match["text"])

    def _put(self, char: str) -> None:
        width = cell_len(char)
        if not char.isprintable() or self._row >= self._rows or self._column + width > self._columns:
            raise ForeignOutput(f"{char!r} in row {self._row}, column {self._column}")
        if width:
            self.cells[self._row][self._column] = char
            for place in range(self._column + 1, self._column + width):
                self.cells[self._row][place] = ""
            self._column += width


class PtyConsole:
    """A console's process on a PTY of its own. Waiting is for what is on the screen."""

    def __init__(self, *arguments: str | Path, size: tuple[int, int] = (150, 45)) -> None:
        self.screen = Screen(*size)
        self.output = bytearray()
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-m", *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=_environment(),
            cwd=Path(__file__).resolve().parents[2],
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> PtyConsole:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def press(self, keys: bytes) -> PtyConsole:
        """What the terminal sends."""
        os.write(self._master, keys)
        return self

    def send(self, number: signal.Signals) -> PtyConsole:
        """A signal from outside."""
        self._process.send_signal(number)
        return self

    def until(self, *texts: str, gone: str = "\0") -> PtyConsole:
        """Read until the screen shows all of these at once, and `gone` no more."""
        deadline = time.monotonic() + PATIENCE_S
        while gone in self.screen.text or not all(text in self.screen.text for text in texts):
            assert self._read(deadline), f"ended without {texts}:\n{self.screen.text}"
        return self

    def ended(self) -> int:
        """Read to the end, and return the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        return self._process.wait(PATIENCE_S)

    def _read(self, deadline: float) -> bool:
        left_s = deadline - time.monotonic()
        assert left_s > 0, f"nothing more comes:\n{self.screen.text}"
        if not select.select([self._master], [], [], left_s)[0]:
            return True
        try:
            read = os.read(self._master, 65536)
        except OSError:  # the other side was closed: the process has ended
            return False
        self.output += read
        self.screen.feed(read)
        return bool(read)


def _environment() -> dict[str, str]:
    dropped = ("COLUMNS", "LINES", "NO_COLOR", "TMUX", "TERM_PROGRAM", "PYTHONUTF8", "PYTHONIOENCODING")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith(("LC_", "TEXTUAL_"))}
    return {**kept, "LANG": "C.UTF-8", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
