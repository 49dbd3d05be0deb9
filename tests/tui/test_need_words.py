"""What a task asks for, as words that a person changes."""

from __future__ import annotations

import pytest

from malbox_tui.model.commands import ChangeTasks
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.tui.need_words import change_of, words_of
from tests.tui.scripted import task

WINDOWS = task(3, TaskState.PENDING, requires=RequirementClass("dynamic", "windows", None, ("de", "office")), timeout_s=12.5)


def test_what_a_task_asks_for_stands_there_to_begin_with_and_changes_nothing() -> None:
    assert words_of(WINDOWS) == "type=dynamic platform=windows arch= tags=de,office timeout=12.5"
    assert change_of(words_of(WINDOWS), WINDOWS) is None
    assert change_of("", WINDOWS) is None


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("platform=", {"platform": ""}),
        ("tags=", {"tags": ()}),
        ("tags=x,,y", {"tags": ("x", "y")}),
        ("type=static timeout=20", {"task_type": "static", "timeout_s": 20.0}),
        ("arch=x64 platform=windows", {"arch": "x64"}),
    ],
)
def test_only_what_is_changed_is_asked(words: str, change: dict[str, object]) -> None:
    assert change_of(words, WINDOWS) == ChangeTasks(task_ids=(3,), **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("linux", "linux: write type=, platform=, arch=, tags=, timeout=, without blanks"),
        ("colour=red", "colour=red: write type="),
        ("timeout=soon", "timeout=soon: write how many seconds"),
        ("arch=x64 arch=x86", "arch= stands there twice."),
        ("type=", "type= needs a word behind it"),
    ],
)
def test_what_can_not_be_read_is_said(words: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        change_of(words, WINDOWS)
