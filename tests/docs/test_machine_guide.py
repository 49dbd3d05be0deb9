"""What the README says of machines: its XML is libvirt's, its sections are a configuration, and what it quotes is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.machines import MachinerySettings, MachineSettings
from malbox_tui.config.settings import PluginSettings
from malbox_tui.engine import guest_end, guest_screen
from malbox_tui.guest.linux import Linux
from malbox_tui.guest.session import NEEDED, PROCESSES
from malbox_tui.machinery.binding import libvirt_module, start_event_loop
from malbox_tui.machinery.domain_xml import parse_domain
from malbox_tui.machinery.warnings import warnings_of
from malbox_tui.plugins.registry import find_guest_plugins

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "README.md").read_text().split("\n## Machines\n")[1].split("\n## ")[0]
NETWORK, DOMAIN = re.findall(r"```xml\n(.*?)```", GUIDE, re.S)
*SECTIONS, PLUGIN = re.findall(r"```toml\n(.*?)```", GUIDE, re.S)
SAID = re.findall(r"^\| `([^`]+)` \| ", GUIDE.split("### When a machine does not work")[1].split("###")[0], re.M)
SOURCE = "\n".join(path.read_text() for path in (ROOT / "malbox_tui").rglob("*.py"))


@pytest.fixture
def section(tmp_path: Path) -> MachineSettings:
    (tmp_path / "config.toml").write_text("\n".join(SECTIONS))
    (machine,) = ConfigSource(tmp_path / "config.toml", named=True).load().machines
    return machine


@pytest.mark.needs("libvirt")
def test_the_network_and_the_domain_are_what_libvirt_takes() -> None:
    start_event_loop()
    libvirt = libvirt_module()
    connection = libvirt.open("test:///default")
    network = connection.networkDefineXMLFlags(NETWORK, libvirt.VIR_NETWORK_DEFINE_VALIDATE)
    domain = connection.defineXMLFlags(DOMAIN, libvirt.VIR_DOMAIN_DEFINE_VALIDATE)
    try:
        assert (network.name(), domain.name()) == ("detonation", "linux-1")
    finally:
        domain.undefine()
        network.undefine()
        connection.close()


def test_the_manifest_of_a_guest_plugin_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "watcher"
    folder.mkdir()
    (folder / "plugin.toml").write_text(PLUGIN)
    (folder / "watcher.sh").write_text("#!/bin/sh\n")
    (found,) = find_guest_plugins(PluginSettings(), tmp_path)
    assert (found.name, found.program, found.platforms) == ("watcher", folder / "watcher.sh", frozenset({"linux"}))


def test_the_network_leads_nowhere_and_the_domain_is_on_it() -> None:
    assert "<forward" not in NETWORK
    (card,) = parse_domain(DOMAIN).cards
    assert "detonation" in card.xml


def test_the_domain_has_what_a_machine_needs_and_nothing_that_is_warned_of() -> None:
    shape = parse_domain(DOMAIN)
    assert shape.has_agent_channel
    assert [disk.format for disk in shape.disks] == ["qcow2"]
    assert warnings_of(shape) == ()


def test_the_section_is_a_configuration_for_that_domain(section: MachineSettings) -> None:
    assert (section.spec().domain_name, section.snapshot, section.platform) == ("linux-1", "clean", "linux")


def test_the_defaults_in_the_section_are_the_defaults() -> None:
    told = dict(re.findall(r"^ *# (\w+) = (\S+)", "\n".join(SECTIONS), re.M))
    assert told == {
        "folder": f'"{Linux.folder}"',
        "disk_folder": f'"{Linux.disk_folder}"',
        "watch": f'["{Linux.folder}"]',
    }


def test_the_commands_that_an_agent_must_allow_are_named() -> None:
    for command in NEEDED:
        assert re.search(rf"`({command}|-{command.rpartition('-')[2]})`", GUIDE), command


@pytest.mark.parametrize("words", SAID)
def test_what_the_product_is_said_to_say_it_says(words: str) -> None:
    assert words in SOURCE


def test_the_bounds_of_a_run_are_those_of_the_engine() -> None:
    kept, bounds = MachinerySettings(), dict(re.findall(r"^\| `([a-z]+)[^|]*\| [^|]+ \| ([^|]+) \|$", GUIDE, re.M))
    assert bounds == {
        "run": f"{guest_end.MAX_OUTPUT_BYTES // 1024} KiB of output",
        "processes": str(PROCESSES),
        "files": f"{kept.max_dropped_files} files, {kept.max_dropped_file_mb} MiB each, {kept.max_dropped_mb} MiB in all",
        "screenshot": str(guest_screen.MOST_PICTURES),
        "network": f"{kept.max_traffic_mb} MiB",
        "memory": f"{kept.max_memory_mb // 1024} GiB",
    }
