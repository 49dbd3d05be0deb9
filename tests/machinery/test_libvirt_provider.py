"""Machines of libvirt, over its own mock driver."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.machinery import binding
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import GuestUnreachable, MachineError, MachineMisconfigured, MachineMissing, MachineUnable
from malbox_tui.model.machine import Downfall, PowerState, Throttle
from tests.machinery.conftest import Gate
from tests.machinery.mock_host import RUNNING, MockMachine, machine_at, write_host
from tests.support.virtual_time import settle_loop

pytestmark = pytest.mark.needs("libvirt")

REVERT_RISKY, SYSTEM_ERROR = 77, 38


def wrapped(monkeypatch: pytest.MonkeyPatch, method: str, replacement: Callable[..., Any]) -> None:
    """Have a method of libvirt's domains called by `replacement`, which gets the method first."""
    import libvirt

    real = getattr(libvirt.virDomain, method)
    monkeypatch.setattr(libvirt.virDomain, method, lambda self, *args: replacement(real, self, *args))


# --- check -----------------------------------------------------------------------------------------------------------------------


async def test_a_check_tells_what_the_machine_is(provider: LibvirtProvider, host: str) -> None:
    facts = await provider.check(machine_at(host, "up"))
    assert (facts.memory_mb, facts.vcpus, facts.warnings) == (2048, 2, ())


async def test_a_domain_of_another_name_may_be_given(provider: LibvirtProvider, host: str) -> None:
    assert (await provider.check(machine_at(host, "win10-1", domain="down"))).memory_mb == 2048


@pytest.mark.parametrize(
    ("machine", "kind", "words"),
    [
        (("nobody",), MachineMissing, "no domain 'nobody'"),
        (("bare",), MachineMissing, "no snapshot 'clean' (it has 'odd', 'other')"),
        (("shot-while-off",), MachineMisconfigured, "snapshot-create-as shot-while-off clean"),
        (("deaf",), MachineMisconfigured, "org.qemu.guest_agent.0"),
    ],
)
async def test_what_can_not_be_used_is_told_with_what_to_do(
    provider: LibvirtProvider, host: str, machine: tuple[str], kind: type[MachineError], words: str
) -> None:
    with pytest.raises(kind) as caught:
        await provider.check(machine_at(host, *machine))
    assert words in caught.value.problem
    assert "start the guest" in caught.value.problem or "virsh" in caught.value.problem or "qemu-ga" in caught.value.problem


async def test_a_machine_without_an_agent_may_be_talked_to_in_another_way(provider: LibvirtProvider, host: str) -> None:
    assert await provider.check(machine_at(host, "deaf", channel="http"))


async def test_a_network_card_that_reaches_the_host_is_warned_of(provider: LibvirtProvider, host: str) -> None:
    [warning] = (await provider.check(machine_at(host, "slirp"))).warnings
    assert "loopback" in warning


async def test_no_snapshot_configured_means_the_current_one_and_there_has_to_be_one(provider: LibvirtProvider, host: str) -> None:
    with pytest.raises(MachineMisconfigured, match="no snapshot is configured"):
        await provider.check(machine_at(host, "up", snapshot=""))
    await provider.revert(machine_at(host, "up"))
    await provider.check(machine_at(host, "up", snapshot=""))


@pytest.mark.parametrize("uri", ["", "qemu+unix:///session?socket=/nowhere/libvirt-sock", "test:///nowhere.xml", "nonsense:///"])
async def test_a_hypervisor_that_is_not_there_is_an_error_of_each_call(provider: LibvirtProvider, uri: str) -> None:
    with pytest.raises(MachineError) as caught:
        await provider.check(machine_at(uri, "up"))
    assert caught.value.machine == "up"


