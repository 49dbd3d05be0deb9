"""Others on the engine of a console that has the pool inside: attached, asked by commands, left alone, and kept out."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal_rig import Terminal, made, malbox
from tests.confine.rig import write_plugin
from tests.tui.pty_console import PtyConsole

pytestmark = pytest.mark.slow

FOREVER = "time.sleep(600)"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text("[analysis]\ncancel_grace_s = 0.2\n[general]\nmax_workers = 1\n")
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "sample-1.txt"
    path.write_text("harmless\n")
    return path


def said(data: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, malbox(data, *words))], capture_output=True, text=True, check=False)


@pytest.fixture
def holder(data: Path) -> Iterator[PtyConsole]:
    """A console with the pool inside, whose door is open."""
    with console(data) as opened:
        opened.until("No task yet")
        while said(data, "where").returncode:
            opened.until("No task yet")
        yield opened


def console(data: Path, *arguments: str | Path) -> PtyConsole:
    return PtyConsole("malbox_tui", "--data-dir", data, *arguments, size=(240, 45))


def test_a_second_console_attaches_each_sees_the_other_and_commands_are_answered(
    holder: PtyConsole, data: Path, sample: Path
) -> None:
    with console(data) as second:
        second.until("Attached to the engine of process", "2 consoles")
        second.press(b"u").until("2 consoles on this engine", "the console with the pool inside")
        holder.until("2 consoles")
        assert said(data, "submit", sample).returncode == 0
        holder.until("sample-1.txt")
        assert second.press(b"\x1b").until("queue", gone="on this engine").press(b"q").ended() == 0
    assert holder.until("✓ 1", gone="2 consoles").press(b"q").ended() == 0
    assert not (data / "control.sock").exists()


def test_leaving_asks_while_another_is_attached_who_is_told_of_the_end(holder: PtyConsole, data: Path) -> None:
    with console(data) as second:
        second.until("2 consoles")
        holder.until("2 consoles").press(b"q").until("Leave the console?", "1 other console is attached")
        assert holder.send(signal.SIGTERM).ended() == 128 + signal.SIGTERM
        assert second.until("NOT CONNECTED").press(b"q").ended() == 0


def test_what_keeps_others_out_is_said_and_the_console_works(data: Path, sample: Path) -> None:
    (data / "control.sock").write_text("somebody's")
    with console(data, sample) as holder:
        holder.until("Nobody else can attach to this engine.", "control.sock is no socket", "sample-1.txt", "completed")
        assert holder.press(b"q").ended() == 0
    assert (data / "control.sock").read_text() == "somebody's"


def test_a_holder_without_a_socket_is_named(data: Path, sample: Path, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", FOREVER)
    (data / "control.sock").write_text("somebody's")
    with Terminal(made("slow", tmp_path / "plugins", data, sample)) as holder:
        holder.until("sample-1.txt", "running")
        with Terminal(malbox(data)) as second:
            assert second.ended() == 2
            assert f"is in use by process {holder.process.pid}" in second.shown
            second.assert_untouched()
