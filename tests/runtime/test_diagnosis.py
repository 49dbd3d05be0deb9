"""What `doctor` says of resource limits; the rest of it is tested through the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.runtime import diagnosis
from malbox_tui.runtime.diagnosis import Finding, Health, diagnose
from tests.config.files import source_of

HALF_A_CORE = '[[workers]]\nname = "w"\n[workers.resource_limits]\ncpu_cores = 0.5\n'


def limits_found(folder: Path, content: str) -> list[Finding]:
    return [finding for finding in diagnose(DataFolders.under(folder), source_of(folder, content)) if finding.what == "limits"]


def test_it_says_how_limits_are_enforced(tmp_path: Path) -> None:
    (found,) = limits_found(tmp_path, "")
    assert found.health is Health.OK
    assert "memory: " in found.detail
    assert "disk: " in found.detail


def test_what_cannot_be_enforced_fails_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "find_hierarchies", tuple)
    means, missing = limits_found(tmp_path, HALF_A_CORE)
    assert means.detail.startswith(
        "no control groups can be made; memory: each process of a plugin; cores: affinity, in whole cores"
    )
    assert missing.health is Health.FAIL
    assert missing.detail.startswith("cpu_cores of the group w is not enforced: a part of a core takes a quota")
    assert missing.remedy.startswith("ask for whole cores, or ")


def test_what_a_group_goes_without_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "find_hierarchies", tuple)
    _means, missing = limits_found(tmp_path, f"{HALF_A_CORE}best_effort = true\n")
    assert missing.health is Health.WARN