async def test_a_missing_python_module_is_told_with_what_to_install(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise binding.LibvirtNotInstalled("No module named 'libvirt'")

    monkeypatch.setattr("malbox_tui.machinery.libvirt.start_event_loop", missing)
    with pytest.raises(MachineMisconfigured, match=r"pip install 'malbox-tui\[libvirt\]'"):
        await provider.check(machine_at(host, "up"))


# --- no two machines are one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (("up", {}), ("also-up", {"domain": "up"}), "the domain 'up'"),
        (("down", {}), ("twin", {}), "52:54:00:00:00:02"),
        (("up", {"address": "10.0.0.2"}), ("down", {"address": "10.0.0.2"}), "10.0.0.2"),
    ],
)
async def test_what_one_machine_has_no_other_gets(
    provider: LibvirtProvider, host: str, first: tuple[str, dict[str, str]], second: tuple[str, dict[str, str]], words: str
) -> None:
    one, other = machine_at(host, first[0], **first[1]), machine_at(host, second[0], **second[1])
    await provider.check(one)
    with pytest.raises(MachineMisconfigured) as caught:
        await provider.check(other)
    assert one.name in caught.value.problem
    assert words in caught.value.problem
    await provider.check(one)
    await provider.stop(one)
    await provider.check(other)


async def test_a_machine_that_is_configured_twice_is_not_touched_by_the_second(provider: LibvirtProvider, host: str) -> None:
    one = machine_at(host, "up")
    await provider.check(one)
    for call in (provider.stop, provider.revert):
        with pytest.raises(MachineMisconfigured):
            await call(machine_at(host, "also-up", domain="up"))
    assert await provider.power(one) is PowerState.RUNNING


# --- revert, stop, power -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["up", "down", "crashed"])
async def test_a_machine_runs_after_a_revert_and_not_after_a_stop(provider: LibvirtProvider, host: str, name: str) -> None:
    machine = machine_at(host, name)
    for _ in range(2):
        await provider.revert(machine)
        assert await provider.power(machine) is PowerState.RUNNING
    for _ in range(2):
        await provider.stop(machine)
        assert await provider.power(machine) is PowerState.OFF


async def test_what_a_machine_is_at_is_told(provider: LibvirtProvider, host: str) -> None:
    states = [await provider.power(machine_at(host, name)) for name in ("up", "down", "crashed")]
    assert states == [PowerState.RUNNING, PowerState.OFF, PowerState.CRASHED]


async def test_other_machines_and_snapshots_are_left_alone(provider: LibvirtProvider) -> None:
    import libvirt

    # The mock's state is shared by all connections to this one.
    connection = libvirt.open("test:///default")
    domain = connection.lookupByName("test")
    if not domain.isActive():
        domain.create()
    for name in ("clean", "foreign"):
        domain.snapshotCreateXML(f"<domainsnapshot><name>{name}</name></domainsnapshot>", 0)
    stranger = connection.createXML("<domain type='test'><name>s</name><memory>9</memory><os><type>hvm</type></os></domain>", 0)
    before = {snapshot.getName(): snapshot.getXMLDesc(0) for snapshot in domain.listAllSnapshots(0)}
    machine = machine_at("test:///default", "test", channel="http")
    await provider.check(machine)
    await provider.revert(machine)
    await provider.stop(machine)
    assert {snapshot.getName(): snapshot.getXMLDesc(0) for snapshot in domain.listAllSnapshots(0)} == before
    assert stranger.isActive()
    connection.close()


@pytest.mark.parametrize("call", ["check", "revert", "stop", "power", "until_down", "screenshot"])
async def test_a_machine_that_does_not_exist_is_missing(provider: LibvirtProvider, host: str, call: str) -> None:
    with pytest.raises(MachineMissing):
        await getattr(provider, call)(machine_at(host, "nobody"))


async def test_a_revert_that_libvirt_refuses_is_told_in_its_words(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]
) -> None:
    def refuse(*_: object) -> None:
        raise libvirt_error(1, "internal error: the image is\x1b[31m corrupt")

    wrapped(monkeypatch, "revertToSnapshot", refuse)
    with pytest.raises(MachineError, match=r"'clean': internal error: the image is .31m corrupt"):
        await provider.revert(machine_at(host, "down"))


