"""Manifests: every field is known, wrong ones are named with file and key, and nothing is accepted and then ignored."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.errors import ConfigError, ManifestError
from malbox_tui.plugins.manifest import Execution, entry_of, read_manifest
from malbox_tui.plugins.registry import find_guest_plugins, find_plugins

GOOD = """
[plugin]
name = "subject"
version = "0.1.0"
description = "A plugin"
authors = ["Somebody"]
type = "host"
binary = "main.py"
[runtime]
state = "persistent"
execution = "parallel"
log_filter = "debug"
analysis_timeout = 60
[results.report]
description = "The report"
user_visible = true
display_name = "Report"
render = "json"
[events]
subscribe = []
[config]
option = "default"
"""

FAULTS = {
    "a key with a slip": (("version =", "verson ="), "plugin.verson", "did you mean 'version'"),
    "an unknown table": (("[events]", "[event]"), "event", "did you mean 'events'"),
    "an unknown key of a result": (("render =", "rendr ="), "results.report.rendr", "did you mean 'render'"),
    "a missing key": (('version = "0.1.0"\n', ""), "plugin.version", "is missing"),
    "a version that is none": (("0.1.0", "one"), "plugin.version", "regex"),
    "a name with a slash": (('"subject"', '"a/b"'), "plugin.name", "regex"),
    "a wrong type": (("analysis_timeout = 60", 'analysis_timeout = "long"'), "runtime.analysis_timeout", "expected `int"),
    "a timeout of nothing": (("analysis_timeout = 60", "analysis_timeout = 0"), "runtime.analysis_timeout", ">= 1"),
    "an unknown state": (('"persistent"', '"eternal"'), "runtime.state", "invalid enum value 'eternal'"),
    "a state that guests don't have": (('"host"', '"guest"'), "runtime.state", "each run begins it anew; use 'ephemeral'"),
    "platforms of a host plugin": (("[config]", '[guest]\nplatforms = ["linux"]\n[config]'), "guest", "belongs to guest plugins"),
    "a state of later": (('"persistent"', '"ephemeral"'), "runtime.state", "not supported by this version"),
    "an execution of later": (('"parallel"', '"exclusive"'), "runtime.execution", "not supported by this version"),
    "a port": (('execution = "parallel"', 'execution = "parallel"\nport = 50051'), "runtime.port", "belongs to guest plugins"),
    "a subscription": (("subscribe = []", 'subscribe = ["other"]'), "events", "not supported by this version"),
    "a scope": (("[config]", '[scope]\nplugins = ["x"]\n[config]'), "scope", "not supported by this version"),
    "a filter of tracing": (('"debug"', '"info,hyper=warn"'), "runtime.log_filter", "must be one of trace, debug"),
    "a path that is no option": (("[config]", '[sandbox]\npaths = ["rules"]\n[config]'), "sandbox.paths", "'rules' is not a key"),
}


def plugin(folder: Path, manifest: str = GOOD) -> Path:
    folder.mkdir(parents=True)
    (folder / "plugin.toml").write_text(manifest)
    (folder / "main.py").write_text("")
    return folder


def test_every_field_of_a_good_manifest_is_read(tmp_path: Path) -> None:
    manifest = read_manifest(plugin(tmp_path / "p"))
    assert manifest.plugin.name == "subject"
    assert manifest.runtime.execution is Execution.PARALLEL
    assert manifest.runtime.analysis_timeout == 60
    assert manifest.results["report"].display_name == "Report"
    assert manifest.config == {"option": "default"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_file_key_and_remedy(name: str, tmp_path: Path) -> None:
    (old, new), key, problem = FAULTS[name]
    assert old in GOOD
    folder = plugin(tmp_path / "p", GOOD.replace(old, new))
    with pytest.raises(ManifestError) as caught:
        read_manifest(folder)
    assert caught.value.path == str(folder / "plugin.toml")
    assert caught.value.key == key
    assert problem in caught.value.problem


@pytest.mark.parametrize("content", [b"[plugin", b"\xff\xfe", b"x" * 300_000, b"[" * 10_000])
def test_what_is_no_manifest_is_refused(content: bytes, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "p")
    (folder / "plugin.toml").write_bytes(content)
    with pytest.raises(ManifestError):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("binary", "problem"),
    [("../main.py", "name of a file in"), ("tool", "not a Python script"), ("other.py", "there is no file 'other.py'")],
)
def test_an_entry_that_can_not_run_is_refused(binary: str, problem: str, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "p", GOOD.replace('"main.py"', f'"{binary}"'))
    with pytest.raises(ManifestError, match=problem):
        entry_of(folder, read_manifest(folder))


def test_settings_choose_and_configure(tmp_path: Path) -> None:
    plugin(tmp_path / "a")
    plugin(tmp_path / "b", GOOD.replace('"subject"', '"other"'))
    settings = PluginSettings(disabled=("other",), config={"subject": {"option": "mine"}})
    (found,) = find_plugins(settings, tmp_path)
    assert found.name == "subject"
    assert found.config == {"option": "mine"}


@pytest.mark.parametrize(
    ("settings", "key", "problem"),
    [
        (PluginSettings(disabled=("subjekt",)), "plugins.disabled", "did you mean 'subject'"),
        (PluginSettings(config={"yara": {}}), "plugins.config.yara", "there is no plugin 'yara'"),
        (PluginSettings(config={"subject": {"opton": ""}}), "plugins.config.subject.opton", "it has option"),
    ],
)
def test_settings_of_what_is_not_there_are_refused(settings: PluginSettings, key: str, problem: str, tmp_path: Path) -> None:
    plugin(tmp_path / "a")
    with pytest.raises(ConfigError) as caught:
        find_plugins(settings, tmp_path, config_file="config.toml")
    assert (caught.value.path, caught.value.key) == ("config.toml", key)
    assert problem in caught.value.problem


def test_two_plugins_of_one_name_are_refused(tmp_path: Path) -> None:
    plugin(tmp_path / "a")
    plugin(tmp_path / "b")
    with pytest.raises(ManifestError, match="is also the name of"):
        find_plugins(PluginSettings(), tmp_path)


def test_plugins_of_several_folders_take_part_under_names_of_their_own(tmp_path: Path) -> None:
    plugin(tmp_path / "ours" / "a")
    plugin(tmp_path / "yours" / "b", GOOD.replace('"subject"', '"other"'))
    guest_plugin(tmp_path / "yours" / "c")
    places = (tmp_path / "ours", tmp_path / "yours", tmp_path / "nowhere")
    assert [found.name for found in find_plugins(PluginSettings(), *places)] == ["other", "subject"]
    assert [found.name for found in find_guest_plugins(PluginSettings(), *places)] == ["watcher"]
    all_of_them = PluginSettings(disabled=("subject", "other", "watcher"))
    assert find_plugins(all_of_them, *places) == find_guest_plugins(all_of_them, *places) == ()
    plugin(tmp_path / "yours" / "a")
    with pytest.raises(ManifestError, match=f"'subject' is also the name of {tmp_path}/ours/a") as caught:
        find_plugins(PluginSettings(), *places)
    assert str(caught.value).startswith(f"{tmp_path}/yours/a/plugin.toml: plugin.name: ")


def test_the_path_of_an_option_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no /nowhere"):
        find_plugins(PluginSettings(config={"yara-x": {"rules": "/nowhere"}}))
    with pytest.raises(ConfigError, match="must be an absolute path"):
        find_plugins(PluginSettings(config={"yara-x": {"rules": "rules"}}))
    with pytest.raises(ConfigError, match="no such home folder: '~nobody of that name/rules'"):
        find_plugins(PluginSettings(config={"yara-x": {"rules": "~nobody of that name/rules"}}))
    with pytest.raises(ConfigError, match="can't be looked at: File name too long"):
        find_plugins(PluginSettings(config={"yara-x": {"rules": f"/{'n' * 300}"}}))


def test_the_built_in_plugins_are_found() -> None:
    assert [found.name for found in find_plugins(PluginSettings())] == ["digests", "file-type", "yara-x"]


GUEST = """
[plugin]
name = "watcher"
version = "0.1.0"
type = "guest"
binary = "watcher.exe"
[runtime]
state = "ephemeral"
execution = "parallel"
[guest]
platforms = ["windows"]
"""

GUEST_FAULTS = {
    "an order among others": (('"parallel"', '"sequential"'), "runtime.execution", "use 'parallel'"),
    "a limit of its own": (
        ("[guest]", "analysis_timeout = 5\n[guest]"),
        "runtime.analysis_timeout",
        "as long as the sample does",
    ),
    "a filter": (("[guest]", 'log_filter = "debug"\n[guest]'), "runtime.log_filter", "not passed on"),
    "options": (("[guest]", '[config]\na = "b"\n[guest]'), "config", "its only argument"),
    "paths": (("[guest]", '[runtime.paths]\nlog_dir = "x"\n[guest]'), "runtime.paths", "not supported by this version"),
    "a platform that is no word": (("windows", "Win 10"), "guest.platforms", "regex"),
}


def guest_plugin(folder: Path, manifest: str = GUEST) -> Path:
    folder.mkdir(parents=True)
    (folder / "plugin.toml").write_text(manifest)
    (folder / "watcher.exe").write_bytes(b"MZ")
    return folder


def test_guest_plugins_are_found_apart_from_those_of_the_host(tmp_path: Path) -> None:
    plugin(tmp_path / "host")
    guest_plugin(tmp_path / "guest")
    settings = PluginSettings(max_results=3, max_result_bytes=1000)
    (found,) = find_guest_plugins(settings, tmp_path)
    assert (found.name, found.version, found.program) == ("watcher", "0.1.0", tmp_path / "guest" / "watcher.exe")
    assert (found.platforms, found.max_results, found.max_result_bytes) == (frozenset({"windows"}), 3, 1000)
    assert [host.name for host in find_plugins(settings, tmp_path)] == ["subject"]
    assert find_guest_plugins(PluginSettings(disabled=("watcher",)), tmp_path) == ()


def test_a_guest_plugin_without_platforms_is_for_all(tmp_path: Path) -> None:
    guest_plugin(tmp_path / "guest", GUEST.partition("[guest]")[0])
    (found,) = find_guest_plugins(PluginSettings(), tmp_path)
    assert found.platforms is None


@pytest.mark.parametrize(("change", "key", "problem"), GUEST_FAULTS.values(), ids=GUEST_FAULTS)
def test_what_a_guest_plugin_cannot_have_is_refused(tmp_path: Path, change: tuple[str, str], key: str, problem: str) -> None:
    folder = guest_plugin(tmp_path / "guest", GUEST.replace(*change))
    with pytest.raises(ManifestError) as caught:
        read_manifest(folder)
    assert (caught.value.key or "").startswith(key)
    assert problem in caught.value.problem
