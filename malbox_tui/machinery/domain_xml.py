"""What a machine is by its domain's XML (https://libvirt.org/formatdomain.html)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

AGENT_CHANNEL = "org.qemu.guest_agent.0"
SHAPEABLE = frozenset({"network", "bridge", "direct", "ethernet"})
"""Kinds of network cards whose traffic libvirt can slow down."""

_KIB = {"b": 1 / 1024, "bytes": 1 / 1024, "kb": 1000 / 1024, "k": 1, "kib": 1, "mb": 1e6 / 1024, "m": 1024, "mib": 1024}
_KIB |= {"gb": 1e9 / 1024, "g": 1024**2, "gib": 1024**2, "tb": 1e12 / 1024, "t": 1024**3, "tib": 1024**3}


@dataclass(frozen=True, slots=True)
class NetworkCard:
    """A network card. `xml` is its whole element; `alias` is what a running domain calls it, empty in one that is off."""

    kind: str
    mac: str
    model: str
    alias: str
    driver: str
    xml: str

    @property
    def is_offloaded(self) -> bool:
        """The kernel moves its packets past QEMU (vhost), where no filter sees them."""
        return self.model.startswith("virtio") and self.kind in SHAPEABLE and self.driver != "qemu"


@dataclass(frozen=True, slots=True)
class Disk:
    """A writable disk. `source` is its file, empty when it is none."""

    target: str
    source: str
    format: str


@dataclass(frozen=True, slots=True)
class DomainShape:
    """A domain as its XML describes it."""

    kind: str
    arch: str
    memory_mb: int | None
    vcpus: int | None
    has_agent_channel: bool
    has_pflash: bool
    has_shared_folders: bool
    on_poweroff: str
    libosinfo: str
    hints: frozenset[str]
    """Systems that it seems to be built for."""
    cards: tuple[NetworkCard, ...]
    disks: tuple[Disk, ...]


def parse_domain(xml: str) -> DomainShape:
    """Read a `<domain>`, or the `<domain>` of a snapshot."""
    root = ElementTree.fromstring(xml)
    domain = root if root.tag == "domain" else root.find("domain")
    if domain is None:
        domain = ElementTree.Element("domain")
    vcpus = (domain.findtext("vcpu") or "").strip()
    loader = domain.find("os/loader")
    os_type = domain.find("os/type")
    firmware = domain.find("os")
    return DomainShape(
        kind=domain.get("type", ""),
        arch="" if os_type is None else os_type.get("arch", ""),
        memory_mb=_memory_mb(domain.find("currentMemory")) or _memory_mb(domain.find("memory")),
        vcpus=int(vcpus) if vcpus.isdecimal() else None,
        has_agent_channel=any(target.get("name") == AGENT_CHANNEL for target in domain.iterfind("devices/channel/target")),
        has_pflash=(loader is not None and loader.get("type") == "pflash")
        or (firmware is not None and firmware.get("firmware") == "efi"),
        has_shared_folders=domain.find("devices/filesystem") is not None,
        on_poweroff=domain.findtext("on_poweroff") or "destroy",
        libosinfo=_libosinfo(domain),
        hints=frozenset(_hints(domain)),
        cards=tuple(_card(element) for element in domain.iterfind("devices/interface")),
        disks=tuple(_disk(element) for element in domain.iterfind("devices/disk") if _is_writable(element)),
    )


def domain_name(xml: str) -> str:
    """What the domain of this XML is called."""
    return ElementTree.fromstring(xml).findtext("name") or ""


def snapshot_state(xml: str) -> str:
    """What the domain was at when the snapshot was taken: "running", "paused", "shutoff", "disk-snapshot", …"""
    return (ElementTree.fromstring(xml).findtext("state") or "").strip()


def with_link_down(card: NetworkCard) -> str:
    """The card's XML with its cable pulled."""
    element = ElementTree.fromstring(card.xml)
    for link in element.findall("link"):
        element.remove(link)
    ElementTree.SubElement(element, "link", state="down")
    return ElementTree.tostring(element, encoding="unicode")


def with_sources(xml: str, sources: dict[str, str]) -> str:
    """A domain whose disks, by target, lie in other files, of format qcow2. What lies beneath these is left to QEMU: a `backingStore`
    that was written for another file would be believed, and the disk would read as zeros."""
    domain = ElementTree.fromstring(xml)
    for disk in domain.iterfind("devices/disk"):
        target = disk.find("target")
        source = disk.find("source")
        if target is None or source is None or target.get("dev") not in sources:
            continue
        source.set("file", sources[target.get("dev", "")])
        for child in list(source):
            source.remove(child)
        for beneath in disk.findall("backingStore"):
            disk.remove(beneath)
        driver = disk.find("driver")
        if driver is not None:
            driver.set("type", "qcow2")
    return ElementTree.tostring(domain, encoding="unicode")


def _memory_mb(element: ElementTree.Element | None) -> int | None:
    if element is None or not (element.text or "").strip().isdecimal():
        return None
    unit = _KIB.get(element.get("unit", "KiB").lower())
    return None if unit is None else round(int((element.text or "").strip()) * unit / 1024)


def _libosinfo(domain: ElementTree.Element) -> str:
    """The system by its libosinfo name, such as http://microsoft.com/win/10; empty where nobody wrote it down."""
    for element in domain.iterfind("metadata//*"):
        if element.tag.startswith("{http://libosinfo.org/") and element.tag.endswith("}os"):
            return element.get("id", "")
    return ""


def _hints(domain: ElementTree.Element) -> Iterator[str]:
    clock = domain.find("clock")
    if domain.find("features/hyperv") is not None or (clock is not None and clock.get("offset") == "localtime"):
        yield "windows"
    if domain.find("os/kernel") is not None:
        yield "linux"


def _card(element: ElementTree.Element) -> NetworkCard:
    def of(name: str, attribute: str) -> str:
        child = element.find(name)
        return "" if child is None else child.get(attribute, "")

    return NetworkCard(
        kind=element.get("type", ""),
        mac=of("mac", "address").lower(),
        model=of("model", "type"),
        alias=of("alias", "name"),
        driver=of("driver", "name"),
        xml=ElementTree.tostring(element, encoding="unicode"),
    )


def _is_writable(element: ElementTree.Element) -> bool:
    return element.get("device", "disk") in ("disk", "lun") and element.find("readonly") is None


def _disk(element: ElementTree.Element) -> Disk:
    source = element.find("source")
    target = element.find("target")
    driver = element.find("driver")
    return Disk(
        target="" if target is None else target.get("dev", ""),
        source="" if source is None else source.get("file", ""),
        format="raw" if driver is None else driver.get("type", "raw"),
    )
