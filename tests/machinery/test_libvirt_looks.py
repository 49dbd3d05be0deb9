"""Machines of libvirt are looked at, recorded and slowed down."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.machinery.monitor import PassedFile
from malbox_tui.machinery.pcap import HEADER
from malbox_tui.model.errors import GuestUnreachable, MachineError, MachineUnable
from malbox_tui.model.machine import Throttle
from tests.machinery.conftest import Gate, wrapped
from tests.machinery.mock_host import machine_at
from tests.machinery.test_pcap import packets, record
from tests.support.virtual_time import settle_loop

pytestmark = pytest.mark.needs("libvirt")

T = TypeVar("T")


async def test_a_screenshot_is_a_picture(provider: LibvirtProvider, host: str) -> None:
    picture = await provider.screenshot(machine_at(host, "up"))
    assert picture.mime == "image/png"
    assert picture.content.startswith(b"\x89PNG")


async def test_a_screenshot_of_any_size_is_not_taken(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import libvirt

    monkeypatch.setattr(libvirt.virStream, "recv", lambda self, nbytes: b"x" * nbytes)
    with pytest.raises(MachineError, match="16 MiB"):
        await provider.screenshot(machine_at(host, "up"))


async def test_a_memory_dump_is_a_file_of_ours_alone(provider: LibvirtProvider, host: str, tmp_path: Path) -> None:
    target = tmp_path / "memory.elf"
    await provider.dump_memory(machine_at(host, "up"), target)
    assert target.stat().st_size > 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["host.xml", "memory.elf"]


async def test_a_file_that_is_there_is_not_overwritten_by_a_dump(provider: LibvirtProvider, host: str, tmp_path: Path) -> None:
    target = tmp_path / "memory.elf"
    target.write_bytes(b"precious")
    with pytest.raises(MachineError, match="File exists"):
        await provider.dump_memory(machine_at(host, "up"), target)
    assert target.read_bytes() == b"precious"


async def test_a_dump_that_fails_leaves_no_file(
    provider: LibvirtProvider,
    host: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    libvirt_error: Callable[[int, str], Exception],
) -> None:
    def refuse(*_: object) -> None:
        raise libvirt_error(9, "no room")

    wrapped(monkeypatch, "coreDumpWithFormat", refuse)
    with pytest.raises(MachineError, match="no room"):
        await provider.dump_memory(machine_at(host, "up"), tmp_path / "memory.elf")
    assert [path.name for path in tmp_path.iterdir()] == ["host.xml"]


async def test_a_dump_is_cut_when_more_comes_than_memory_can_hold(
    provider: LibvirtProvider, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flood(_: object, domain: Any, path: str, *__: object) -> None:
        with Path(path).open("wb", buffering=0) as fifo, pytest.raises(BrokenPipeError):
            while True:
                fifo.write(b"x" * 65536)

    wrapped(monkeypatch, "coreDumpWithFormat", flood)
    wrapped(monkeypatch, "maxMemory", lambda *_: 1)
    monkeypatch.setattr("malbox_tui.machinery.memory.ROOM_BYTES", 100_000)
    with pytest.raises(MachineError, match="larger than"):
        await provider.dump_memory(machine_at(host, "up"), tmp_path / "memory.elf")
    assert [path.name for path in tmp_path.iterdir()] == ["host.xml"]


async def test_traffic_that_can_not_be_recorded_is_said_and_leaves_no_file(
    provider: LibvirtProvider, host: str, tmp_path: Path
) -> None:
    with pytest.raises(MachineUnable):
        await provider.capture(machine_at(host, "up"), tmp_path / "traffic.pcap")
    assert [path.name for path in tmp_path.iterdir()] == ["host.xml"]


@pytest.mark.parametrize("call", ["capture", "dump_memory"])
async def test_what_needs_files_of_this_host_is_refused_for_other_hosts(
    provider: LibvirtProvider, host: str, tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("libvirt", "memory"):
        monkeypatch.setattr(f"malbox_tui.machinery.{module}.is_local", lambda uri: False)
    with pytest.raises(MachineUnable, match="runs on"):
        await getattr(provider, call)(machine_at(host, "up"), tmp_path / "file")


async def test_a_running_machine_is_slowed_down(provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    for method in ("setBlockIoTune", "setInterfaceParameters", "updateDeviceFlags"):
        wrapped(monkeypatch, method, lambda _real, _self, *args: asked.append(args[:2]))
    machine = machine_at(host, "up")
    await provider.throttle(machine, Throttle(network_kbps=800, disk_kib_s=64))
    await provider.throttle(machine, Throttle(network_kbps=0))
    await provider.throttle(machine, Throttle())
    disk, card, cable = asked
    assert disk == ("vda", {"total_bytes_sec": 65536})
    assert card == ("52:54:00:00:00:01", {"inbound.average": 100, "outbound.average": 100})
    assert '<link state="down" />' in str(cable[0])


async def test_of_two_limits_one_that_can_not_be_set_does_not_keep_the_other(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]
) -> None:
    asked: list[object] = []

    def refuse(*_: object) -> None:
        raise libvirt_error(67, "unsupported configuration: not for this disk")

    wrapped(monkeypatch, "setBlockIoTune", refuse)
    wrapped(monkeypatch, "setInterfaceParameters", lambda _real, _self, mac, *_: asked.append(mac))
    with pytest.raises(MachineUnable, match="its disk vda can't be slowed down"):
        await provider.throttle(machine_at(host, "up"), Throttle(network_kbps=8, disk_kib_s=8))
    assert asked == ["52:54:00:00:00:01"]


async def test_there_is_no_agent_where_the_hypervisor_knows_of_none(provider: LibvirtProvider, host: str) -> None:
    with pytest.raises(GuestUnreachable):
        await provider.ask(machine_at(host, "up"), '{"execute":"guest-ping"}', 5)
    with pytest.raises(GuestUnreachable):
        await provider.ask(machine_at(host, "nobody"), '{"execute":"guest-ping"}', 5)


class PlayedQemu:
    """A QEMU that sends one packet as soon as it records, and closes what it was given when it is told to."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.gate = gate
        self.pipes: dict[str, int] = {}
        self._passed = -1

    def pass_file(self, domain: object, fd: int) -> PassedFile:
        if self.gate is not None:
            self.gate.hold()
        self._passed = os.dup(fd)
        return PassedFile(fd=fd, fdset_id=1)

    def run_command(self, domain: object, name: str, arguments: dict[str, str]) -> bytes:
        if name == "object-add":
            self.pipes[arguments["id"]] = self._passed
            os.write(self._passed, HEADER + record(b"packet"))
        else:
            os.close(self.pipes.pop(arguments["id"]))
        return b"{}"

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("malbox_tui.machinery.capture.pass_file", self.pass_file)
        monkeypatch.setattr("malbox_tui.machinery.capture.run_command", self.run_command)
        monkeypatch.setattr("malbox_tui.machinery.capture.take_file_back", lambda *_: None)


