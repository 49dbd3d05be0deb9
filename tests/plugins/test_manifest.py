"""Manifests: every field is known, wrong ones are named with file and key, and nothing is accepted and then ignored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.errors import ConfigError, ManifestError
from malbox_tui.model.plan import Execution, PlannedPlugin
from malbox_tui.plugins.entry import entry_of
from malbox_tui.plugins.log_filter import level_of
from malbox_tui.plugins.manifest import Manifest
from malbox_tui.plugins.manifest_rules import read_manifest
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
state = "scoped"
execution = "parallel"
log_filter = "debug"
analysis_timeout = 60
[results.report]
description = "The report"
user_visible = true
display_name = "Report"
render = "json"
[events]
subscribe = ["other"]
[events.filters.PluginResultAvailable]
from_plugins = ["other"]
[scope]
plugins = ["friend"]
task_types = ["static"]
[config]
option = "default"
[sandbox]
paths = ["option"]
[plan]
needs = ["unpacked"]
gives = ["report"]
kinds = ["pe"]
"""

FAULTS = {
    "a key with a slip": (("version =", "verson ="), "plugin.verson", "did you mean 'version'"),
    "an unknown table": (("[events]", "[event]"), "event", "did you mean 'events'"),
    "an unknown key of a result": (("render =", "rendr ="), "results.report.rendr", "did you mean 'render'"),
    "a missing name": (('name = "subject"\n', ""), "plugin.name", "is missing"),
    "a missing version": (('version = "0.1.0"\n', ""), "plugin.version", "is missing"),
    "a missing type": (('type = "host"\n', ""), "plugin.type", "is missing"),
    "a missing state": (('state = "scoped"\n', ""), "runtime.state", "is missing"),
    "a missing execution": (('execution = "parallel"\n', ""), "runtime.execution", "is missing"),
    "a version that is none": (("0.1.0", "one"), "plugin.version", "must be a version of three numbers, such as 0.1.0"),
    "a version with a zero in front": (("0.1.0", "0.01.0"), "plugin.version", "must be a version"),
    "a version as a number": (('"0.1.0"', "1.0"), "plugin.version", "expected `str`"),
    "a name with a slash": (('"subject"', '"a/b"'), "plugin.name", "must be 1 to 64 letters, digits, - and _"),
    "a name of nothing": (('"subject"', '""'), "plugin.name", "must be 1 to 64 letters, digits, - and _"),
    "a name with a line break": (('"subject"', '"subject\\n"'), "plugin.name", "must be 1 to 64 letters"),
    "a name that leads out": (('"subject"', '".."'), "plugin.name", "must be 1 to 64 letters"),
    "a name that acts on terminals": (('"subject"', '"\\u001b[31m"'), "plugin.name", "must be 1 to 64 letters"),
    "a version with a line break": (('"0.1.0"', '"0.1.0\\n"'), "plugin.version", "must be a version"),
    "the name of the run in a guest": (('"subject"', '"guest-run"'), "plugin.name", "is the engine's own"),
    "a long description": (('"A plugin"', f'"{"x" * 1001}"'), "plugin.description", "length <= 1000"),
    "authors as text": (('["Somebody"]', '"Somebody"'), "plugin.authors", "expected `array`"),
    "a binary that is a list": (('"main.py"', '["main.py"]'), "plugin.binary", "expected `str | null`"),
    "a type of later": (('type = "host"', 'type = "kernel"'), "plugin.type", "it is one of host, guest"),
    "a state of guests": (('"host"', '"guest"'), "runtime.state", "each run begins it anew; use 'ephemeral'"),
    "an unknown state": (('"scoped"', '"eternal"'), "runtime.state", "one of persistent, ephemeral, scoped"),
    "a state's former name": (('"scoped"', '"context-aware"'), "runtime.state", "it is 'scoped' now"),
    "an unknown execution": (('"parallel"', '"both"'), "runtime.execution", "exclusive, sequential, parallel, unrestricted"),
    "a wrong type": (("analysis_timeout = 60", 'analysis_timeout = "long"'), "runtime.analysis_timeout", "expected `int"),
    "a timeout of nothing": (("analysis_timeout = 60", "analysis_timeout = 0"), "runtime.analysis_timeout", ">= 1"),
    "a filter that is none": (('"debug"', '"loud"'), "runtime.log_filter", "is no directive"),
    "a filter of spans": (('"debug"', '"[run]=info"'), "runtime.log_filter", "about spans"),
    "a filter of no level": (('"debug"', '"subject=loud"'), "runtime.log_filter", "is no level"),
    "a port": (("[results", "port = 50051\n[results"), "runtime.port", "belongs to guest plugins"),
    "a port of the system": (("[results", "port = 80\n[results"), "runtime.port", ">= 1024"),
    "paths": (("[results", '[runtime.paths]\nlog_dir = "/x"\n[results'), "runtime.paths", "belongs to guest plugins"),
    "a stash": (("[results", "[runtime.stash]\nttl_secs = 5\n[results"), "runtime.stash", "belongs to guest plugins"),
    "a small stash": (("[results", "[runtime.stash]\nthreshold_bytes = 5\n[results"), "runtime.stash.threshold_bytes", ">= 4096"),
    "collecting": (
        ("[results", "[runtime.auto_collect.artifacts]\nenabled = true\n[results"),
        "runtime.auto_collect",
        "belongs to guest plugins",
    ),
    "collecting with a slip": (
        ("[results", "[runtime.auto_collect.artifact]\n[results"),
        "runtime.auto_collect.artifact",
        "did you mean 'artifacts'",
    ),
    "a result with a path for a name": (("[plan]", '[results."../x"]\n[plan]'), "results.'../x'", "is not a plain file name"),
    "a description that is none": (('"The report"', "1"), "results.report.description", "expected `str`"),
    "half visible": (("user_visible = true", 'user_visible = "yes"'), "results.report.user_visible", "expected `bool`"),
    "a display name that is none": (('"Report"', "1"), "results.report.display_name", "expected `str | null`"),
    "a render that is none": (('render = "json"', "render = 1"), "results.report.render", "expected `str | null`"),
    "a subscription as text": (('subscribe = ["other"]', 'subscribe = "other"'), "events.subscribe", "expected `array`"),
    "a filter of an unknown event": (
        ("filters.PluginResultAvailable", "filters.ResultAvailable"),
        "events.filters.ResultAvailable",
        "did you mean PluginResultAvailable",
    ),
    "an event from text": (
        ('from_plugins = ["other"]', 'from_plugins = "other"'),
        "events.filters.PluginResultAvailable.from_plugins",
        "expected `array`",
    ),
    "a scope of nothing": (
        ('plugins = ["friend"]\ntask_types = ["static"]', ""),
        "scope",
        "names neither plugins nor task_types",
    ),
    "a scope with itself": (('["friend"]', '["subject"]'), "scope.plugins", "names the plugin itself"),
    "types of tasks as text": (('task_types = ["static"]', 'task_types = "static"'), "scope.task_types", "expected `array`"),
    "no scope": (('[scope]\nplugins = ["friend"]\ntask_types = ["static"]\n', ""), "scope", "is missing"),
    "a scope of a persistent one": (('"scoped"', '"persistent"'), "scope", "belongs to the state 'scoped'"),
    "an option that is a number": (('option = "default"', "option = 1"), "config.option", "expected `str`"),
    "a path that is no option": (('paths = ["option"]', 'paths = ["rules"]'), "sandbox.paths", "'rules' is not a key"),
    "a need that is a path": (('"unpacked"', '"../unpacked"'), "plan.needs[0]", "must be the name of a result"),
    "a need with a line break": (('"unpacked"', '"unpacked\\n"'), "plan.needs[0]", "must be the name of a result"),
    "a kind with a line break": (('["pe"]', '["pe\\n"]'), "plan.kinds[0]", "must be a kind"),
    "a result whose name has a line break": (
        ("[plan]", '[results."a\\nb"]\n[plan]'),
        "results.'a\\nb'",
        "is not a plain file name",
    ),
    "a need twice": (('["unpacked"]', '["unpacked", "unpacked"]'), "plan.needs", "twice"),
    "a gift that is no result": (('gives = ["report"]', 'gives = ["strings"]'), "plan.gives", "add [results.strings]"),
    "a kind in capitals": (('["pe"]', '["PE"]'), "plan.kinds[0]", "must be a kind in small letters"),
    "platforms of a host plugin": (("[config]", '[guest]\nplatforms = ["linux"]\n[config]'), "guest", "belongs to guest plugins"),
}


