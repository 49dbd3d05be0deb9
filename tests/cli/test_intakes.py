"""`malbox-tui intake`: everything that was handed in is in an account, whatever its name, and nothing is told that wasn't."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from malbox_tui.cli import intakes
from malbox_tui.cli.output import OutputClosed
from malbox_tui.model.sample import unescape
from tests.cli.command_line import CommandLine
from tests.intake import archives
from tests.intake.test_folder_walk import HOSTILE_NAMES


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def test_every_file_of_a_folder_has_a_line_whatever_its_name(malbox: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    names = [*HOSTILE_NAMES, b"readme.txt", b".hidden", b"desktop.ini", b"a.part"]
    for number, name in enumerate(names):
        Path(os.fsdecode(bytes(folder) + b"/" + name)).write_bytes(b"%d" % number)
    (folder / "link").symlink_to("readme.txt")
    (folder / "empty").touch()
    os.mkfifo(folder / "pipe")
    assert malbox("submit", folder).code == 0
    (listed,) = malbox("intake", "--json").records
    assert (listed["way"], listed["title"], listed["accepted"], listed["refused"]) == ("submit", str(folder), len(names), 3)
    lines = malbox("intake", 1, "--json").records
    assert len(lines) == len(names) + 3
    assert {unescape(line["name"]) for line in lines if line["fate"] == "accepted"} == set(names)
    assert {(line["name"], line["code"]) for line in lines if line["fate"] == "refused"} == {
        ("link", "link"),
        ("empty", "empty"),
        ("pipe", "fifo"),
    }
    said = malbox("intake", 1)
    assert len(said.out.splitlines()) == len(lines), "one line each, whatever is in a name"
    assert all(line.isprintable() for line in said.out.splitlines())


def test_members_are_linked_to_their_archive(malbox: CommandLine, tmp_path: Path) -> None:
    content = archives.plain_zip({"one": b"first", "two": b"second", "again": b"first"})
    (tmp_path / "all.bin").write_bytes(content)
    malbox("submit", tmp_path / "all.bin")
    lines = malbox("intake", 1, "--json").records
    archive = hashlib.sha256(content).hexdigest()
    assert [(line["fate"], line["name"], line["task_id"], line["archive"]) for line in lines] == [
        ("accepted", "one", 1, archive),
        ("accepted", "two", 2, archive),
        ("duplicate", "again", 1, archive),
        ("opened", "all.bin", None, None),
    ]
    assert (lines[-1]["sha256"], lines[-1]["size_bytes"], lines[-1]["reason"]) == (archive, len(content), "zip archive: 3 taken")
    said = malbox("intake", 1).out.splitlines()
    assert said[0] == f"{tmp_path}/all.bin!/one  task 1  (of archive {archive[:12]})"
    assert said[-1] == f"{tmp_path}/all.bin  opened: zip archive: 3 taken"
    sample = malbox("tasks", "--json").records[0]["sample"]
    assert sample["archives"] == [archive]


def test_lines_of_one_fate_and_so_many_of_them(malbox: CommandLine) -> None:
    malbox("submit", malbox.sample("a"), malbox.sample("b"), malbox.sample("empty", ""), malbox.sample("bare", ""))
    malbox("submit", malbox.sample("a"))
    said = malbox("intake", 1, "--fate", "refused", "--json")
    assert [line["name"] for line in said.records] == ["empty", "bare"]
    assert len(malbox("intake", 1, "--limit", 3).out.splitlines()) == 3
    assert malbox("intake", 1, "--limit", 0).out == ""
    assert [record["id"] for record in malbox("intake", "--json").records] == [2, 1]
    assert [record["id"] for record in malbox("intake", "--limit", 1, "--json").records] == [2]
    assert malbox("intake").out.splitlines()[0].endswith("submit " + str(malbox.sample("a")) + ": 1 duplicate")


def test_an_intake_that_is_not_there_is_wrong_usage(malbox: CommandLine) -> None:
    assert malbox("intake").code == 2, "no store yet"
    malbox.submit("a")
    said = malbox("intake", 7)
    assert (said.code, said.out) == (2, "")
    assert "There is no intake 7" in said.err
    assert malbox("intake", 0).code == 2


@pytest.mark.slow
def test_what_is_analysed_has_its_account_too(malbox: CommandLine) -> None:
    said = malbox("analyze", malbox.sample("a"), malbox.sample("empty", ""), "--json")
    assert said.code in (0, 1)
    assert [(line["fate"], line["name"]) for line in malbox("intake", 1, "--json").records] == [
        ("accepted", "a"),
        ("refused", "empty"),
    ]
    assert malbox("intake", "--json").records[0]["way"] == "analyze"


def test_a_reader_who_leaves_in_the_middle_is_no_fault(malbox: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    malbox.submit("a", "b")

    def closed(text: str) -> None:
        raise OutputClosed

    monkeypatch.setattr(intakes, "write_line", closed)
    assert malbox("intake", 1).err == "", "and nothing is left open behind the command"
