"""Reports and samples beside an engine that is served: what was found is written, and what people note is told to it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.service_rig import Serving

pytestmark = pytest.mark.slow

EICAR = "X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR" + "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
SHA = hashlib.sha256(EICAR.encode()).hexdigest()


def test_what_was_found_is_written_and_what_people_note_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    malbox = CommandLine(tmp_path, capsys)
    malbox.data.mkdir(mode=0o700)
    with Serving(malbox.data) as service:
        service.until_told("READY=1")
        assert malbox("submit", "--wait", malbox.sample("eicar.com", EICAR)).code == 0
        assert json.loads(malbox("report", 1, "--as", "json").out)["verdict"]["classification"] == "malicious"
        said = malbox("sample", SHA[:10], "--note", "a test file", "--tag", "eicar", "--json")
        assert (said.code, said.records[0]["tags"]) == (0, ["eicar"])
        assert [reason.partition(" says")[0] for reason in said.records[0]["reasons"]] == ["yara-x in task 1"]
        assert malbox("sample", SHA, "--tag", "no good\x07").code == 1
        told = [event for event in malbox("events", "--json", "--limit", 50).records if event["event"] == "SampleMarked"]
        assert [(event["sha256"], event["note"], event["tags"]) for event in told] == [(SHA, "a test file", ["eicar"])]
    assert malbox("sample", SHA, "--json").records[0]["notes"][0]["text"] == "a test file"