PLAIN = """
[plugin]
name = "subject"
version = "0.1.0"
type = "host"
binary = "main.py"
[runtime]
state = "persistent"
execution = "parallel"
[config]
option = "default"
"""


def plugin(folder: Path, manifest: str = PLAIN) -> Path:
    folder.mkdir(parents=True)
    (folder / "plugin.toml").write_text(manifest)
    (folder / "main.py").write_text("")
    return folder


def test_every_field_of_a_good_manifest_is_read(tmp_path: Path) -> None:
    manifest = read_manifest(plugin(tmp_path / "p", GOOD))
    assert manifest.plugin.name == "subject"
    assert manifest.runtime.execution is Execution.PARALLEL
    assert manifest.runtime.analysis_timeout == 60
    assert manifest.results["report"].display_name == "Report"
    assert manifest.config == {"option": "default"}
    assert manifest.events.filters["PluginResultAvailable"].from_plugins == ("other",)
    assert manifest.scope is not None
    assert (manifest.scope.plugins, manifest.scope.task_types) == (("friend",), ("static",))
    assert manifest.planned == PlannedPlugin(name="subject", needs=("unpacked",), gives=("report",), kinds=("pe",))


def keys_of(struct: type[msgspec.Struct], where: str = "") -> Iterator[str]:
    """The keys of a manifest as faults name them, names that the author chooses left out."""
    for field in msgspec.structs.fields(struct):
        inner = [
            part for part in (field.type, *get_args(field.type)) if isinstance(part, type) and issubclass(part, msgspec.Struct)
        ]
        yield from keys_of(inner[0], f"{where}{field.name}.") if inner else (f"{where}{field.name}",)


