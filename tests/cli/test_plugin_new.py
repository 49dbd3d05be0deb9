"""`malbox-tui plugin new`: what it makes runs as it is made."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from malbox_tui.cli.plugin_new import FILES
from tests.cli.command_line import CommandLine


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.mark.slow
def test_a_plugin_runs_as_it_was_made(malbox: CommandLine) -> None:
    said = malbox("plugin", "new", "my-first")
    folder = malbox.data / "plugins" / "my-first"
    assert (said.code, said.out.splitlines()[0]) == (0, f"Made {folder}: plugin.toml, main.py.")
    assert malbox("plugin", "check", folder).code == 0
    assert "my-first" in malbox("plugin", "list").out
    zeros = malbox.sample("zeros", "\0" * 500)
    assert malbox("analyze", zeros, malbox.sample("text", "hello")).code == 0
    tasks = {task["sample"]["names"][0]: task for task in malbox("tasks", "--json").records}
    runs = {name: next(run for run in task["plugins"] if run["name"] == "my-first") for name, task in tasks.items()}
    assert {name: run["status"] for name, run in runs.items()} == {"zeros": "completed", "text": "completed"}
    assert runs["zeros"]["verdict"]["labels"] == ["mostly-zeros"]
    assert runs["text"]["verdict"] is None
    assert "500 of 500 bytes are zero" in malbox("report", tasks["zeros"]["id"], "--as", "json").out


def test_it_is_made_where_it_is_asked_for(malbox: CommandLine, tmp_path: Path) -> None:
    said = malbox("plugin", "new", "other", "--into", tmp_path / "mine" / "plugins")
    assert said.code == 0
    made = tmp_path / "mine" / "plugins" / "other"
    assert sorted(path.name for path in made.iterdir()) == sorted(FILES)
    assert stat.S_IMODE((made / "main.py").stat().st_mode) & 0o111
    assert "NAME" not in (made / "plugin.toml").read_text() + (made / "main.py").read_text()
    assert not malbox.data.exists(), "nothing else was made"


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "..", "é", "x" * 65, "a\x1b", "NAME\n"])
def test_what_cant_be_a_name_is_refused(malbox: CommandLine, tmp_path: Path, name: str) -> None:
    said = malbox("plugin", "new", "--into", tmp_path / "made", "--", name)
    assert (said.code, said.out) == (2, "")
    assert said.err.replace("\n", "").isprintable()
    assert not (tmp_path / "made").exists()


def test_a_name_that_is_taken_is_refused(malbox: CommandLine, tmp_path: Path) -> None:
    assert "guest-run is the engine's own" in malbox("plugin", "new", "guest-run", "--into", tmp_path / "made").err
    assert "There is a plugin digests already" in malbox("plugin", "new", "digests", "--into", tmp_path / "made").err
    (tmp_path / "made" / "mine").mkdir(parents=True)
    (tmp_path / "made" / "mine" / "kept").write_text("x")
    said = malbox("plugin", "new", "mine", "--into", tmp_path / "made")
    assert (said.code, "it was left as it was" in said.err) == (2, True)
    assert [path.name for path in (tmp_path / "made" / "mine").iterdir()] == ["kept"]


def test_where_nothing_can_be_made_nothing_is_left(malbox: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    said = malbox("plugin", "new", "mine", "--into", tmp_path / "file")
    assert said.code == 2
    os.mkfifo(tmp_path / "pipe")
    assert malbox("plugin", "new", "mine", "--into", tmp_path / "pipe" / "deeper").code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe", "samples"]
