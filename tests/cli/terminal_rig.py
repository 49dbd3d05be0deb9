"""The command on a terminal of a test: a real PTY that is its controlling one, read with deadlines and never slept for."""

from __future__ import annotations

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
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE_S = 90.0
MADE_PROCESS = Path(__file__).with_name("console_process.py")

SWITCHED_ON = (b"\x1b[?1049h", b"\x1b[?25l", b"\x1b[?1000h", b"\x1b[?1003h", b"\x1b[?1006h", b"\x1b[?2004h", b"\x1b[?1004h")
SWITCHED_OFF = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?1004l")

_SWITCH = re.compile(r"\x1b\[(\?[0-9]+[hl]|<u|0m)")


class Terminal:
    """A process on a PTY. `output` is all that it wrote, in order."""

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: dict[str, str] | None = None,
        size: tuple[int, int] = (140, 40),
        **streams: Any,
    ) -> None:
        self.output = bytearray()
        self._seen = 0
        self._master, self._slave = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self._slave)
        self.process = subprocess.Popen(
            [*map(str, command)],
            **{"stdin": self._slave, "stdout": self._slave, "stderr": self._slave, **streams},
            env={**_plain_environment(), **(environment or {})},
            cwd=Path(__file__).resolve().parents[2],
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0),
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        if self._master >= 0:
            os.close(self._master)
        os.close(self._slave)

    def resize(self, columns: int, rows: int) -> None:
        """Another size; the process is told by the kernel."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._master, keys)

    def send(self, number: signal.Signals) -> None:
        """A signal from outside."""
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """The terminal is gone."""
        os.close(self._master)
        self._master = -1

    def until(self, *texts: str) -> None:
        """Read until each of the texts was written after what was waited for before."""
        deadline = time.monotonic() + PATIENCE_S
        wanted = [text.encode() for text in texts]
        while any(text not in self.output[self._seen :] for text in wanted):
            assert self._read(deadline), f"ended before {texts}: {self.shown[-2000:]}"
        self._seen = len(self.output)

    def shows(self, text: str) -> bool:
        """Read until the text was written after what was waited for before (True), or the process is gone (False)."""
        deadline = time.monotonic() + PATIENCE_S
        while text.encode() not in self.output[self._seen :]:
            if not self._read(deadline):
                return False
        return True

    def ended(self) -> int:
        """Read until the process is gone, and return its exit code (negative: killed by a signal)."""
        deadline = time.monotonic() + PATIENCE_S
        if self._master < 0:
            return self.process.wait(PATIENCE_S)
        while self.process.poll() is None:
            self._read(deadline)
        while self._readable(0):
            self.output += os.read(self._master, 65536)
        return self.process.returncode

    @property
    def shown(self) -> str:
        """What was written, as text."""
        return self.output.decode("utf-8", "replace")

    @property
    def after_screen(self) -> str:
        """What was written after the full screen was left, without what switches things off."""
        return _SWITCH.sub("", self.output.rpartition(SWITCHED_ON[0])[2].partition(SWITCHED_OFF[0])[2].decode())

    def assert_as_before(self) -> None:
        """Everything is switched off again, and the line settings are what they were."""
        assert termios.tcgetattr(self._slave) == self.before
        for on, off in zip(SWITCHED_ON, SWITCHED_OFF, strict=True):
            assert self.output.rfind(off) > self.output.rfind(on) > -1, off

    def assert_untouched(self) -> None:
        """No full screen was ever opened."""
        assert b"\x1b" not in self.output
        assert termios.tcgetattr(self._slave) == self.before

    def _read(self, deadline: float) -> bool:
        """A bit more of the output; False when the process is gone and nothing is left."""
        left_s = deadline - time.monotonic()
        assert left_s > 0, f"too slow: {self.shown[-2000:]}"
        if self._readable(min(left_s, 0.1)):
            self.output += os.read(self._master, 65536)
            return True
        return self.process.poll() is None

    def _readable(self, wait_s: float) -> bool:
        return bool(select.select([self._master], [], [], wait_s)[0])


def malbox(data: Path, *arguments: str | Path) -> list[str | Path]:
    """The command on a data folder."""
    return [sys.executable, "-m", "malbox_tui", "--data-dir", data, *arguments]


def made(kind: str, option: str | Path, data: Path, *arguments: str | Path) -> list[str | Path]:
    """The command with something slow or broken in it: see `console_process.py`."""
    return [sys.executable, MADE_PROCESS, kind, option, "--data-dir", data, *arguments]


def _plain_environment() -> dict[str, str]:
    dropped = ("COLUMNS", "LINES", "NO_COLOR", "COLORTERM", "TMUX", "PYTHONUTF8", "PYTHONIOENCODING")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith(("LC_", "TEXTUAL_"))}
    return {**kept, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
