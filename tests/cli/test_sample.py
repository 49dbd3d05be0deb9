"""`malbox-tui sample`: everything about a content, and what people note of it, on a store that no engine runs on."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from malbox_tui.model.sample import MAX_TAGS
from tests.cli.command_line import CommandLine

SHA = hashlib.sha256(b"a").hexdigest()


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    line = CommandLine(tmp_path, capsys)
    line.submit("a", "b")
    return line


def test_a_sample_is_shown_with_all_its_tasks(malbox: CommandLine) -> None:
    malbox("cancel", 1)
    malbox("retry", 1)
    said = malbox("sample", SHA[:8])
    assert said.code == 0
    assert said.out.startswith(f"Sample {SHA}\n  size       1 B\n  name       a\n")
    assert [line.split()[0] for line in said.out.partition("\nTasks\n")[2].splitlines()] == ["3", "1"]
    (record,) = malbox("sample", f"sha256:{SHA}", "--json").records
    assert (record["record"], record["sha256"], record["verdict"], record["notes"], record["tags"]) == (
        "sample",
        SHA,
        None,
        [],
        [],
    )
    assert [(task["id"], task["state"]) for task in record["tasks"]] == [(1, "canceled"), (3, "pending")]


def test_notes_and_tags_are_kept_and_are_actions(malbox: CommandLine) -> None:
    said = malbox("sample", SHA, "--note", "from \x1b[31mred\nmail", "--tag", "office", "--tag", "apt", "--json")
    assert (said.code, said.err) == (0, f"Sample {SHA[:12]}: 1 note, tags apt, office.\n")
    (record,) = said.records
    assert record["tags"] == ["apt", "office"]
    assert [note["text"] for note in record["notes"]] == [r"from \x1b[31mred\x0amail"]
    said = malbox("sample", SHA, "--untag", "apt", "--note", "second")
    assert "tags       office" in said.out
    assert "second" in said.out
    assert malbox("tasks", "--json").records[-1]["sample"]["tags"] == ["office"]
    assert "tags       office" in malbox("task", 1).out
    actions = malbox("actions").out
    assert f"marked sample {SHA[:12]} +apt" in actions.replace("+office ", "")
    assert f"marked sample {SHA[:12]} -apt with a note" in actions


def test_what_is_noted_twice_changes_nothing(malbox: CommandLine) -> None:
    malbox("sample", SHA, "--tag", "x")
    assert "is so already" in malbox("sample", SHA, "--tag", "x").err


@pytest.mark.parametrize(
    "marks", [["--tag", ""], ["--tag", " x"], ["--tag", "x\x1b"], ["--tag", "x" * 65], ["--note", "x" * 2001]]
)
def test_marks_that_cant_be_are_refused_and_nothing_is_kept(malbox: CommandLine, marks: list[str]) -> None:
    said = malbox("sample", SHA, *marks, "--json")
    assert (said.code, "nothing was noted" in said.err) == (1, True)
    assert (said.records[0]["tags"], said.records[0]["notes"]) == ([], [])


def test_there_are_only_so_many(malbox: CommandLine) -> None:
    tags = [word for number in range(MAX_TAGS + 1) for word in ("--tag", f"t{number}")]
    assert f"{MAX_TAGS} tags at most" in malbox("sample", SHA, *tags).err
    assert malbox("sample", SHA, *tags[:-2]).code == 0


def test_what_names_no_sample_or_several_is_said(malbox: CommandLine) -> None:
    assert "There is no sample" in malbox("sample", "0" * 64, "--note", "x").err
    assert malbox("sample", "abc").code == 2
    assert malbox("sample", "no-digits").code == 2
    assert malbox("sample").code == 2
    assert malbox("actions").out.count("marked") == 0


def test_without_a_store_there_is_no_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    malbox = CommandLine(tmp_path, capsys)
    assert malbox("sample", SHA, "--note", "x").code == 2
    assert not malbox.data.exists()
