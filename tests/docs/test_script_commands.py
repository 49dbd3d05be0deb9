"""The README's tables of the commands for scripts are those that there are, and what it prints works."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from malbox_tui.cli import engine_commands
from malbox_tui.cli.app import make_app
from malbox_tui.cli.selectors import Selector, parse_selector
from tests.cli.command_line import CommandLine

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
SECTION = README.split("### For scripts")[1].split("\n## ")[0]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line.startswith("| `")]
COMMANDS = {name: row for row in ROWS if len(row) == 4 for name in re.findall(r"`malbox-tui ([a-z]+)", row[0])}
SELECTORS = [text for row in ROWS if len(row) == 2 for text in re.findall(r"`([^`]+)`", row[0]) if not text.startswith("--")]
SHA_OF_A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
(EXAMPLES,) = re.findall(r"```sh\n(.*?)```", SECTION, re.S)


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def test_the_table_has_every_command() -> None:
    assert list(COMMANDS) == [command.__name__ for command in engine_commands.COMMANDS]
    assert set(COMMANDS) <= set(make_app())


@pytest.mark.parametrize("text", SELECTORS)
def test_a_selector_of_the_table_is_one(text: str) -> None:
    selector: Selector = parse_selector(text)
    assert selector


def test_what_works_at_rest_is_what_the_table_says(malbox: CommandLine) -> None:
    malbox.submit("a", "b")
    arguments = {
        "cancel": [1],
        "retry": [1],
        "priority": [3, 2],
        "profile": ["auto", 2],
        "change": ["--timeout", 20, 2],
        "resize": ["--max", 2],
        "submit": [malbox.sample("c")],
        "sample": [SHA_OF_A],
    }
    worked = {name for name in COMMANDS if malbox(name, *arguments.get(name, ())).code == 0}
    assert worked == {name for name, row in COMMANDS.items() if row[2] != "no"}


def test_what_is_printed_as_json_is_what_the_table_says(malbox: CommandLine) -> None:
    malbox.submit("a", "b")
    arguments = {
        "cancel": [1],
        "retry": [1],
        "priority": [3, 2],
        "profile": ["auto", 2],
        "change": ["--timeout", 20, 2],
        "submit": [malbox.sample("c")],
        "sample": [SHA_OF_A],
    }
    for name, row in COMMANDS.items():
        if row[2] != "no":
            said = malbox(name, *arguments.get(name, ()), "--json")
            kinds = {json.loads(line)["record"] for line in said.out.splitlines()}
            assert kinds, name
            assert kinds <= set(re.findall(r"`([a-z]+)`", row[3])), name


@pytest.mark.parametrize("line", EXAMPLES.splitlines())
def test_the_examples_are_understood(line: str) -> None:
    app = make_app()
    program, *words = shlex.split(line)
    assert program == "malbox-tui"
    command, bound, unused, _ = app.parse_known_args(words)
    assert (command.__name__, unused) == (words[0], [])
    assert bound is not None