async def test_a_revert_that_libvirt_calls_risky_is_forced_on_a_machine_that_is_off(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]
) -> None:
    import libvirt

    flags_seen: list[tuple[int, bool]] = []

    def hesitate(real: Callable[..., Any], domain: Any, snapshot: Any, flags: int) -> None:
        flags_seen.append((flags, bool(domain.isActive())))
        if not flags & libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_FORCE:
            raise libvirt_error(REVERT_RISKY, "revert requires force")
        real(domain, snapshot, flags)

    wrapped(monkeypatch, "revertToSnapshot", hesitate)
    await provider.revert(machine_at(host, "up"))
    running, force = libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_RUNNING, libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_FORCE
    assert flags_seen == [(running, True), (running | force, False)]


async def test_a_process_that_does_not_end_by_itself_is_killed(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]
) -> None:
    import libvirt

    def linger(real: Callable[..., Any], domain: Any, flags: int) -> None:
        if flags & libvirt.VIR_DOMAIN_DESTROY_GRACEFUL:
            raise libvirt_error(SYSTEM_ERROR, "Failed to terminate process with SIGTERM: Device or resource busy")
        real(domain, flags)

    wrapped(monkeypatch, "destroyFlags", linger)
    await provider.stop(machine_at(host, "up"))
    assert await provider.power(machine_at(host, "up")) is PowerState.OFF


async def test_a_machine_that_can_not_be_killed_is_an_error(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]
) -> None:
    def refuse(*_: object) -> None:
        raise libvirt_error(SYSTEM_ERROR, "Failed to terminate process with SIGKILL: Device or resource busy")

    wrapped(monkeypatch, "destroyFlags", refuse)
    with pytest.raises(MachineError, match="could not be switched off: Failed to terminate"):
        await provider.stop(machine_at(host, "up"))


