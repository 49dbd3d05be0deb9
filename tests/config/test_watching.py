"""Watched folders in a file: what each asks of what comes in, and what is wrong with them beside each other."""

from pathlib import Path

import pytest

from malbox_tui.config.changes import changes
from malbox_tui.config.settings import Settings
from malbox_tui.config.template import as_toml
from malbox_tui.config.watching import Afterwards, WatchSettings
from malbox_tui.model.intake import IntakeLabel, Way
from malbox_tui.model.selection import Selection
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import RequirementClass
from tests.config.files import faults, load


def test_a_folder_says_what_is_asked_of_what_comes_in(tmp_path: Path) -> None:
    keys = 'priority = 7\nagain = true\ntimeout_s = 20\nplatform = "windows"\ntags = ["office", "de"]\narchive = "whole"\n'
    (watch,) = load(tmp_path, f'[[watch]]\npath = "/in"\nafterwards = "move"\nrecursive = true\n{keys}').watch
    assert (watch.afterwards, watch.recursive, watch.archives().opens) == (Afterwards.MOVE, True, False)
    assert watch.submission() == SubmissionOptions(
        priority=7,
        again=True,
        timeout_s=20.0,
        requires=RequirementClass("dynamic", "windows", None, ("de", "office"), None),
        actor="watch:/in",
        origin="a watched folder",
        intake=IntakeLabel(Way.WATCH, "/in"),
    )


def test_a_folder_says_which_files_it_takes_for_whom_and_what_their_plugins_are(tmp_path: Path) -> None:
    keys = 'patterns = ["*.exe"]\nowner = "mail gate"\nunique = true\nplugins = ["strings"]\noptions = ["min_length=8"]\n'
    text = f'[[watch]]\npath = "/in"\nprofile = "deep"\n{keys}[[profiles]]\nname = "deep"\n'
    (watch,) = load(tmp_path, text).watch
    asked = watch.submission()
    assert watch.selection() == Selection(recursive=False, patterns=("*.exe",))
    assert (asked.owner, asked.unique, asked.profile) == ("mail gate", True, "deep")
    assert (asked.plugins, asked.plugin_options) == (("strings",), ("min_length=8",))


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ('profile = "deep"', "watch[0].profile"),
        ("unique = true\nagain = true", "watch[0].unique"),
        ('patterns = ["a/*.exe"]', "watch[0].patterns[0]"),
        ('options = ["min_length"]', "watch[0].options[0]"),
        ('owner = " ana"', "watch[0].owner"),
    ],
)
def test_what_a_folder_can_not_ask_is_a_fault_of_the_file(tmp_path: Path, keys: str, key: str) -> None:
    ((found, _problem),) = faults(tmp_path, f'[[watch]]\npath = "/in"\n{keys}\n')
    assert found == key


def test_a_folder_that_asks_for_nothing_has_static_tasks_and_stays_as_it_is(tmp_path: Path) -> None:
    (watch,) = load(tmp_path, '[[watch]]\npath = "/in"\n').watch
    assert watch.submission().requires == RequirementClass("static")
    assert (watch.afterwards, watch.recursive, watch.settle_s, watch.archives().opens) == (Afterwards.LEAVE, False, 2.0, True)


@pytest.mark.parametrize(
    ("second", "relation"),
    [
        ("/in", "is the same folder as that of watch[0]"),
        ("/in/../in/", "is the same folder as that of watch[0]"),
        ("/in/deep/er", "lies in the folder of watch[0]"),
        ("/", "holds the folder of watch[0]"),
    ],
)
def test_no_file_belongs_to_two_folders(tmp_path: Path, second: str, relation: str) -> None:
    if second == "/":
        second = "//"
    ((key, problem),) = faults(tmp_path, f'[[watch]]\npath = "/in"\n[[watch]]\npath = "{second}"\n')
    assert key == "watch[1].path"
    assert problem == f'"{second}" {relation}. A file would be taken twice: keep one of the two.'


def test_a_link_to_a_watched_folder_is_that_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    ((key, problem),) = faults(tmp_path, f'[[watch]]\npath = "{tmp_path}/real"\n[[watch]]\npath = "{tmp_path}/link"\n')
    assert key == "watch[1].path"
    assert "is the same folder as that of watch[0]" in problem


def test_folders_with_like_names_are_two(tmp_path: Path) -> None:
    assert len(load(tmp_path, '[[watch]]\npath = "/in"\n[[watch]]\npath = "/in2"\n').watch) == 2


@pytest.mark.parametrize(
    ("content", "key", "problem"),
    [
        ("settle_s = 1", "path", 'missing. Expected the absolute path of a folder, such as "/srv/incoming".'),
        ('path = "in"', "path", 'expected the absolute path of a folder, such as "/srv/incoming", got the string "in".'),
        ('path = "/in"\nsettle_s = 0', "settle_s", "expected a number, above 0 and at most 604800, got 0."),
        ('path = "/in"\nafterwards = "eat"', "afterwards", "expected one of 'leave', 'move', 'delete', got the string \"eat\"."),
        ('path = "/in"\nsettle = 1', "settle", "unknown key. Did you mean watch[0].settle_s?"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(tmp_path: Path, content: str, key: str, problem: str) -> None:
    ((found_key, found),) = faults(tmp_path, f"[[watch]]\n{content}\n")
    assert found_key == f"watch[0].{key}"
    assert found.endswith(problem)


def test_a_single_table_is_told_how_to_be_written(tmp_path: Path) -> None:
    assert faults(tmp_path, '[watch]\npath = "/in"\n') == [
        ("watch", "expected a list of tables, got a table. Write [[watch]], with double brackets, once for each folder.")
    ]


def test_what_is_shown_loads_as_the_same(tmp_path: Path) -> None:
    settings = Settings(watch=(WatchSettings(path="/in", tags=("a",)), WatchSettings(path="/other", platform="linux")))
    assert load(tmp_path, as_toml(settings)) == settings


def test_a_change_is_told_by_the_folder_and_needs_a_restart() -> None:
    (change,) = changes(Settings(watch=(WatchSettings(path="/in"),)), Settings(watch=(WatchSettings(path="/in", priority=3),)))
    assert (str(change), change.is_live) == ("watch./in.priority: 1 → 3", False)
