"""Paths of the command line that are not there."""

from __future__ import annotations

from pathlib import Path

from malbox_tui.cli.paths import is_missing, nothing_there


def test_what_is_there_is_not_missing_even_if_it_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert not is_missing(str(tmp_path))
    assert not is_missing(str(tmp_path / "link"))


def test_what_is_not_there_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert is_missing(str(tmp_path / "gone"))
    assert is_missing(str(tmp_path / "file" / "below"))


def test_a_path_that_cannot_be_looked_at_is_left_to_who_opens_it(tmp_path: Path) -> None:
    assert not is_missing(str(tmp_path / ("x" * 300)))


def test_a_missing_name_is_shown_escaped() -> None:
    assert nothing_there(["\udcff\x1b[31m"]) == r"There is no file or folder \xff\x1b[31m."
