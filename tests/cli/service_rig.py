"""`malbox-tui serve` as a real process, with a notify socket that listens in place of a service manager."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType

PATIENCE_S = 120
HARNESS = Path(__file__).with_name("console_process.py")


class Serving:
    """The command on the data folder `data`, until its end; its stderr is read line by line.

    `plugins` is a folder of plugins in place of the built-in ones.
    """

    def __init__(self, data: Path, *arguments: str, plugins: Path | None = None, **environment: str) -> None:
        self.data = data
        self.notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notes.bind(str(data.parent / f"{data.name}.notify"))
        self.notes.settimeout(PATIENCE_S)
        program = ["-m", "malbox_tui"] if plugins is None else [str(HARNESS), "slow", str(plugins)]
        self._command = [sys.executable, *program, "serve", "--data-dir", str(data), *arguments]
        self._environment = {**os.environ, "NOTIFY_SOCKET": self.notes.getsockname(), "LANG": "C.UTF-8", **environment}
        self.process: subprocess.Popen[str]

    def __enter__(self) -> Serving:
        self.process = subprocess.Popen(
            self._command, env=self._environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.notes.close()

    def until(self, text: str) -> str:
        """The next line on stderr that holds `text`."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return line
        raise AssertionError(f"it ended without saying {text!r}")

    def until_told(self, text: str) -> str:
        """The next datagram to the service manager that holds `text`."""
        while text not in (note := self.notes.recv(4096).decode()):
            pass
        return note

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit code, when it has ended."""
        return self.process.wait(PATIENCE_S)
