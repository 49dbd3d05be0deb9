"""What `doctor` says of the configured machines and of the hypervisors they are at. Nothing is changed, and nothing waits for long.

Each hypervisor has a time of its own, all at once: one that hangs keeps nothing from the others. Machines are looked at by the snapshot
that they are reverted to, which brings its own hardware; networks are looked at as they are now.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

from malbox_tui.config.machine_list import Listing
from malbox_tui.config.machines import Channel, Provider
from malbox_tui.engine import clock
from malbox_tui.machinery.binding import LibvirtNotInstalled
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.machinery.place import is_local, is_test
from malbox_tui.machinery.refusals import Refusal, Unreachable
from malbox_tui.machinery.survey import MachineLook, NetworkFacts, Survey
from malbox_tui.model.errors import GuestRefused, GuestUnreachable, MachineError
from malbox_tui.model.machine import MachineFacts, MachineSpec, PowerState
from malbox_tui.model.sample import visible
from malbox_tui.runtime.finding import Finding, Health
from malbox_tui.runtime.kvm_probe import KvmProbe, probe_kvm

CONNECT_S = 15.0
"""How long a hypervisor may take to be reached."""
MACHINE_S = 10.0
"""How long it may take to tell of one machine."""
HYPERVISOR_S = 60.0
"""How long it may take to tell of all of them."""
PING_S = 5.0
LOW_IMAGE_BYTES = 10 * 1024**3

_PING = '{"execute": "guest-ping"}'


def diagnose_machines(listing: Listing) -> Iterator[Finding]:
    """Findings on all machines of libvirt's, and on those that are there twice; none without such machines."""
    for name, fault in listing.faults.items():
        problem, remedy = _told_apart(fault)
        yield Finding("machine", Health.FAIL, f"{name} is not used: {problem}", remedy)
    sound = [machine for machine in listing.machines if machine.name not in listing.faults]
    by_uri: dict[str, list[MachineSpec]] = {}
    for machine in sound:
        if machine.provider == Provider.LIBVIRT:
            by_uri.setdefault(machine.uri, []).append(machine)
    if not by_uri:
        return
    kvm = probe_kvm() if any(is_local(uri) and not is_test(uri) for uri in by_uri) else None
    if kvm is not None:
        yield _kvm(kvm)
    yield from asyncio.run(_all(by_uri, kvm))


async def _all(by_uri: Mapping[str, Sequence[MachineSpec]], kvm: KvmProbe | None) -> list[Finding]:
    provider = LibvirtProvider()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_hypervisor(uri, machines, provider, kvm)) for uri, machines in by_uri.items()]
    finally:
        await provider.close()
    return [finding for task in tasks for finding in task.result()]


async def _hypervisor(
    uri: str, machines: Sequence[MachineSpec], provider: LibvirtProvider, kvm: KvmProbe | None
) -> list[Finding]:
    found: list[Finding] = []
    try:
        survey = Survey(uri)
    except LibvirtNotInstalled as error:
        return [_failed("libvirt", f"{visible(uri)}: {error}")]
    try:
        async with clock.within(CONNECT_S):
            facts = await survey.hypervisor()
        domains = f"{facts.domains} domain{'' if facts.domains == 1 else 's'}"
        found.append(Finding("libvirt", Health.OK, f"{visible(uri)}: libvirt {facts.version}, {facts.runner}, {domains}"))
        async with clock.within(HYPERVISOR_S):
            async for finding in _machines(machines, survey, provider, kvm):
                found.append(finding)  # noqa: PERF401 - what is known when the time is over is told
    except (Unreachable, Refusal) as error:
        found.append(_failed("libvirt", str(error)))
    except TimeoutError:
        detail = f"{visible(uri)} does not answer, so its machines were not all looked at"
        found.append(Finding("libvirt", Health.FAIL, detail, "start libvirt there anew (`systemctl restart libvirtd`)"))
    finally:
        survey.close()
    return found


async def _machines(
    machines: Sequence[MachineSpec], survey: Survey, provider: LibvirtProvider, kvm: KvmProbe | None
) -> AsyncIterator[Finding]:
    folders: dict[Path, None] = {}
    for machine in machines:
        async with clock.within(MACHINE_S):
            try:
                facts = await provider.check(machine)
                look = await survey.machine(machine)
                power = await provider.power(machine)
            except MachineError as error:
                yield _failed("machine", f"{visible(machine.name)}: {error.problem}")
                continue
        yield Finding("machine", Health.OK, _in_words(machine, facts, power))
        for finding in _flaws(machine, facts, look, kvm):
            yield finding
        if power is PowerState.RUNNING and machine.channel == Channel.QGA:
            yield await _agent(machine, provider)
        if is_local(machine.uri) and not is_test(machine.uri):
            folders |= dict.fromkeys(Path(disk.source).parent for disk in look.shape.disks if disk.source)
    for folder in folders:
        yield _room(folder)


