"""What a breakdown is called."""

from __future__ import annotations

from pathlib import Path

from malbox_tui.cli.breakdown import engine_breakdown, first_cause
from malbox_tui.config.folders import DataFolders
from malbox_tui.model.errors import StoreError

FOLDERS = DataFolders.chosen(Path("/data"))


def test_of_a_group_in_a_group_the_cause_is_told() -> None:
    error = LookupError("gone")
    assert first_cause(ExceptionGroup("outer", [ExceptionGroup("inner", [error])])) is error


def test_an_error_of_ours_is_told_in_its_own_words_from_inside_a_group_too() -> None:
    error = StoreError("The disk is full \x1b[31m.")
    assert engine_breakdown(error, FOLDERS) == r"The disk is full \x1b[31m."
    assert engine_breakdown(ExceptionGroup("tasks", [error]), FOLDERS) == r"The disk is full \x1b[31m."


def test_another_error_is_told_by_its_kind_and_where_the_details_are() -> None:
    told = engine_breakdown(ExceptionGroup("tasks", [KeyError("secret")]), FOLDERS)
    assert told == "The engine ended with an unexpected KeyError; /data/logs/malbox-tui.log has the details."
