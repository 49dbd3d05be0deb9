"""What the README says to type exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from malbox_tui.cli.app import make_app
from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.settings import AnalysisSettings, PluginSettings
from malbox_tui.config.template import template
from malbox_tui.config.watching import Afterwards
from malbox_tui.intake.watching.looking import PARTIAL_SUFFIXES
from malbox_tui.model.task import EndedBy
from malbox_tui.plugins.registry import find_plugins

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()

MAKE_TARGETS = sorted(set(re.findall(r"\bmake ([a-z][a-z-]*)", README)))
COMMAND_LINES = sorted(
    set(re.findall(r"\bmalbox-tui ((?:-|[a-z])[^`\n#|]*)", "\n".join(re.findall(r"```.*?```|`[^`\n]+`", README, re.S))))
)
SAID = sorted(
    {
        line
        for path in (ROOT / "malbox_tui").rglob("*.py")
        for line in re.findall(r"`malbox-tui ((?:[a-z]+ ?)+)", path.read_text())
    }
)
LINKS = sorted({link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link})


@pytest.mark.parametrize("target", MAKE_TARGETS)
def test_a_make_target_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_command_and_its_options_are_there(line: str) -> None:
    app = make_app()
    words = [word for word in line.split() if re.match(r"^[-a-z]", word)]
    chain, command, _ = app.parse_commands([word for word in words if not word.startswith("-")])
    assert chain or words[0] in ("--version", "--help"), f"no such command: malbox-tui {line}"
    known = {name for argument in command[-1].assemble_argument_collection() for name in argument.names}
    asked = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--", "--version", "--help"}
    assert asked <= known


@pytest.mark.parametrize("line", SAID)
def test_a_command_that_help_or_a_message_names_is_there(line: str) -> None:
    first, *_ = line.split()
    assert first in [name for name in make_app() if not name.startswith("-")]


def test_linked_files_are_there() -> None:
    assert [link for link in LINKS if not (ROOT / link).exists()] == []


def test_files_named_in_the_walk_of_a_sample_are_there() -> None:
    named = re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py|/))`", README)
    assert named
    assert [path for path in named if not (ROOT / path).exists() and not (ROOT / "malbox_tui" / path).exists()] == []


def test_the_two_commands_of_a_newcomer_are_named() -> None:
    assert {"run", "test"} <= set(MAKE_TARGETS)


def test_every_command_is_in_the_readme() -> None:
    commands = [name for name in make_app() if not name.startswith("-")]
    assert [name for name in commands if f"malbox-tui {name}" not in README] == []


def test_the_configuration_template_knows_the_options_of_the_built_in_plugins() -> None:
    text = "\n".join(line.removeprefix("#") for line in template().splitlines() if not line.startswith("# "))
    plugins = find_plugins(PluginSettings())
    with_options = {plugin.name: plugin.config.keys() for plugin in plugins if plugin.config}
    assert {name: options.keys() for name, options in tomllib.loads(text)["plugins"]["config"].items()} == with_options


def test_the_time_limits_are_those_of_the_configuration() -> None:
    told = {key: float(default) for key, default in re.findall(r"^\| `(\w+_s)` \| ([\d.]+) s \|", README, re.M)}
    assert told == {key: getattr(AnalysisSettings(), key) for key in told}
    assert {key for key in AnalysisSettings.__struct_fields__ if key.endswith("timeout_s")} <= told.keys()


def test_the_ends_by_a_time_limit_are_named() -> None:
    assert set(re.findall(r"`(\w+_timeout)`", README)) - {"enforce_timeout"} == {
        EndedBy.ANALYSIS_TIMEOUT,
        EndedBy.CRITICAL_TIMEOUT,
        EndedBy.STAGE_TIMEOUT,
    }


def test_the_configuration_in_the_readme_is_one(tmp_path: Path) -> None:
    example, *_ = re.findall(r"```toml\n(.*?)```", README, re.S)
    (tmp_path / "config.toml").write_text(example.replace("/srv/rules", str(tmp_path)))
    source = ConfigSource(tmp_path / "config.toml", named=True)
    assert {plugin.name for plugin in find_plugins(source.load().plugins)} == {"file-type", "strings", "yara-x"}


def test_the_watched_folder_in_the_readme_is_one(tmp_path: Path) -> None:
    _, example, *_ = re.findall(r"```toml\n(.*?)```", README, re.S)
    (tmp_path / "config.toml").write_text(example)
    (watch,) = ConfigSource(tmp_path / "config.toml", named=True).load().watch
    assert (watch.path, watch.afterwards, watch.settle_s) == ("/srv/incoming", Afterwards.MOVE, 5.0)


def test_the_partial_downloads_are_those_that_wait() -> None:
    (told,) = re.findall(r"partial downloads \((.*?)\) wait", README, re.S)
    assert re.findall(r"`([^`]+)`", told) == [suffix.decode() for suffix in PARTIAL_SUFFIXES]
