"""Archives on the command line: their members become tasks, or they do themselves, and each is accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.cli.wishes import ArchiveUse, Wishes
from malbox_tui.model.archive import ArchiveChoice
from tests.cli.command_line import CommandLine
from tests.cli.terminal_rig import Terminal
from tests.cli.terminal_rig import malbox as malbox_on_terminal
from tests.intake import archives
from tests.intake.archives import Entry, zip_of


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def test_what_is_asked_of_archives_is_passed_on() -> None:
    assert Wishes().choice().archives == ArchiveChoice()
    assert Wishes(archive=ArchiveUse.WHOLE).choice().archives == ArchiveChoice(opens=False)
    assert Wishes(password=("-x", "y z")).choice().archives == ArchiveChoice(passwords=("-x", "y z"))


@pytest.mark.slow
def test_members_become_tasks_and_the_rest_is_refused_with_its_reason(malbox: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "found.bin"
    path.write_bytes(
        zip_of(Entry(b"../a", b"first"), Entry(b"b", b"second", password=b"infected"), Entry(b"c", b"x", password=b"?"))
    )
    said = malbox("submit", "--json", path)
    assert said.code == 0
    accepted = {record["origin"]: record["name"] for record in said.records if record["record"] == "accepted"}
    assert accepted == {f"{path}!/../a": "a", f"{path}!/b": "b"}
    [refused] = [record for record in said.records if record["record"] == "refused"]
    assert (refused["path"], refused["code"]) == (f"{path}!/c", "password")


@pytest.mark.slow
def test_a_locked_archive_is_refused_until_its_password_is_given(malbox: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "locked.zip"
    path.write_bytes(zip_of(Entry(b"a", b"first", password=b"-secret", strength=3)))
    said = malbox("submit", "--json", path)
    assert said.code == 2
    assert {record["code"] for record in said.records} == {"password"}
    opened = malbox("submit", "--json", "--password", "-secret", path)
    assert [record["record"] for record in opened.records] == ["accepted", "opened"]


@pytest.mark.slow
def test_passwords_and_limits_of_the_configuration_hold(malbox: CommandLine, tmp_path: Path) -> None:
    config = tmp_path / "malbox.toml"
    config.write_text('[intake]\narchive_passwords = ["ours"]\nmax_archive_members = 2\n')
    path = tmp_path / "archive.zip"
    path.write_bytes(zip_of(*(Entry(b"%d" % number, b"content %d" % number, password=b"ours") for number in range(3))))
    said = malbox("submit", "--config", config, "--json", path)
    assert [record["record"] for record in said.records] == ["accepted", "accepted", "accepted", "refused"]
    assert said.records[2]["origin"] == str(path)
    assert said.records[3]["code"] == "members"


@pytest.mark.slow
def test_an_archive_can_be_one_sample(malbox: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archives.plain_zip({"a": b"first", "b": b"second"}))
    said = malbox("submit", "--json", "--archive", "whole", path)
    assert [(record["name"], record["size_bytes"]) for record in said.records] == [("a.zip", path.stat().st_size)]


@pytest.mark.slow
def test_the_same_content_in_two_archives_and_beside_them_is_one_task_with_all_names(malbox: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "drop"
    folder.mkdir()
    (folder / "1.zip").write_bytes(archives.plain_zip({"one.exe": b"the same"}))
    (folder / "2.tgz").write_bytes(archives.gzip_of(archives.tar_of(archives.tar_file(b"two.exe", b"the same"))))
    (folder / "3.exe").write_bytes(b"the same")
    said = malbox("submit", "--json", folder)
    assert [record["record"] for record in said.records if record["record"] != "opened"] == ["accepted", "duplicate", "duplicate"]
    assert [record["name"] for record in said.records if record["record"] == "opened"] == ["1.zip", "2.tgz"]
    [task] = malbox("tasks", "--json").records
    assert task["sample"]["names"] == ["one.exe", "two.exe", "3.exe"]
    assert task["sample"]["origins"] == [f"{folder}/1.zip!/one.exe", f"{folder}/2.tgz!/two.exe", f"{folder}/3.exe"]


@pytest.mark.slow
def test_members_are_analysed(malbox: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archives.plain_zip({"note.txt": b"a harmless note\n" * 20}))
    said = malbox("analyze", "--json", path)
    assert said.code == 0
    [task] = [record for record in said.records if record["record"] == "task"]
    assert (task["state"], task["sample"]["names"]) == ("completed", ["note.txt"])


@pytest.mark.slow
def test_an_archive_given_to_the_console_becomes_tasks_of_its_members(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(archives.plain_zip({"inside-one.txt": b"first", "inside-two.txt": b"second"}))
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    with Terminal(malbox_on_terminal(data, path)) as terminal:
        terminal.until("inside-one.txt", "inside-two.txt")
