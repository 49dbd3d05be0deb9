"""The console inside tmux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.terminal_rig import PATIENCE_S, Terminal

pytestmark = pytest.mark.slow

EMPTY = "No task yet"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_it_works_in_tmux(data: Path, tmp_path: Path) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not here")
    code = tmp_path / "code"
    inside = f"{sys.executable} -m malbox_tui --data-dir {data}; echo $? > {code}"
    tmux = ["tmux", "-L", f"malbox-{os.getpid()}", "-f", "/dev/null"]
    with Terminal([*tmux, "new-session", inside]) as terminal:
        terminal.until(EMPTY)
        terminal.press(b"q")
        assert terminal.ended() == 0
    assert code.read_text() == "0\n"


def test_a_drop_in_tmux_is_seen_whether_it_is_bracketed_or_typed(data: Path, tmp_path: Path) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not here")
    sample = tmp_path / "q c;'$(x).exe"
    sample.write_bytes(b"MZ")
    code = tmp_path / "code"
    with InTmux(f"{sys.executable} -m malbox_tui --data-dir {data}; echo $? >{code}") as console:
        console.until(EMPTY)
        for paste in (("paste-buffer", "-p"), ("paste-buffer",)):
            console.tmux("set-buffer", str(sample))
            console.tmux(*paste)
            console.until("Add 1 file, 2 B", "Windows program")
            console.tmux("send-keys", "Escape")
            console.until(EMPTY, gone="Add 1 file")
        console.tmux("send-keys", "q")
        console.ended()
    assert code.read_text() == "0\n"


class InTmux:
    """A command in a tmux of its own, on whose screen everybody looks alike. Waiting is for what is there."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._tmux = ("tmux", "-L", f"malbox-drop-{os.getpid()}", "-f", "/dev/null")

    def __enter__(self) -> InTmux:
        self.tmux("new-session", "-d", "-x", "140", "-y", "40", self._command)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self._tmux, "kill-server"], stderr=subprocess.DEVNULL, check=False, timeout=PATIENCE_S)

    def tmux(self, *words: str) -> str:
        """What a command of tmux says."""
        return subprocess.run([*self._tmux, *words], stdout=subprocess.PIPE, text=True, check=True, timeout=PATIENCE_S).stdout

    def until(self, *texts: str, gone: str = "\0") -> None:
        """Look until all of these are there, and `gone` is not."""
        deadline = time.monotonic() + PATIENCE_S
        while gone in (screen := self.tmux("capture-pane", "-p")) or not all(text in screen for text in texts):
            assert time.monotonic() < deadline, f"nothing more comes:\n{screen}"

    def ended(self) -> None:
        """Wait until it has."""
        deadline = time.monotonic() + PATIENCE_S
        while subprocess.run([*self._tmux, "has-session"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            assert time.monotonic() < deadline, "it does not end"
