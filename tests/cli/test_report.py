"""`malbox-tui report`: what was found, on stdout or in a file, on a store that no engine runs on."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine

pytestmark = pytest.mark.slow

EICAR = "X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR" + "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.fixture
def analysed(malbox: CommandLine) -> CommandLine:
    assert malbox("analyze", malbox.sample("eicar.com", EICAR)).code == 0
    return malbox


def test_a_report_is_printed_in_each_form(analysed: CommandLine) -> None:
    value = json.loads(analysed("report", 1, "--as", "json").out)
    assert value["verdict"]["classification"] == "malicious"
    assert {report["plugin"]["id"] for report in value["reports"]} >= {"digests", "file-type", "yara-x"}
    assert analysed("report", 1).out.startswith("# Task 1\\: eicar\\.com\n"), "Markdown, unless something else is asked for"
    assert analysed("report", 1, "--as", "html").out.startswith("<!DOCTYPE html>\n")


def test_a_file_says_by_its_ending_what_it_is_to_be(analysed: CommandLine, tmp_path: Path) -> None:
    page = tmp_path / "out.html"
    page.write_text("what was there")
    page.chmod(0o644)
    said = analysed("report", 1, "-o", page)
    assert (said.code, said.out) == (0, "")
    assert f"Written as html: {page}" in said.err
    assert page.read_text().startswith("<!DOCTYPE html>\n")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert analysed("report", 1, "--as", "json", "-o", page).code == 0
    assert json.loads(page.read_text())["task"]["id"] == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_what_cant_be_written_is_said_and_leaves_nothing(analysed: CommandLine, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, tmp_path / "nowhere" / "x.html"):
        said = analysed("report", 1, "-o", place)
        assert (said.code, "can't be written" in said.err) == (2, True), place
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "pipe", "samples"]


def test_a_task_that_is_not_there_has_no_report(analysed: CommandLine) -> None:
    said = analysed("report", 9)
    assert (said.code, said.out, "9" in said.err) == (2, "", True)
    assert analysed("report", 0).code == 2
    assert analysed("report", 1, "--as", "pdf").code == 2


def test_without_a_store_there_is_nothing_to_report(malbox: CommandLine) -> None:
    said = malbox("report", 1)
    assert (said.code, "There is no store" in said.err) == (2, True)
    assert not malbox.data.exists()
