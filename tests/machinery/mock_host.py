"""A host of libvirt's own mock driver, from a file: machines with snapshots, and no hypervisor behind them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from malbox_tui.model.machine import MachineSpec

RUNNING, OFF, CRASHED = 1, 5, 6
AGENT = "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>"


@dataclass(frozen=True)
class MockMachine:
    """`snapshots`: name → what the machine was at when it was taken."""

    name: str
    runstate: int = OFF
    snapshots: tuple[tuple[str, str], ...] = (("clean", "running"),)
    mac: str = ""
    card: str = "network"
    agent: bool = True
    loader: str = ""
    more: str = ""


def write_host(path: Path, *machines: MockMachine) -> str:
    """The URI of a host that has these machines; each connection to it begins anew."""
    domains = "".join(_domain(number, machine) for number, machine in enumerate(machines, 1))
    network = "<network><name>default</name><bridge name='virbr0'/></network>"
    namespace = "http://libvirt.org/schemas/domain/test/1.0"
    path.write_text(f"<node xmlns:test='{namespace}'>{network}{domains}</node>")
    return f"test://{path}"


def machine_at(uri: str, name: str, **options: object) -> MachineSpec:
    """A machine as it is configured."""
    given: dict[str, object] = {"snapshot": "clean", "channel": "qga", **options}
    return MachineSpec(name=name, provider="libvirt", platform="linux", uri=uri, **given)  # type: ignore[arg-type]


def _domain(number: int, machine: MockMachine) -> str:
    body = _body(number, machine)
    snapshots = "".join(
        f"<test:domainsnapshot><name>{name}</name><state>{state}</state><creationTime>1000</creationTime><active>0</active>"
        f"<domain type='test'>{body}</domain></test:domainsnapshot>"
        for name, state in machine.snapshots
    )
    return f"<domain type='test'>{body}<test:runstate>{machine.runstate}</test:runstate>{snapshots}</domain>"


def _body(number: int, machine: MockMachine) -> str:
    mac = machine.mac or f"52:54:00:00:00:{number:02x}"
    source = "<source network='default'/>" if machine.card == "network" else ""
    return (
        f"<name>{machine.name}</name><uuid>00000000-0000-4000-8000-{number:012d}</uuid>"
        "<memory unit='MiB'>2048</memory><vcpu>2</vcpu><os><type arch='x86_64'>hvm</type>"
        f"{machine.loader}</os><devices><interface type='{machine.card}'><mac address='{mac}'/>{source}</interface>"
        "<disk type='file' device='disk'><source file='/guest.img'/><target dev='vda'/></disk>"
        f"{AGENT if machine.agent else ''}</devices>{machine.more}"
    )
