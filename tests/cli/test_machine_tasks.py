"""Tasks that need a machine, as a person at the command line meets them: simulated machines, everything else real."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_end_to_end import PATIENCE_S, Malbox, records

pytestmark = pytest.mark.slow

MACHINES = """
[[machines]]
name = "linux-1"
provider = "simulated"
platform = "linux"
tags = ["office"]
"""


@pytest.fixture
def malbox(tmp_path: Path) -> Malbox:
    (tmp_path / "machines.toml").write_text(MACHINES)
    (tmp_path / "sample").write_text("a harmless sample")
    return Malbox(tmp_path / "data")


def arguments(tmp_path: Path, *more: str) -> list[str]:
    return ["--config", str(tmp_path / "machines.toml"), *more, str(tmp_path / "sample")]


def test_what_no_machine_could_serve_is_refused_with_the_missing_tag_named(malbox: Malbox, tmp_path: Path) -> None:
    ended = malbox("analyze", *arguments(tmp_path, "--json", "--platform", "linux", "--tag", "offic"))
    assert ended.returncode == 2
    (refused,) = (record for record in records(ended.stdout) if record["record"] == "refused")
    assert refused["code"] == "unserviceable"
    assert "the closest, linux-1, lacks tag offic" in refused["reason"]


def test_a_task_type_that_there_is_not_is_refused(malbox: Malbox, tmp_path: Path) -> None:
    ended = malbox("analyze", *arguments(tmp_path, "--type", "dynamc"))
    assert ended.returncode == 2
    assert b"There is no task type 'dynamc'" in ended.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--timeout", "1800"], b"it must be below the critical timeout of 1800 s, which is over a whole attempt."),
        (["--enforce-timeout"], b"A static task needs no machine, so there is none to watch for its whole timeout."),
    ],
    ids=["timeout", "enforce-timeout"],
)
def test_time_limits_that_make_no_sense_are_refused_in_a_sentence_that_no_table_cuts(
    malbox: Malbox, tmp_path: Path, options: list[str], reason: bytes
) -> None:
    malbox.environment["COLUMNS"] = "80"
    ended = malbox("analyze", *arguments(tmp_path, *options))
    assert ended.returncode == 2
    assert b"malbox-tui: Nothing was accepted: A" in ended.stderr
    assert reason in ended.stderr


def test_a_machine_that_is_watched_to_the_end_is_told_in_records_and_on_the_tasks_page(malbox: Malbox, tmp_path: Path) -> None:
    ended = malbox("analyze", *arguments(tmp_path, "--json", "--machine", "linux-1", "--timeout", "1", "--enforce-timeout"))
    (told,) = records(ended.stdout)
    assert (told["timeout_s"], told["enforce_timeout"]) == (1.0, True)
    assert "1 s for the analysis; its machine is watched for all of it" in malbox("task", "1").stdout.decode()


def test_saved_limits_that_are_in_effect_are_told_at_the_start(malbox: Malbox, tmp_path: Path) -> None:
    (tmp_path / "machines.limits.toml").write_text("[groups.default]\nmin_workers = 2\nmax_workers = 3\n")
    ended = malbox("analyze", *arguments(tmp_path, "--json"))
    assert ended.returncode == 0
    assert b"the group default has min_workers = 2 and max_workers = 3, as saved" in ended.stderr
    assert all(record["record"] == "task" for record in records(ended.stdout))


def test_a_held_task_says_why_nothing_moves_and_is_kept_when_the_run_is_ended(malbox: Malbox, tmp_path: Path) -> None:
    command = malbox.command("analyze", *arguments(tmp_path, "--platform", "macos", "--hold"))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=malbox.environment) as process:
        try:
            assert process.stderr is not None
            assert any(b"Task 1: held: No machine could serve macos" in line for line in process.stderr)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 1
        finally:
            process.kill()
    assert [task["state"] for task in malbox.tasks()] == ["pending"]


def test_a_task_runs_in_its_machine_and_says_which_limit_ended_it(malbox: Malbox, tmp_path: Path) -> None:
    ended = malbox("analyze", *arguments(tmp_path, "--json", "--machine", "linux-1", "--timeout", "1"))
    assert ended.returncode == 1
    (task,) = malbox.tasks()
    assert (task["state"], task["machine"]) == ("timed_out", "linux-1")
    assert "during guest-run" in task["reason"]
