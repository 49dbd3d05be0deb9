"""Hypervisors that are played by libvirt's own mock (`test:///path`): domains, snapshots and networks in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

AGENT = "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>"

RUNNING, OFF = 1, 5
"""Values of `<test:runstate>`."""


@dataclass(frozen=True, slots=True)
class MockDomain:
    """A domain; `snapshots` maps their names to what it was at then."""

    name: str
    devices: str = AGENT
    snapshots: tuple[tuple[str, str], ...] = (("clean", "running"),)
    state: int = OFF
    kind: str = "test"

    def xml(self) -> str:
        """Its element in the file."""
        snapshots = "".join(
            f"<test:domainsnapshot><name>{name}</name><state>{state}</state><creationTime>1700000000</creationTime>"
            f"<active>0</active><domain type='{self.kind}'>{self._body()}</domain></test:domainsnapshot>"
            for name, state in self.snapshots
        )
        return (
            f"<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>{self._body()}"
            f"<test:runstate>{self.state}</test:runstate>{snapshots}</domain>"
        )

    def _body(self) -> str:
        return (
            f"<name>{self.name}</name><memory unit='MiB'>256</memory><vcpu>2</vcpu><os><type>hvm</type></os>"
            f"<devices>{self.devices}</devices>"
        )


def card(mac: str, network: str = "closed", kind: str = "network") -> str:
    """A network card's element."""
    source = f"<source {kind}='{network}'/>" if kind in ("network", "bridge") else ""
    return f"<interface type='{kind}'><mac address='{mac}'/>{source}</interface>"


def mock_hypervisor(folder: Path, *domains: MockDomain) -> str:
    """The URI of one that has these domains, and two networks: `open`, which leads out, and `closed`."""
    address = "<ip address='192.168.122.1' netmask='255.255.255.0'/>"
    networks = f"<network><name>open</name><forward mode='nat'/>{address}</network><network><name>closed</name></network>"
    path = folder / "hypervisor.xml"
    path.write_text(f"<node>{''.join(domain.xml() for domain in domains)}{networks}</node>")
    return f"test://{path}"
