"""Where plugins come from, what is told of each, and what is wrong with one: by `plugin list` and `plugin check`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.cli.app import main
from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.errors import ManifestError
from malbox_tui.plugins import entry_points
from malbox_tui.plugins.places import all_places
from malbox_tui.plugins.registry import find_plugins, plugin_folders, survey
from tests.confine.rig import write_plugin

BUILT_IN = ["digests", "file-type", "strings", "yara-x"]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["--data-dir", str(tmp_path / "data"), *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def records(out: str) -> dict[str, dict[str, Any]]:
    return {record["name"]: record for record in map(json.loads, out.splitlines())}


def install(site: Path, monkeypatch: pytest.MonkeyPatch, value: str = "their_package.plugin") -> None:
    """A package with a plugin, as pip leaves it; importing it would fail."""
    write_plugin(site / "their_package", "pass", "plugin")
    (site / "their_package" / "__init__.py").write_text("raise AssertionError('it was imported')")
    information = site / "their_package-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[malbox_tui.plugins]\ntheirs = {value}\n")
    monkeypatch.syspath_prepend(str(site))


def test_plugins_of_the_folders_and_of_packages_are_listed_beside_the_built_in_ones(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(tmp_path / "data" / "plugins", "pass", "mine", extra='[plan]\nkinds = ["pe"]\n')
    install(tmp_path / "site", monkeypatch)
    code, out, _err = command("plugin", "list", "--json")
    found = records(out)
    assert code == 0
    assert sorted(found) == sorted([*BUILT_IN, "mine", "plugin"])
    assert (found["mine"]["origin"], found["mine"]["when"]) == ("folder", "for pe only, after file-type")
    assert (found["plugin"]["origin"], found["plugin"]["takes_part"]) == ("package", True)
    assert found["yara-x"]["origin"] == "built-in"
    listed = command("plugin", "list")[1].splitlines()
    assert listed[0].split() == ["plugin", "version", "from", "type", "state", "execution", "runs"]
    (mine,) = [line for line in listed if line.startswith("mine")]
    assert mine.split()[:4] == ["mine", "1.2.3", "folder", "host"]


def test_a_disabled_and_a_required_one_are_told(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "config.toml").write_text('[plugins]\ndisabled = ["strings"]\nrequired = ["yara-x"]\n')
    found = records(command("plugin", "list", "--json")[1])
    assert (found["strings"]["when"], found["strings"]["takes_part"]) == ("disabled", False)
    assert found["yara-x"]["is_required"]
    assert "at once, required" in command("plugin", "list")[1]


def test_what_is_wrong_with_one_is_told_and_the_others_are_listed(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    write_plugin(tmp_path / "data" / "plugins", "pass", "mine", extra="[plann]\n")
    code, out, _err = command("plugin", "list")
    assert code == 1
    assert "yara-x" in out
    assert f"wrong: {tmp_path}/data/plugins/mine/plugin.toml: plann: is not a key of a manifest; did you mean 'plan'?" in out


def test_plugins_that_do_not_go_together_are_told_with_their_names(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        extra = f'[plan]\nneeds = ["of-{other}"]\ngives = ["of-{name}"]\n[results.of-{name}]\n'
        write_plugin(tmp_path / "data" / "plugins", "pass", name, extra=extra)
    code, out, _err = command("plugin", "list")
    assert code == 1
    assert "a/plugin.toml: plan.needs: plugins wait for each other in a circle: a → b → a" in out
    assert [record["when"] for record in records(command("plugin", "list", "--json")[1]).values() if record["name"] == "a"] == [
        "not known while something is wrong"
    ]


def test_a_folder_is_checked_by_itself_and_beside_what_is_there(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    extra = '[plan]\nkinds = ["pe"]\n[events]\nsubscribe = ["yara-x", "string-extractor"]\n[results.found]\n'
    write_plugin(tmp_path / "own", "pass", "mine", extra=extra)
    code, out, _err = command("plugin", "check", str(tmp_path / "own" / "mine"))
    assert (code, out.splitlines()) == (
        0,
        [
            "mine 1.2.3: OK",
            "  host, persistent, parallel; it runs for pe only, after file-type",
            "  1 result: found",
            "  It wants events of string-extractor, which is not there.",
        ],
    )
    write_plugin(tmp_path / "own", "pass", "digests")
    code, _out, err = command("plugin", "check", str(tmp_path / "own" / "digests"))
    assert (code, err) == (
        1,
        f"malbox-tui: {tmp_path}/own/digests/plugin.toml: plugin.name: 'digests' is also the name of another plugin\n",
    )
    record = json.loads(command("plugin", "check", str(tmp_path / "nowhere"), "--json")[1])
    assert record["fault"] == f"{tmp_path}/nowhere/plugin.toml: can't be read (No such file or directory)"


@pytest.mark.parametrize(
    ("source", "problem"), [("x = 1\ndef run(: pass", "main.py, line 2: invalid syntax"), ("x\0", "main.py: source code string")]
)
def test_a_check_finds_a_script_that_is_no_python(
    source: str, problem: str, command: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    write_plugin(tmp_path / "own", "pass", "mine")
    (tmp_path / "own" / "mine" / "main.py").write_text(source)
    code, _out, err = command("plugin", "check", str(tmp_path / "own" / "mine"))
    assert code == 1
    assert f"plugin.binary: {problem}" in err


def test_a_check_finds_a_need_that_nobody_gives(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    write_plugin(tmp_path / "own", "pass", "mine", extra='[plan]\nneeds = ["unpacked"]\n')
    code, _out, err = command("plugin", "check", str(tmp_path / "own" / "mine"))
    assert code == 1
    assert "plan.needs: no plugin that takes part gives 'unpacked'" in err


@pytest.mark.parametrize("value", ["no_such_package", "their_package.nothing"])
def test_an_entry_point_that_leads_nowhere_is_refused_by_name(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch, value)
    with pytest.raises(ManifestError, match=f"entry point theirs of their-package: '{value}' is no package with a folder"):
        entry_points.entry_point_folders()


def test_nothing_of_an_entry_point_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", monkeypatch)
    assert entry_points.entry_point_folders() == (tmp_path / "site" / "their_package" / "plugin",)
    assert "their_package" not in sys.modules


def test_the_places_are_the_built_in_folder_and_two_of_the_operator(tmp_path: Path) -> None:
    folders = DataFolders.under(tmp_path)
    assert all_places(folders)[1:] == (tmp_path / "plugins",)
    own = DataFolders.of_user()
    assert own.plugin_folders == (own.plugins, own.config_file.parent / "plugins")


UNREADABLE = """
import sys
from pathlib import Path
from malbox_tui.model.errors import ManifestError
from malbox_tui.plugins.registry import survey
print([str(found) for found in survey([Path(sys.argv[1])])])
"""


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["", "mine", "mine/plugin.toml", "mine/main.py"])
def test_what_can_not_be_read_is_said_by_its_path(closed: str, tmp_path: Path) -> None:
    """Root reads everything; so without its right to."""
    write_plugin(tmp_path / "plugins", "pass", "mine")
    target = tmp_path / "plugins" / closed
    target.chmod(0)
    setpriv = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", "--"]
    without_rights = [] if os.geteuid() else setpriv
    command = [*without_rights, sys.executable, "-c", UNREADABLE, str(tmp_path / "plugins")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    target.chmod(0o700)
    assert "Permission denied" in told
    assert str(tmp_path / "plugins") in told


def test_a_place_that_is_a_file_or_is_not_there_has_no_plugins(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert plugin_folders(tmp_path / "file") == plugin_folders(tmp_path / "nowhere") == []
    (tmp_path / "plugins" / "notes").mkdir(parents=True)
    assert list(survey([tmp_path / "plugins"])) == []


def test_a_place_may_be_one_plugin(tmp_path: Path) -> None:
    write_plugin(tmp_path, "pass", "mine")
    assert [plugin.name for plugin in find_plugins(PluginSettings(), tmp_path / "mine")] == ["mine"]
