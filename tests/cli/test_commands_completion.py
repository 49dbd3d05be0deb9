"""What a shell is told of tasks, groups and machines while somebody types."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from malbox_tui.cli.entry import main as entry
from malbox_tui.cli.known_words import known_words
from tests.cli.command_line import CommandLine

pytestmark = pytest.mark.slow

CONFIGURATION = """
[[machines]]
name = "m1"
provider = "simulated"
platform = "linux"
[[machines]]
name = "m2"
provider = "simulated"
platform = "linux"
[[workers]]
name = "batch"
"""


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Tasks 1 to 12, of which 1 and 12 are canceled."""
    malbox = CommandLine(tmp_path, capsys)
    malbox.submit(*(f"sample {number}" for number in range(12)))
    assert malbox("cancel", 1, 12).code == 0
    (malbox.data / "config.toml").write_text(CONFIGURATION)
    return malbox


def words(malbox: CommandLine, *typed: str) -> list[str]:
    return known_words(["--data-dir", str(malbox.data), *typed])


def test_tasks_are_those_that_the_command_can_do_something_to(malbox: CommandLine) -> None:
    assert words(malbox, "task", "") == [str(number) for number in range(12, 0, -1)]
    assert words(malbox, "retry", "") == ["12", "1"]
    assert words(malbox, "cancel", "") == [str(number) for number in range(11, 1, -1)]
    assert words(malbox, "priority", "5", "1") == ["11", "10"]
    assert words(malbox, "priority", "") == [], "the number comes first"


def test_what_was_typed_narrows_it_down(malbox: CommandLine) -> None:
    assert words(malbox, "task", "1") == ["12", "11", "10", "1"]
    assert words(malbox, "cancel", "11", "1") == ["10"], "each is given once"
    assert words(malbox, "cancel", "9-1") == ["9-11", "9-10"], "a range ends where it may"
    assert words(malbox, "cancel", "abc") == []
    assert words(malbox, "cancel", "--js") == []


def test_groups_and_machines_are_those_of_the_configuration(malbox: CommandLine) -> None:
    assert words(malbox, "resize", "") == ["default", "batch"]
    assert words(malbox, "resize", "batch", "") == []
    assert words(malbox, "machines", "disable", "m") == ["m1", "m2"]
    assert words(malbox, "machines", "enable", "m1", "") == ["m2"]
    for what in ("return", "probe", "remove", "show", "edit"):
        assert words(malbox, "machines", what, "m") == ["m1", "m2"], what
    assert words(malbox, "machines", "edit", "m1", "") == []
    assert words(malbox, "machines", "add", "") == []
    assert words(malbox, "submit", "--machine", "m") == ["m1", "m2"]
    assert words(malbox, "submit", "") == []


def test_the_value_of_an_option_is_no_task(malbox: CommandLine) -> None:
    assert words(malbox, "cancel", "--name", "1") == []
    assert words(malbox, "cancel", "--state", "pending", "3") == ["3"]
    assert words(malbox, "cancel", "--state=pending", "3") == ["3"]


@pytest.mark.parametrize(
    "typed", [[], [""], ["bogus", ""], ["cancel", ""], ["machines", "disable", ""], ["--data-dir"], ["cancel", "٣"]]
)
def test_where_there_is_nothing_it_is_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: list[str]) -> None:
    assert entry(["completion", "words", "--", "--data-dir", str(tmp_path / "none"), *typed]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")
    assert list(tmp_path.iterdir()) == [], "and makes nothing"


def test_what_is_broken_is_not_told_to_a_shell(malbox: CommandLine, capsys: pytest.CaptureFixture[str]) -> None:
    (malbox.data / "malbox.sqlite3").write_bytes(b"no database")
    (malbox.data / "config.toml").write_text("[[[")
    for typed in (["cancel", ""], ["resize", ""]):
        assert entry(["completion", "words", "--", "--data-dir", str(malbox.data), *typed]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""


def test_little_is_loaded_for_it(malbox: CommandLine) -> None:
    program = (
        "import sys; from malbox_tui.cli.entry import main; "
        f"main(['completion', 'words', '--', '--data-dir', {str(malbox.data)!r}, 'cancel', '']); "
        "print(sorted({'cyclopts', 'textual', 'rich', 'aiosqlite', 'asyncio', 'malbox_tui.engine'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "11" in done.stdout.splitlines()


# --- in the shells ---


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """`malbox-tui` on a PATH of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "malbox-tui"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m malbox_tui "$@"\n')
    path.chmod(0o755)
    return path


def script(malbox: CommandLine, shell: str, folder: Path) -> Path:
    path = folder / f"completion.{shell}"
    path.write_text(malbox("completion", "show", shell).out)
    return path


def run_shell(shell: str, commands: str, program: Path) -> list[str]:
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", "HOME": str(program.parent), "TERM": "dumb", "LANG": "C.UTF-8"}
    arguments = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}[shell]
    done = subprocess.run([shell, *arguments, commands], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split()


def test_bash_completes_tasks_and_commands(malbox: CommandLine, program: Path) -> None:
    source = script(malbox, "bash", program.parent)

    def completed(*typed: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in ("malbox-tui", *typed))
        commands = (
            f"source {source}; COMP_WORDS=({line}); COMP_CWORD={len(typed)}; "
            "_malbox_tui_and_known_words malbox-tui; printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        return run_shell("bash", commands, program)

    assert completed("--data-dir", str(malbox.data), "retry", "") == ["12", "1"]
    assert completed("--data-dir", str(malbox.data), "machines", "disable", "") == ["m1", "m2"]
    assert completed("can") == ["cancel"]
    assert "timed_out" in completed("cancel", "--state", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_tasks_and_commands(malbox: CommandLine, program: Path) -> None:
    source = script(malbox, "fish", program.parent)

    def completed(line: str) -> list[str]:
        return run_shell("fish", f"source {source}; complete -C '{line}'", program)

    assert completed(f"malbox-tui --data-dir {malbox.data} retry ")[:2] == ["12", "1"]
    assert completed("malbox-tui can")[0] == "cancel"


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_tasks(malbox: CommandLine, program: Path) -> None:
    source = script(malbox, "zsh", program.parent)
    commands = f"""
        compdef() {{ }}; _arguments() {{ return 1 }}; _files() {{ }}; _describe() {{ }}
        compadd() {{ [[ $1 == -V ]] && print -l -- "${{(@P)4}}"; return 0 }}
        source {source}
        words=(malbox-tui --data-dir {malbox.data} retry ''); CURRENT=5
        _cyclopts_malbox-tui
        true
    """
    assert run_shell("zsh", commands, program) == ["12", "1"]