async def test_a_recording_holds_what_came_until_its_end(
    provider: LibvirtProvider, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qemu = PlayedQemu()
    qemu.install(monkeypatch)
    capture = await provider.capture(machine_at(host, "up"), tmp_path / "traffic.pcap")
    assert len(qemu.pipes) == 1
    await capture.end()
    await capture.end()
    assert qemu.pipes == {}
    assert [packet for _, packet in packets((tmp_path / "traffic.pcap").read_bytes())] == [b"packet"]


async def test_a_recording_that_is_given_up_before_it_began_leaves_nothing(
    provider: LibvirtProvider, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    qemu = PlayedQemu(gate)
    qemu.install(monkeypatch)
    async with asyncio.TaskGroup() as group:
        beginning = group.create_task(provider.capture(machine_at(host, "up"), tmp_path / "traffic.pcap"))
        await gate.reached()
        beginning.cancel()
        await settle_loop()
        gate.open()
    [pipe] = await until(lambda: list(qemu.pipes.values()))
    await until(lambda: not is_read(pipe))
    os.close(pipe)
    assert [path.name for path in tmp_path.iterdir()] == ["host.xml"]


async def test_a_file_that_is_there_is_not_overwritten_by_a_recording(
    provider: LibvirtProvider, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PlayedQemu().install(monkeypatch)
    target = tmp_path / "traffic.pcap"
    target.write_bytes(b"precious")
    with pytest.raises(MachineError, match="File exists"):
        await provider.capture(machine_at(host, "up"), target)
    assert target.read_bytes() == b"precious"


def is_read(pipe: int) -> bool:
    """Whether somebody holds the other end of a pipe."""
    poll = select.poll()
    poll.register(pipe, select.POLLOUT)
    return not any(event & select.POLLERR for _, event in poll.poll(0))


async def until(find: Callable[[], T]) -> T:
    """What is found, as soon as there is something."""
    while not (found := find()):
        await asyncio.get_running_loop().run_in_executor(None, threading.Event().wait, 0.01)
    return found
