"""`machines discover`: what it prints can be put into the configuration as it is."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from malbox_tui.config.loading import ConfigSource
from malbox_tui.runtime import machine_discovery
from tests.cli.command_line import CommandLine
from tests.support.mock_hypervisor import AGENT, MockDomain, card, mock_hypervisor

pytestmark = pytest.mark.needs("libvirt")


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def configured(malbox: CommandLine, text: str) -> list[tuple[str, str, str]]:
    """(name, domain, snapshot) of the machines that a configuration with this text has."""
    malbox.data.mkdir(exist_ok=True)
    (malbox.data / "config.toml").write_text(text)
    machines = ConfigSource(malbox.data / "config.toml", named=True).load().machines
    return [(machine.name, machine.spec().domain_name, machine.snapshot or "") for machine in machines]


def test_what_is_proposed_is_a_configuration(malbox: CommandLine, tmp_path: Path) -> None:
    uri = mock_hypervisor(tmp_path, MockDomain("lin-1"), MockDomain("Windows 10 (clean)", snapshots=(("fresh", "running"),)))
    said = malbox("machines", "discover", uri)
    assert said.code == 0
    text = said.out.replace("#platform", "platform")
    assert configured(malbox, text) == [
        ("Windows-10-clean", "Windows 10 (clean)", "fresh"),
        ("lin-1", "lin-1", "clean"),
    ]


def test_what_is_configured_already_is_said_and_not_proposed_again(malbox: CommandLine, tmp_path: Path) -> None:
    uri = mock_hypervisor(tmp_path, MockDomain("lin-1"), MockDomain("lin-2"))
    head = '[[machines]]\nname = "lin-2"\nprovider = "libvirt"\n'
    machine = f'{head}platform = "linux"\nuri = "{uri}"\ndomain = "lin-1"\nsnapshot = "s"\n'
    configured(malbox, machine)
    said = malbox("machines", "discover", uri).out
    assert f"# {uri}: 2 machines, 1 of them configured already." in said
    assert "# lin-1 is configured already, as lin-2." in said
    names = [name for name, _, _ in configured(malbox, machine + said.replace("#platform", "platform"))]
    assert names == ["lin-2", "lin-2-2"]


def test_what_a_machine_lacks_stands_above_its_section(malbox: CommandLine, tmp_path: Path) -> None:
    bare = MockDomain("bare", card("52:54:00:00:00:01", kind="user"), snapshots=(("old", "shutoff"),))
    said = malbox("machines", "discover", mock_hypervisor(tmp_path, bare)).out
    remarks = [line for line in said.partition("[[machines]]")[0].splitlines()[1:] if line]
    assert all(line.startswith("# ") for line in remarks)
    told = "\n".join(remarks)
    assert "no channel to a guest agent" in told
    assert "There is no snapshot of it running: start the guest" in told
    assert "samples reach what listens on this host's loopback" in told
    assert '#snapshot = "clean"' in said


def test_each_machine_is_a_record(malbox: CommandLine, tmp_path: Path) -> None:
    uri = mock_hypervisor(tmp_path, MockDomain("lin-1", AGENT + card("52:54:00:00:00:01")))
    (record,) = malbox("machines", "discover", uri, "--json").records
    assert (record["record"], record["configured_as"], record["state"]) == ("proposal", None, "off")
    assert record["machine"]["uri"] == uri
    assert record["macs"] == ["52:54:00:00:00:01"]


@pytest.mark.parametrize("uri", ["nonsense", "test:///there/is/none.xml", "qemu+unix:///session?socket=/there/is/none"])
def test_a_hypervisor_that_can_not_be_asked_is_told_in_words(malbox: CommandLine, uri: str) -> None:
    said = malbox("machines", "discover", uri)
    assert (said.code, said.out) == (2, "")
    assert uri in said.err
    assert "Traceback" not in said.err


def test_a_hypervisor_that_hangs_is_given_up(malbox: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_discovery, "LIMIT_S", 0.2)
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as frozen:
        frozen.bind("s")
        frozen.listen()
        said = malbox("machines", "discover", f"qemu+unix:///session?socket={tmp_path}/s")
    assert said.code == 2
    assert "does not answer within 0.2 s. Start libvirt there anew" in said.err


def test_the_other_commands_on_machines_are_as_they_were(malbox: CommandLine) -> None:
    assert "No engine is served in" in malbox("machines").err
    assert "Say which machines" in malbox("machines", "disable").err