def _in_words(machine: MachineSpec, facts: MachineFacts, power: PowerState) -> str:
    size = ", ".join(
        part
        for part in (
            "" if facts.memory_mb is None else f"{facts.memory_mb} MiB",
            "" if facts.vcpus is None else f"{facts.vcpus} CPU{'s' if facts.vcpus != 1 else ''}",
        )
        if part
    )
    state = f"snapshot {visible(machine.snapshot)} is there, {power} now"
    return f"{visible(machine.name)}: {state}{f' ({size})' if size else ''}"


def _flaws(machine: MachineSpec, facts: MachineFacts, look: MachineLook, kvm: KvmProbe | None) -> Iterator[Finding]:
    name = visible(machine.name)
    for warning in facts.warnings:
        problem, remedy = _told_apart(warning)
        yield Finding("machine", Health.WARN, f"{name}: {problem}", remedy)
    for network in look.networks:
        yield from _network(name, machine.uri, network)
    yield from _processor(name, machine, look, kvm)
    emulator = Path(look.emulator) if look.emulator else None
    if emulator is not None and is_local(machine.uri) and not is_test(machine.uri) and not emulator.exists():
        yield Finding(
            "machine",
            Health.FAIL,
            f"{name}: its emulator {visible(str(emulator))} is not there",
            "install QEMU (qemu-system-x86)",
        )


def _network(name: str, uri: str, network: NetworkFacts) -> Iterator[Finding]:
    where = visible(network.name)
    virsh = f"virsh -c {visible(uri)}"
    if not network.is_network:
        if network.forward:
            detail = f"{name}: its network card is on the host's device {where}: samples reach whatever that one does"
        else:
            detail = f"{name}: its network card is on the host's bridge {where}; where that leads can't be told from here"
        yield Finding("network", Health.WARN, detail, "use a network of libvirt's without <forward>, and take the snapshot again")
    elif not network.exists:
        remedy = "define it (README, “Preparing a Linux guest”), or take the snapshot again with another one"
        yield Finding("network", Health.FAIL, f"{name}: there is no network {where}", remedy)
    else:
        if not network.is_active:
            remedy = f"`{virsh} net-start {where}` and `{virsh} net-autostart {where}`"
            yield Finding("network", Health.FAIL, f"{name}: its network {where} is not started", remedy)
        if network.forward:
            detail = f"{name}: its network {where} leads out of the host (forward mode {visible(network.forward)})"
            yield Finding(
                "network", Health.WARN, detail, f"take <forward> out of it (`{virsh} net-edit {where}`) and start it anew"
            )
        else:
            yield Finding("network", Health.OK, f"{name}: its network {where} leads nowhere but to this host's bridge")


def _processor(name: str, machine: MachineSpec, look: MachineLook, kvm: KvmProbe | None) -> Iterator[Finding]:
    if look.shape.kind == "qemu":
        remedy = "write <domain type='kvm'> where KVM works, and take the snapshot again; else give tasks more time"
        yield Finding("machine", Health.WARN, f"{name}: it is emulated (TCG), many times slower than with KVM", remedy)
    elif look.shape.kind == "kvm" and kvm is not None and kvm.works is False and is_local(machine.uri):
        yield Finding("machine", Health.FAIL, f"{name}: it needs KVM, and {kvm.detail}", kvm.remedy)


async def _agent(machine: MachineSpec, provider: LibvirtProvider) -> Finding:
    name = visible(machine.name)
    try:
        async with clock.within(PING_S):
            await provider.ask(machine, _PING, PING_S)
    except (GuestUnreachable, GuestRefused, TimeoutError) as error:
        problem = error.problem if isinstance(error, MachineError) else f"nothing within {PING_S:g} s"
        detail = f"{name}: it runs, and its guest agent does not answer: {problem}"
        return Finding("agent", Health.WARN, detail, "wait for its guest to be up, or see that qemu-guest-agent runs in it")
    return Finding("agent", Health.OK, f"{name}: its guest agent answers")


def _room(folder: Path) -> Finding:
    shown = visible(str(folder))
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        detail = f"how much is free under {shown}, where images lie, can't be told: {error.strerror or error}"
        return Finding("images", Health.WARN, detail, f"`df -h {shown}`, as root")
    detail = f"{free_bytes / 1024**3:.1f} GiB free under {shown}, where images lie"
    if free_bytes < LOW_IMAGE_BYTES:
        return Finding("images", Health.WARN, detail, "make room: a guest that writes to its disk needs it")
    return Finding("images", Health.OK, detail)


def _kvm(kvm: KvmProbe) -> Finding:
    return Finding("KVM", Health.OK if kvm.works else Health.WARN, kvm.detail, kvm.remedy)


def _failed(what: str, problem: str) -> Finding:
    detail, remedy = _told_apart(problem)
    return Finding(what, Health.FAIL, detail, remedy or "correct that in libvirt, or in the configuration")


def _told_apart(problem: str) -> tuple[str, str]:
    """What is wrong, and what to do about it, of a text that says both."""
    detail, *remedy = re.split(r"\. |; (?=`)|: (?=start the guest)", problem, maxsplit=1)
    return detail.rstrip("."), "".join(remedy).rstrip(".")
