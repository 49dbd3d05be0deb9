"""What the command line accepts, and how it refuses: one clear sentence on stderr, exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from malbox_tui.cli.app import main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bogus"], "has no command 'bogus'"),
        (["anlyze", "x"], "Did you mean `malbox-tui analyze`?"),
        (["--bogus"], "Unknown option: --bogus."),
        (["analyze", "--jso"], "Did you mean --json?"),
        (["analyze", "--priority", "1.5"], '"1.5" is not a whole number.'),
        (["analyze", "--timeout", "0"], "--timeout"),
        (["analyze", "--timeout", "nan"], "--timeout"),
        (["analyze", "--timeout"], "requires an argument"),
        (["tasks", "--state", "done"], '"completed"'),
        (["tasks", "--limit", "0"], "--limit"),
        (["tasks", "extra"], "extra chooses no task"),
        (["doctor", "extra"], "Unexpected argument: extra."),
        (["task", "x"], "x chooses no task"),
        (["task", "99999999999999999999"], "There is no task 9999"),
        (["config", "bogus"], "`malbox-tui config` has no command 'bogus'"),
        (["completion", "show", "tcsh"], '"bash"'),
        (["--data-dir"], "--data-dir requires an argument"),
        (["--log-level", "loud", "tasks"], "--log-level"),
        (["tasks", "--data-dir", ""], "An empty path leads nowhere."),
        (["--config=", "config", "check"], "An empty path leads nowhere."),
        (["analyze", "--\x1b]0;pwned\x07"], r"\x1b]0;pwned\x07"),
        (["\x1b]0;pwned\x07"], r"\x1b]0;pwned\x07"),
    ],
)
def test_wrong_usage_is_said_in_a_sentence_and_exits_two(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert shown.err.startswith("malbox-tui: ")
    assert (shown.out, "\x1b" in shown.err) == ("", False)


@pytest.mark.parametrize("arguments", [[], ["config"], ["completion"]])
def test_without_a_command_the_usage_goes_to_stderr_and_exits_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert " ".join(["Usage: malbox-tui", *arguments]) in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["completion", "show", "bash"]])
def test_a_full_stdout_is_said_in_a_sentence_whatever_was_to_be_printed(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        ended = subprocess.run([sys.executable, "-m", "malbox_tui", *arguments], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"malbox-tui: ")
    assert ended.stderr.endswith(b"No space left on device.\n")
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["analyze", "--help"], ["config", "--help"], ["--version"]])
def test_help_and_version_go_to_stdout(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "malbox-tui" in capsys.readouterr().out


def test_help_flows_and_says_what_a_value_is(capsys: pytest.CaptureFixture[str]) -> None:
    main(["analyze", "--help"])
    shown = capsys.readouterr().out
    assert "analyze [OPTIONS] [PATH...]" in shown
    assert "nothing was accepted, or the pool is paused." in " ".join(shown.split())
    assert {"--timeout SECONDS", "--priority N"} <= {" ".join(line.split()[1:3]) for line in shown.splitlines()}
    assert "False" not in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_installing_completion_says_which_files_it_wrote(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["completion", "install", shell]) == 0
    said = capsys.readouterr().err
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    assert all(str(path) in said or f"~/{path.name}" in said for path in written)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--data-dir", "DIR", "config", "check"],
        ["--data-dir=DIR", "config", "check"],
        ["config", "--data-dir", "DIR", "check"],
        ["config", "check", "--data-dir", "DIR"],
        ["--log-level", "debug", "config", "check", "--data-dir=DIR"],
    ],
)
def test_global_options_stand_before_or_after_the_command(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("DIR", str(tmp_path)) for word in arguments]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/config.toml: OK")


def test_config_init_check_and_show_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data-dir", str(tmp_path)]
    assert main(["config", "init", *where]) == 0
    assert main(["config", "init", *where]) == 2
    assert main(["config", "check", *where]) == 0
    capsys.readouterr()
    assert main(["config", "show", *where]) == 0
    assert capsys.readouterr().out.startswith(f"# From {tmp_path}/config.toml.\n\n[general]\nmax_workers = 4\n")


def test_config_check_names_every_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.toml").write_text("[general]\nmax_workers = -1\nx = 1\n")
    assert main(["config", "check", "--data-dir", str(tmp_path)]) == 2
    shown = capsys.readouterr().err
    assert "general.max_workers" in shown
    assert "general.x" in shown
    assert "2 faults." in shown


@pytest.mark.parametrize("command", [["config", "check"], ["analyze"]])
def test_a_plugin_that_is_not_there_is_a_fault_of_the_file(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.toml").write_text('[plugins]\ndisabled = ["yarax"]\n')
    assert main([*command, "--data-dir", str(tmp_path)]) == 2
    assert (
        f"{tmp_path}/config.toml: plugins.disabled: there is no plugin 'yarax'; did you mean 'yara-x'?" in capsys.readouterr().err
    )


def test_analyze_refuses_a_configuration_that_would_never_take_a_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.toml").write_text("[general]\nmin_workers = 0\nmax_workers = 0\n")
    assert main(["analyze", "--data-dir", str(tmp_path)]) == 2
    assert "general.max_workers" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "show", shell]) == 0
    assert "analyze" in capsys.readouterr().out
