"""The make targets, without installing anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal_rig import Terminal

ROOT = Path(__file__).resolve().parents[2]


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return path


def make(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """make with everything installed already, and a command that prints its arguments, one a line."""
    return subprocess.run(make_command(tmp_path, *arguments), cwd=ROOT, capture_output=True, text=True, check=False)


def make_command(tmp_path: Path, *arguments: str) -> list[str]:
    """See `make`."""
    for stamp in ("venv", "run", "test", "lint", "libvirt"):
        (tmp_path / "stamps").mkdir(exist_ok=True)
        (tmp_path / "stamps" / stamp).touch()
    executable(tmp_path / "bin" / "malbox-tui", "#!/bin/sh\nprintf '<%s>\\n' \"$@\"\n")
    places = [f"STAMPS={tmp_path / 'stamps'}", f"BIN={tmp_path / 'bin'}"]
    return ["make", *places, *arguments]


@pytest.mark.parametrize("stamp", ["run", "test", "lint", "libvirt"])
def test_an_installation_says_that_it_has_begun_and_is_done_once(tmp_path: Path, stamp: str) -> None:
    places = [f"VENV={tmp_path}", "PYTHON=/nowhere"]
    executable(tmp_path / "bin" / "python", "#!/bin/sh\n")
    said = [
        subprocess.run(["make", *places, tmp_path / "stamps" / stamp], cwd=ROOT, capture_output=True, text=True, check=True)
        for _time in range(2)
    ]
    assert "once" in said[0].stderr
    assert [done.stderr for done in said[1:]] == [""]


def test_help_fits_eighty_columns(tmp_path: Path) -> None:
    assert max(map(len, make(tmp_path, "help").stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "path",
    [
        "some/folder",
        "with a space",
        "[bold]",
        'it\'s "quoted"',
        "$(touch pwned) `touch pwned` $HOME $$",
        "-rf",
        "a;b|c&d#e%f",
        "a\\b*?~",
    ],
)
def test_run_hands_any_path_over_as_it_is_and_prints_nothing_of_its_own(tmp_path: Path, path: str) -> None:
    done = make(tmp_path, "run", f"SAMPLES={path}")
    assert done.stdout == f"<analyze>\n<-->\n<{path}>\n"


@pytest.mark.parametrize("path", ["some/folder", "-rf $HOME", "analyze", "a \"b\" 'c'"])
def test_run_on_a_terminal_opens_the_console_on_any_path(tmp_path: Path, path: str) -> None:
    with Terminal(make_command(tmp_path, "run", f"SAMPLES={path}")) as terminal:
        assert terminal.ended() == 0
        assert terminal.shown == f"<-->\r\n<{path}>\r\n"


def test_run_on_a_terminal_without_samples_opens_the_console(tmp_path: Path) -> None:
    with Terminal(make_command(tmp_path, "run")) as terminal:
        assert terminal.ended() == 0
        assert terminal.shown == "<>\r\n"


@pytest.mark.parametrize(("environment", "streams"), [({"TERM": "dumb"}, {}), ({}, {"stdin": subprocess.DEVNULL})])
def test_run_on_half_a_terminal_analyses(tmp_path: Path, environment: dict[str, str], streams: dict[str, int]) -> None:
    with Terminal(make_command(tmp_path, "run", "SAMPLES=x"), environment, **streams) as terminal:
        assert terminal.ended() == 0
        assert terminal.shown == "<analyze>\r\n<-->\r\n<x>\r\n"


def test_run_without_samples_finishes_what_is_left_over(tmp_path: Path) -> None:
    done = make(tmp_path, "run")
    assert done.stdout == "<analyze>\n"
    assert "SAMPLES=" in done.stderr


def test_help_names_the_targets_a_person_types(tmp_path: Path) -> None:
    shown = make(tmp_path, "help").stdout
    targets = [
        "help",
        "run",
        "test",
        "fast",
        "rig",
        "lint",
        "simulate",
        "mutants",
        "soak",
        "bench",
        "screenshots",
        "system-deps",
        "clean",
    ]
    assert [line.split()[0] for line in shown.splitlines()] == targets


def test_an_environment_that_works_is_left_as_it_is() -> None:
    done = subprocess.run([ROOT / ".ci" / "make-venv", sys.prefix], env={**os.environ, "PYTHON": "/nowhere"}, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        ('#!/bin/sh\ncase "$2" in *version_info*) exit 1;; esac\necho Python 3.9.2\n', "Python 3.9.2 is too old"),
        ('#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\n', "apt-get install python3-venv"),
    ],
)
def test_a_python_that_cannot_do_it_is_answered_with_the_remedy(tmp_path: Path, python: str, sentence: str) -> None:
    stub = executable(tmp_path / "bin" / "python3", python)
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(stub)}
    done = subprocess.run(
        [ROOT / ".ci" / "make-venv", tmp_path / "venv"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stdout == ""


def test_a_python_that_is_not_there_is_answered_with_the_remedy(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": "python-nowhere"}
    done = subprocess.run(
        [ROOT / ".ci" / "make-venv", tmp_path / "venv"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "apt-get install python3" in done.stderr
