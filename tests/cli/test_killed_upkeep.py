"""A process that is killed while it removes something: the next engine finishes it, and nothing else is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.store.builders import CHECKOUT
from tests.support.filled import carts_in, filled, results_in, sha256_of

NAMES = ("one", "two", "three", "four")

KILLS = {
    "before it is forgotten": "from malbox_tui.store import upkeep_book\nupkeep_book._Removals.remove_sample = die",
    "before its results go": "from malbox_tui.store import results\nresults.FileResultStore.remove = die",
    "before its content goes": "from malbox_tui.store import quarantine\nquarantine.CartQuarantine.remove = die",
    "before it is told to be over": "from malbox_tui.store import upkeep_book\nupkeep_book._Removals.close_removal = die",
}
DIE = """
import os, signal, sys
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
{patch}
from malbox_tui.cli.app import main
main(sys.argv[1:])
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    line = CommandLine(tmp_path, capsys)
    filled(line.data, *NAMES)
    return line


def killed(malbox: CommandLine, patch: str, *words: str) -> None:
    command = [sys.executable, "-c", DIE.format(patch=patch), "--data-dir", str(malbox.data), *words]
    assert subprocess.run(command, cwd=CHECKOUT, check=False, capture_output=True).returncode == -signal.SIGKILL


@pytest.mark.parametrize("moment", KILLS)
def test_a_purge_that_was_killed_is_whole_or_was_none(malbox: CommandLine, moment: str) -> None:
    killed(malbox, KILLS[moment], "sample", "purge", sha256_of("two"), "--yes")
    forgotten = moment != "before it is forgotten"
    left = {1, 3, 4} if forgotten else {1, 2, 3, 4}
    assert set(malbox.states()) == left
    assert malbox("doctor", "--store").code == 0, "what is still to be removed is no orphan"
    assert malbox("analyze").code == 0
    assert results_in(malbox.data) == left
    assert carts_in(malbox.data) == {sha256_of(NAMES[number - 1]) for number in left}
    assert malbox("stats", "--json").records[0]["store"]["removing"] == 0
    assert malbox("doctor", "--store").code == 0


@pytest.mark.parametrize("moment", ["before its results go", "before its content goes"])
def test_a_sweep_that_was_killed_is_finished_by_the_next_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], moment: str
) -> None:
    malbox = CommandLine(tmp_path, capsys)
    filled(malbox.data, *NAMES, at=1.7e9)
    (malbox.data / "config.toml").write_text("[retention]\nsample_days = 30\n")
    killed(malbox, KILLS[moment], "analyze", str(malbox.sample("new")))
    assert {2, 3, 4} <= set(malbox.states())
    assert 1 not in malbox.states()
    assert sha256_of("one") in carts_in(malbox.data)
    (malbox.data / "config.toml").write_text("")
    assert malbox("analyze").code == 0
    assert {2, 3, 4} <= results_in(malbox.data)
    assert 1 not in results_in(malbox.data)
    assert carts_in(malbox.data) - {sha256_of("new")} == {sha256_of(name) for name in ("two", "three", "four")}
