"""Machines of the configuration, as `config check` and `config show` tell of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.loading import ConfigSource
from tests.cli.command_line import CommandLine

MACHINE = '[[machines]]\nprovider = "libvirt"\nplatform = "linux"\nuri = "qemu:///system"\nsnapshot = "clean"\n'
TWICE = f'{MACHINE}name = "a"\n{MACHINE}name = "b"\ndomain = "a"\n'


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    malbox = CommandLine(tmp_path, capsys)
    malbox.data.mkdir()
    (malbox.data / "config.toml").write_text(TWICE)
    return malbox


def test_a_machine_that_is_there_twice_is_a_fault_for_who_checks(malbox: CommandLine) -> None:
    said = malbox("config", "check")
    assert said.code == 2
    assert "machines[1].domain: machine b: a is the domain a at qemu:///system already." in said.err
    assert "config.toml: 1 fault." in said.err


def test_and_what_is_in_effect_is_shown_all_the_same_with_a_word_on_it(malbox: CommandLine) -> None:
    said = malbox("config", "show")
    assert said.code == 0
    assert "# " in said.out
    assert "machine b: a is the domain a at qemu:///system already" in said.out
    (malbox.data / "shown.toml").write_text(said.out)
    shown = ConfigSource(malbox.data / "shown.toml", named=True).load()
    assert shown == ConfigSource(malbox.data / "config.toml", named=True).load()


def test_machines_that_were_changed_while_the_engine_ran_are_said(malbox: CommandLine) -> None:
    (malbox.data / "config.machines.toml").write_text(f'removed = ["b"]\n{MACHINE}name = "c"\n')
    shown = malbox("config", "show").out
    assert "# Machine c was added while malbox-tui ran: " in shown
    assert "# Machine b is left out: it was removed while malbox-tui ran" in shown
    assert malbox("config", "check").code == 0
