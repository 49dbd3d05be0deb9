"""What is said of a watched folder on the command line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from malbox_tui.cli.watch_words import WatchWords
from malbox_tui.config.watching import Afterwards
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.watching import WatchSpec


def test_a_folder_of_which_nothing_is_said_is_one_of_the_configuration() -> None:
    assert WatchWords().watch("/in") == WatchSpec(path="/in")


def test_a_path_is_meant_from_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert WatchWords(afterwards=Afterwards.MOVE).watch("in") == WatchSpec(path=f"{tmp_path}/in", afterwards="move")


def test_every_key_of_the_configuration_can_be_said() -> None:
    said = WatchWords(
        recursive=True,
        pattern=("*.exe",),
        settle=1.0,
        afterwards=Afterwards.DELETE,
        priority=2,
        again=True,
        owner="ana",
        profile="deep",
        plugin=("strings",),
        option=("strings.min_length=8",),
        timeout=9.0,
        type="dynamic",
        platform="linux",
        arch="x64",
        tag=("office",),
        machine="m1",
    )
    asked, default = (msgspec.structs.asdict(watch) for watch in (said.watch("/in"), WatchSpec(path="")))
    assert {name for name, value in asked.items() if value == default[name]} == {"unique", "archive"}


@pytest.mark.parametrize(
    ("words", "path", "problem"),
    [
        (WatchWords(settle=-1.0), "/in", "settle_s: expected"),
        (WatchWords(priority=10**7), "/in", "priority: expected"),
        (WatchWords(option=("min_length",)), "/in", "options[0]: expected"),
        (WatchWords(again=True, unique=True), "/in", "unique: what is known"),
        (WatchWords(), "/\udcff", "path: it is no UTF-8"),
        (WatchWords(owner="\udcff"), "/in", "path: it is no UTF-8"),
    ],
)
def test_what_makes_no_sense_is_refused_before_an_engine_is_asked(words: WatchWords, path: str, problem: str) -> None:
    with pytest.raises(MalboxError) as refused:
        words.watch(path)
    assert str(refused.value).startswith(problem)
