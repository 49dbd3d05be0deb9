"""What is read out of a domain's XML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from malbox_tui.machinery.domain_xml import parse_domain, snapshot_state, with_link_down, with_sources
from malbox_tui.machinery.warnings import warnings_of

DOMAIN = """<domain type='kvm'>
  <name>win11</name><memory unit='GiB'>4</memory><currentMemory unit='KiB'>2097152</currentMemory><vcpu placement='static'>3</vcpu>
  <metadata><libosinfo:libosinfo xmlns:libosinfo='http://libosinfo.org/xmlns/libvirt/domain/1.0'>
    <libosinfo:os id='http://microsoft.com/win/11'/></libosinfo:libosinfo></metadata>
  <os firmware='efi'><type arch='x86_64' machine='q35'>hvm</type></os>
  <on_poweroff>preserve</on_poweroff>
  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/images/base.raw' index='1'><seclabel/></source>
      <backingStore/><target dev='sda' bus='sata'/></disk>
    <disk type='file' device='cdrom'><source file='/images/tools.iso'/><target dev='sdb'/><readonly/></disk>
    <interface type='network'><mac address='52:54:00:AA:BB:CC'/><source network='lab'/><model type='virtio'/><link state='up'/>
      <alias name='net0'/></interface>
    <interface type='user'><mac address='52:54:00:aa:bb:cd'/><model type='e1000e'/></interface>
    <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <filesystem type='mount'/>
  </devices></domain>"""


def test_a_domain_is_what_its_xml_says() -> None:
    shape = parse_domain(DOMAIN)
    assert (shape.kind, shape.arch, shape.memory_mb, shape.vcpus) == ("kvm", "x86_64", 2048, 3)
    assert shape.has_agent_channel
    assert shape.has_pflash
    assert shape.libosinfo == "http://microsoft.com/win/11"
    assert [(card.kind, card.mac, card.alias) for card in shape.cards] == [
        ("network", "52:54:00:aa:bb:cc", "net0"),
        ("user", "52:54:00:aa:bb:cd", ""),
    ]
    assert [(disk.target, disk.source, disk.format) for disk in shape.disks] == [("sda", "/images/base.raw", "raw")]


def test_the_domain_of_a_snapshot_is_read_as_well() -> None:
    snapshot = f"<domainsnapshot><name>clean</name><state>running</state>{DOMAIN}</domainsnapshot>"
    assert parse_domain(snapshot) == parse_domain(DOMAIN)
    assert snapshot_state(snapshot) == "running"


@pytest.mark.parametrize(
    "xml", ["<domain/>", "<domainsnapshot><name>x</name></domainsnapshot>", "<domain><devices><disk/></devices></domain>"]
)
def test_what_the_xml_does_not_say_is_not_known(xml: str) -> None:
    shape = parse_domain(xml)
    assert (shape.memory_mb, shape.vcpus, shape.cards, shape.has_agent_channel) == (None, None, (), False)


@pytest.mark.parametrize(
    ("memory", "megabytes"),
    [("<memory unit='bytes'>1073741824</memory>", 1024), ("<memory>2048</memory>", 2), ("<memory unit='?'>1</memory>", None)],
)
def test_memory_is_told_in_mebibytes(memory: str, megabytes: int | None) -> None:
    assert parse_domain(f"<domain>{memory}</domain>").memory_mb == megabytes


def test_everything_an_operator_should_know_is_said_once() -> None:
    warnings = warnings_of(parse_domain(DOMAIN))
    assert len(warnings) == 4
    for word in ("loopback", "vhost", "<filesystem>", "<on_poweroff>"):
        assert sum(word in warning for warning in warnings) == 1


def test_a_card_whose_packets_qemu_moves_is_not_warned_of() -> None:
    model = "<model type='virtio'/>"
    [warning] = [
        w for w in warnings_of(parse_domain(DOMAIN.replace(model, f"{model}<driver name='qemu'/>"))) if "recording" in w
    ] or [""]
    assert warning == ""


def test_the_cable_of_a_card_is_pulled_and_the_rest_stays() -> None:
    card = parse_domain(DOMAIN).cards[0]
    element = ElementTree.fromstring(with_link_down(card))
    assert [link.get("state") for link in element.findall("link")] == ["down"]
    assert element.find("source") is not None


def test_disks_lie_elsewhere_and_nothing_is_said_of_what_is_beneath() -> None:
    disk, drive = ElementTree.fromstring(with_sources(DOMAIN, {"sda": "/images/overlay.qcow2"})).findall("devices/disk")
    source, driver = disk.find("source"), disk.find("driver")
    assert source is not None
    assert source.get("file") == "/images/overlay.qcow2"
    assert driver is not None
    assert driver.get("type") == "qcow2"
    assert disk.find("backingStore") is None
    cdrom = drive.find("source")
    assert cdrom is not None
    assert cdrom.get("file") == "/images/tools.iso"