async def test_a_stop_overtakes_a_revert_that_hangs_and_has_the_last_word(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    machine = machine_at(host, "up")
    powers: list[int] = []
    late_reverts: list[Any] = []

    def hang(real: Callable[..., Any], domain: Any, *args: Any) -> None:
        late_reverts.append(domain)
        gate.hold()
        real(domain, *args)
        powers.append(domain.isActive())

    wrapped(monkeypatch, "revertToSnapshot", hang)
    async with asyncio.TaskGroup() as group:
        reverting = group.create_task(provider.revert(machine))
        await gate.reached()
        reverting.cancel()
        stopping = group.create_task(provider.stop(machine))
        while await provider.power(machine) is not PowerState.OFF:
            await settle_loop()
        assert not stopping.done()
        gate.open()
    assert powers == [1], "the revert that was cancelled switched it on again"
    assert await provider.power(machine) is PowerState.OFF


async def test_a_revert_waits_for_one_that_was_cancelled_and_goes_on(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    under_way: list[int] = []

    def hang(real: Callable[..., Any], domain: Any, *args: Any) -> None:
        under_way.append(1)
        gate.hold()
        real(domain, *args)
        assert under_way == [1], "two reverts at once"
        under_way.clear()

    wrapped(monkeypatch, "revertToSnapshot", hang)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(provider.revert(machine_at(host, "up")))
        await gate.reached()
        first.cancel()
        second = group.create_task(provider.revert(machine_at(host, "up")))
        await provider.power(machine_at(host, "up"))
        assert gate.count == 1
        gate.open()
        await second


# --- until it is down --------------------------------------------------------------------------------------------------------------


async def test_a_machine_that_is_off_or_crashed_is_down_at_once(provider: LibvirtProvider, host: str) -> None:
    assert await provider.until_down(machine_at(host, "down")) is Downfall.SWITCHED_OFF
    assert await provider.until_down(machine_at(host, "crashed")) is Downfall.CRASHED


@pytest.mark.parametrize(("deed", "downfall"), [("shutdown", Downfall.SHUT_DOWN), ("destroy", Downfall.SWITCHED_OFF)])
async def test_why_a_machine_runs_no_more_is_told(provider: LibvirtProvider, deed: str, downfall: Downfall) -> None:
    import libvirt

    # The mock's state is shared by all connections to this one, and stays until the last is closed.
    connection = libvirt.open("test:///default")
    domain = connection.lookupByName("test")
    if not domain.isActive():
        domain.create()
    machine = machine_at("test:///default", "test")
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(provider.until_down(machine))
        assert await provider.power(machine) is PowerState.RUNNING
        assert not watching.done()
        getattr(domain, deed)()
    assert watching.result() is downfall
    connection.close()


# --- looking and bounding ----------------------------------------------------------------------------------------------------------


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


# --- threads and connections -------------------------------------------------------------------------------------------------------


async def test_calls_leave_the_loops_thread(provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import libvirt

    threads: set[int] = set()

    def noting(name: str) -> None:
        real = getattr(libvirt.virConnect, name)
        monkeypatch.setattr(
            libvirt.virConnect, name, lambda self, *args: (threads.add(threading.get_ident()), real(self, *args))[1]
        )

    for name in ("lookupByName", "newStream", "close", "isAlive"):
        noting(name)
    machine = machine_at(host, "up")
    for call in (provider.check, provider.revert, provider.screenshot, provider.stop, provider.until_down):
        await call(machine)
    await provider.close()
    assert threads
    assert threading.get_ident() not in threads


async def test_agents_that_hang_hold_up_neither_other_machines_nor_their_own_stop(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    import libvirt_qemu

    def hang(*_: object) -> str:
        gate.hold()
        return "{}"

    monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", hang)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(provider.ask(machine_at(host, "up"), "{}", 30)) for _ in range(20)]
        await gate.reached()
        await provider.revert(machine_at(host, "down"))
        await provider.screenshot(machine_at(host, "up"))
        await provider.stop(machine_at(host, "up"))
        assert not any(ask.done() for ask in asked)
        assert gate.count == 1, "the agent gets one request at a time"
        for ask in asked:
            ask.cancel()
    gate.open()


async def test_a_provider_is_closed_while_its_calls_hang(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    wrapped(monkeypatch, "screenshot", lambda *_: gate.hold())
    async with asyncio.TaskGroup() as group:
        hanging = group.create_task(provider.screenshot(machine_at(host, "up")))
        await gate.reached()
        await provider.close()
        await provider.close()
        await provider.check(machine_at(host, "up"))
        hanging.cancel()


def test_a_process_ends_though_calls_hang(tmp_path: Path) -> None:
    uri = write_host(tmp_path / "host.xml", MockMachine("up", RUNNING))
    script = f"""
import asyncio, threading, libvirt
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.machine import MachineSpec
reached = threading.Event()
libvirt.virDomain.screenshot = lambda *_: (reached.set(), threading.Event().wait())
async def main():
    provider = LibvirtProvider()
    machine = MachineSpec(name="up", provider="libvirt", platform="linux", uri={uri!r}, snapshot="clean", channel="qga")
    await provider.check(machine)
    async with asyncio.TaskGroup() as group:
        hanging = group.create_task(provider.screenshot(machine))
        while not reached.is_set():
            await asyncio.sleep(0)
        hanging.cancel()
    await provider.close()
    print("closed", flush=True)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "closed\n", "")


def test_one_provider_after_another_on_loops_that_end(host: str) -> None:
    async def use() -> None:
        provider = LibvirtProvider()
        await provider.open()
        await provider.revert(machine_at(host, "down"))
        await provider.until_down(machine_at(host, "crashed"))
        await provider.close()

    for _ in range(3):
        asyncio.run(use(), debug=True)


def test_a_loop_that_ends_without_closing_is_survived(host: str, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    async def leave() -> LibvirtProvider:
        provider = LibvirtProvider()
        async with asyncio.TaskGroup() as group:
            hanging = group.create_task(provider.screenshot(machine_at(host, "up")))
            await gate.reached()
            hanging.cancel()
        return provider

    wrapped(monkeypatch, "screenshot", lambda *_: gate.hold())
    left = asyncio.run(leave(), debug=True)
    gate.open()

    async def use() -> None:
        provider = LibvirtProvider()
        await provider.revert(machine_at(host, "down"))
        await provider.close()

    asyncio.run(use(), debug=True)
    assert left is not None


class Loss:
    """Makes connections of the mock die under a call, as those to a daemon do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]) -> None:
        import libvirt

        self.times = 0
        self.tries = 0
        self._dead: set[int] = set()
        self._error = libvirt_error
        real_alive = libvirt.virConnect.isAlive
        monkeypatch.setattr(libvirt.virConnect, "isAlive", lambda conn: id(conn) not in self._dead and real_alive(conn))
        self._opened: list[Any] = []

    def strike(self, connection: Any) -> None:
        self.tries += 1
        if self.times:
            self.times -= 1
            self._dead.add(id(connection))
            self._opened.append(connection)
            raise self._error(SYSTEM_ERROR, "Cannot recv data: Connection reset by peer")


@pytest.fixture
def loss(monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]) -> Loss:
    return Loss(monkeypatch, libvirt_error)


async def test_a_call_whose_connection_is_lost_is_made_again_over_the_next(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, loss: Loss
) -> None:
    def strike(real: Callable[..., Any], domain: Any, *args: Any) -> Any:
        loss.strike(domain.connect())
        return real(domain, *args)

    wrapped(monkeypatch, "state", strike)
    loss.times = 2
    assert await provider.power(machine_at(host, "up")) is PowerState.RUNNING
    assert loss.tries == 3
    loss.times = 100
    with pytest.raises(MachineError, match="was lost"):
        await provider.power(machine_at(host, "up"))
    assert loss.tries == 6, "what ends the daemon each time is not asked for ever"
    loss.times = 0
    assert await provider.power(machine_at(host, "up")) is PowerState.RUNNING


async def test_only_requests_that_may_reach_a_guest_twice_are_asked_again(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, loss: Loss
) -> None:
    import libvirt_qemu

    def answer(domain: Any, request: str, *_: object) -> str:
        loss.strike(domain.connect())
        return '{"return":{}}'

    monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", answer)
    loss.times = 1
    assert await provider.ask(machine_at(host, "up"), '{"execute":"guest-ping"}', 5)
    for request in ('{"execute":"guest-exec"}', '{"execute":"guest-file-write"}', "no JSON"):
        loss.times, loss.tries = 1, 0
        with pytest.raises(GuestUnreachable, match="was lost"):
            await provider.ask(machine_at(host, "up"), request, 5)
        assert loss.tries == 1


async def test_a_hypervisor_that_can_not_be_asked_for_a_while_is_no_downfall(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, loss: Loss
) -> None:
    def strike(real: Callable[..., Any], domain: Any, *args: Any) -> Any:
        loss.strike(domain.connect())
        return real(domain, *args)

    monkeypatch.setattr("malbox_tui.machinery.libvirt.ASK_AGAIN_S", 0.0)
    wrapped(monkeypatch, "state", strike)
    loss.times = 20
    assert await provider.until_down(machine_at(host, "down")) is Downfall.SWITCHED_OFF
    assert loss.tries == 21


async def test_a_hypervisor_that_was_not_there_is_not_asked_at_each_call(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]
) -> None:
    import libvirt

    opened = []

    def refuse(uri: str) -> None:
        opened.append(uri)
        raise libvirt_error(SYSTEM_ERROR, "Failed to connect socket to '/run/libvirt/libvirt-sock': No such file or directory")

    monkeypatch.setattr(libvirt, "open", refuse)
    monkeypatch.setattr("malbox_tui.machinery.link.BACK_OFF_S", 3600.0)
    for _ in range(5):
        with pytest.raises(MachineError, match="systemctl enable --now libvirtd"):
            await provider.check(machine_at(host, "up"))
    assert len(opened) == 1