def test_each_field_is_wrong_in_one_of_these_manifests() -> None:
    """Of the tables that only guest plugins have, the table alone is refused."""
    named = {key.split("[")[0] for _change, key, _problem in (*FAULTS.values(), *GUEST_FAULTS.values())}
    tables = ("runtime.paths", "runtime.stash", "runtime.auto_collect", "guest")
    for key in keys_of(Manifest):
        key = key.replace("results.", "results.report.").replace(
            "filters.from_plugins", "filters.PluginResultAvailable.from_plugins"
        )
        assert key in named or any(key.startswith(table) and table in named for table in tables), key


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


@pytest.mark.parametrize("what", ["a pipe", "a folder", "a device", "a link to itself"])
def test_a_manifest_that_is_no_file_is_refused_at_once(what: str, tmp_path: Path) -> None:
    path = tmp_path / "p" / "plugin.toml"
    path.parent.mkdir()
    match what:
        case "a pipe":
            os.mkfifo(path)
        case "a folder":
            path.mkdir()
        case "a device":
            path.symlink_to("/dev/zero")
        case _:
            path.symlink_to(path)
    with pytest.raises(ManifestError, match=r"is no file|can't be read"):
        read_manifest(path.parent)


@pytest.mark.parametrize("content", [b"[plugin", b"\xff\xfe", b"x" * 300_000, b"[" * 10_000])
def test_what_is_no_manifest_is_refused(content: bytes, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "p")
    (folder / "plugin.toml").write_bytes(content)
    with pytest.raises(ManifestError):
        read_manifest(folder)


@pytest.mark.parametrize(
    ("binary", "problem"),
    [
        ("../main.py", "name of a file in"),
        ("..", "name of a file in"),
        ("other.py", "there is no file 'other.py'"),
        ("plain", "is not a Python script: call it .py, or let it begin with #!/usr/bin/env python3"),
        ("elf", "is a native program"),
        ("shell", "is a script for another interpreter"),
        ("no-run-bit", "is a script without the right to be run: chmod \\+x it"),
        ("folder.py", "there is no file"),
        ("dangling.py", "there is no file"),
        ("fifo.py", "there is no file"),
    ],
)
def test_an_entry_that_can_not_run_is_refused(binary: str, problem: str, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "p", GOOD.replace('"main.py"', f'"{binary}"'))
    (folder / "plain").write_text("print()")
    (folder / "elf").write_bytes(b"\x7fELF\2\1")
    (folder / "shell").write_text("#!/bin/sh\n")
    (folder / "no-run-bit").write_text("#!/usr/bin/env python3\n")
    (folder / "folder.py").mkdir()
    (folder / "dangling.py").symlink_to("nowhere")
    os.mkfifo(folder / "fifo.py")
    with pytest.raises(ManifestError, match=problem):
        entry_of(folder, read_manifest(folder))


@pytest.mark.parametrize("shebang", ["#!/usr/bin/env python3", "#!/opt/venv/bin/python3.12 -u", "#! /usr/bin/env -S python3 -u"])
def test_a_script_for_python_needs_no_suffix_if_it_may_be_run(shebang: str, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "tool", GOOD.replace('binary = "main.py"\n', ""))
    (folder / "tool").write_text(f"{shebang}\n")
    (folder / "tool").chmod(0o755)
    assert entry_of(folder, read_manifest(folder)) == "tool"


@pytest.mark.parametrize(
    ("log_filter", "level"),
    [
        ("", "info"),
        ("debug", "debug"),
        ("WARN", "warn"),
        ("off", "off"),
        ("info,hyper=warn", "info"),
        ("hyper=warn", "error"),
        ("info,a_plugin=trace", "trace"),
        ("info, a-plugin=debug", "debug"),
        ("warn,malbox_plugin_sdk", "trace"),
        ("a-plugin", "trace"),
        ("warn,other::inner=trace", "warn"),
    ],
)
def test_the_level_of_a_plugin_is_that_of_the_directive_about_it(log_filter: str, level: str) -> None:
    assert level_of(log_filter, "a-plugin") == level


def test_settings_choose_and_configure(tmp_path: Path) -> None:
    plugin(tmp_path / "a")
    plugin(tmp_path / "b", PLAIN.replace('"subject"', '"other"'))
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
    plugin(tmp_path / "yours" / "b", PLAIN.replace('"subject"', '"other"'))
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
    assert [found.name for found in find_plugins(PluginSettings())] == ["digests", "file-type", "strings", "yara-x"]


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
    "a platform that is no word": (("windows", "Win 10"), "guest.platforms", "must be a platform in small letters"),
    "a subscription": (("[guest]", '[events]\nsubscribe = ["x"]\n[guest]'), "events", "no event reaches a guest"),
    "a need": (("[guest]", '[plan]\nneeds = ["x"]\n[guest]'), "plan.needs", "belongs to host plugins"),
    "a scope": (("[guest]", '[scope]\nplugins = ["x"]\n[guest]'), "scope", "belongs to host plugins"),
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
