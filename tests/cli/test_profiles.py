"""Profiles on the command line: listing them, choosing one, changing it while a task waits, and being told which a task has and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine

CONFIG = """
[[profiles]]
name = "documents"
plugins = ["file-type", "strings"]
required = ["strings"]
kinds = ["ole"]
timeout_s = 60

[profiles.options.strings]
min_length = "8"

[[profiles]]
name = "in-windows"
platform = "windows"
"""


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    line = CommandLine(tmp_path, capsys)
    line.data.mkdir(mode=0o700)
    (line.data / "config.toml").write_text(CONFIG)
    return line


def test_they_are_listed(malbox: CommandLine) -> None:
    lines = malbox("profiles").out.splitlines()
    assert lines[0].split("  ")[0] == "profile"
    assert lines[1].split("  ")[0] == "documents"
    assert "ole" in lines[1]
    assert "strings.min_length=8" in lines[1]
    assert lines[2].endswith("windows")
    documents, in_windows = malbox("profiles", "--json").records
    assert documents == {
        "record": "profile",
        "name": "documents",
        "is_default": False,
        "kinds": ["ole"],
        "plugins": ["file-type", "strings"],
        "required": ["strings"],
        "options": {"strings": {"min_length": "8"}},
        "timeout_s": 60.0,
        "type": None,
        "platform": None,
        "tags": [],
    }
    assert in_windows["platform"] == "windows"


def test_that_there_is_none_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = CommandLine(tmp_path, capsys)("profiles")
    assert (said.code, said.out) == (0, "")
    assert "There is no profile." in said.err


def test_one_is_chosen_and_changed_while_the_task_waits(malbox: CommandLine) -> None:
    assert malbox("submit", malbox.sample("a"), "--profile", "documents").code == 0
    assert malbox("task", 1, "--json").records[0]["profile"] == {"name": "documents", "chosen_by": "hand", "kind": None}
    assert "documents, chosen by hand" in malbox("task", 1).out
    assert malbox("task", 1, "--json").records[0]["timeout_s"] == 60.0
    said = malbox("profile", "auto", 1)
    assert (said.code, said.out) == (0, "Task 1 has no profile.\n")
    assert malbox("task", 1, "--json").records[0]["profile"] is None
    assert malbox("task", 1, "--json").records[0]["timeout_s"] == 300.0
    said = malbox("profile", "in-windows", 1, "--json")
    assert said.code == 1, "no machine could serve it"
    assert said.records[0]["message"].startswith("Task 1 can't have that profile: It needs a machine (windows)")
    latest = malbox("actions", "--json").records[1]
    assert latest["action"] == {"command": "SetProfile", "task_ids": [1], "profile": ""}


def test_one_that_there_is_not_is_refused(malbox: CommandLine) -> None:
    said = malbox("submit", malbox.sample("a"), "--profile", "document")
    assert said.code == 2
    assert "There is no profile 'document'; did you mean documents." in said.out + said.err
    malbox("submit", malbox.sample("a"), "--profile", "auto")
    said = malbox("profile", "document", 1)
    assert (said.code, said.out) == (1, "There is no profile 'document'; did you mean documents.\n")


def test_names_are_completed(malbox: CommandLine) -> None:
    for words in (["profile", ""], ["submit", "--profile", ""]):
        offered = malbox("completion", "words", "--", *words).out.split()
        assert {"documents", "in-windows"} <= set(offered)
    malbox("submit", malbox.sample("a"))
    assert malbox("completion", "words", "--", "profile", "documents", "").out.split() == ["1"]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (
            '[[profiles]]\nname = "x"\nplugins = ["string"]',
            "profiles[2].plugins: there is no plugin 'string'; did you mean 'strings'?",
        ),
        (
            '[[profiles]]\nname = "x"\nkinds = ["ole"]',
            "profiles[2].kinds: profile x: 'ole' is a kind of the profile documents too.",
        ),
        (
            '[[profiles]]\nname = "x"\n[profiles.options.strings]\nmin = "1"',
            "profiles[2].options.strings.min: the plugin has no such option; it has",
        ),
    ],
)
def test_the_check_of_the_configuration_finds_what_is_wrong(more: str, fault: str, malbox: CommandLine) -> None:
    assert malbox("config", "check").code == 0
    (malbox.data / "config.toml").write_text(CONFIG + more)
    said = malbox("config", "check")
    assert said.code == 2
    assert fault in said.err
