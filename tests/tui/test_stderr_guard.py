"""Where stderr goes while the console is up. Each test is a process of its own, with a pipe as its terminal."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from malbox_tui.tui.stderr_guard import KEPT_BYTES, MAX_BYTES

BEGIN = """
import os, subprocess, sys
from pathlib import Path
from malbox_tui.tui.stderr_guard import stderr_to
def noise():
    os.write(2, b"library\\n")
    print("python", file=sys.stderr)
    subprocess.run(["sh", "-c", "echo child >&2"], check=True)
    print("screen", file=sys.__stderr__, flush=True)
"""


def run(script: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BEGIN + script, *arguments], capture_output=True, text=True, check=False)


def test_only_the_screen_gets_to_the_terminal_and_the_rest_to_the_file(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    done = run("with stderr_to(Path(sys.argv[1])): noise()", log)
    assert done.stderr == "screen\n"
    assert sorted(log.read_text().split()) == ["child", "library", "python"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_afterwards_everything_is_as_before_even_after_a_crash(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    script = """
before = sorted(os.listdir("/proc/self/fd")), sys.__stderr__
try:
    with stderr_to(Path(sys.argv[1])):
        print("half a line", end="", file=sys.stderr)
        raise RuntimeError
except RuntimeError:
    assert (sorted(os.listdir("/proc/self/fd")), sys.__stderr__) == before
    noise()
"""
    done = run(script, log)
    assert sorted(done.stderr.split()) == ["child", "library", "python", "screen"]
    assert log.read_text() == "half a line"
    assert done.returncode == 0


def test_what_was_there_before_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_text("before\n")
    run("with stderr_to(Path(sys.argv[1])): os.write(2, b'after')", log)
    assert log.read_text() == "before\nafter"


def test_a_file_that_can_not_be_opened_leaves_everything_alone(tmp_path: Path) -> None:
    script = """
try:
    with stderr_to(Path(sys.argv[1])): print("never")
except OSError:
    noise()
"""
    done = run(script, tmp_path / "missing" / "x")
    assert sorted(done.stderr.split()) == ["child", "library", "python", "screen"]
    assert done.stdout == ""


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert run("with stderr_to(Path(sys.argv[1])): pass", tmp_path / "link").returncode == 1
    assert not (tmp_path / "target").exists()


def test_children_can_not_reach_the_terminal(tmp_path: Path) -> None:
    script = """
with stderr_to(Path(sys.argv[1])):
    look = "for fd in /proc/self/fd/*; do n=${fd##*/}; [ $n -gt 2 ] && echo leak >&$n; done; true"
    subprocess.run(["sh", "-c", look], close_fds=False)
"""
    assert "leak" not in run(script, tmp_path / "log").stderr


def test_of_a_file_that_grew_too_long_before_the_end_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    log.write_bytes(b"x" * MAX_BYTES + b"the last words\n")
    run("with stderr_to(Path(sys.argv[1])): pass", log)
    assert log.stat().st_size == KEPT_BYTES
    assert log.read_bytes().endswith(b"the last words\n")


def test_a_flood_does_not_fill_the_disk_and_its_end_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "stderr.log"
    script = """
from malbox_tui.tui import stderr_guard
stderr_guard.LOOK_EVERY_S = 0.001
log = Path(sys.argv[1])
with stderr_to(log):
    os.write(2, b"x" * stderr_guard.MAX_BYTES + b"the flood ends")
    while log.stat().st_size != stderr_guard.KEPT_BYTES:
        pass
    os.write(2, b", and more")
"""
    assert run(script, log).returncode == 0
    assert log.stat().st_size == KEPT_BYTES + len(", and more")
    assert log.read_bytes().endswith(b"the flood ends, and more")
