"""Machines of libvirt on a real daemon with real guests: what only these can do, and what becomes of calls when either dies."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.machinery import line
from malbox_tui.machinery.discovery import discover
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import GuestRefused, GuestUnreachable, MachineError, MachineMissing
from malbox_tui.model.machine import Downfall, MachineSpec, PowerState, Throttle
from tests.machinery.mock_host import machine_at
from tests.machinery.test_pcap import packets
from tests.rig.host import RigHost

LIMIT_S = 120.0
TICK_S = 0.005


class Bench:
    """A provider on a rig, and what a test asks of its guests."""

    def __init__(self, rig: RigHost, provider: LibvirtProvider) -> None:
        self.rig = rig
        self.provider = provider
        self.machine = self.named("lin-1")
        self.other = self.named("lin-2")

    def named(self, name: str, **options: object) -> MachineSpec:
        return machine_at(self.rig.uri, name, **options)

    async def off_loop(self, call: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, call)

    async def libvirt(self, call: Callable[[Any], Any]) -> Any:
        """What an operator does to the hypervisor meanwhile, over a connection of his own."""
        import libvirt

        def work() -> Any:
            connection = libvirt.open(self.rig.uri)
            try:
                return call(connection)
            finally:
                connection.close()

        return await self.off_loop(work)

    async def ask(self, command: str, machine: MachineSpec | None = None, **arguments: object) -> Any:
        request = json.dumps(
            {"execute": command, "arguments": {name.replace("_", "-"): value for name, value in arguments.items()}}
        )
        return json.loads(await self.provider.ask(machine or self.machine, request, 10))["return"]

    async def up(self, machine: MachineSpec | None = None) -> None:
        """Reverted and answering."""
        machine = machine or self.machine
        await self.provider.revert(machine)
        while True:
            try:
                await self.ask("guest-ping", machine)
                return
            except GuestUnreachable:
                await self.tick()

    async def sh(self, script: str, machine: MachineSpec | None = None) -> str:
        """What a script in the guest prints."""
        started = await self.ask("guest-exec", machine, path="/bin/sh", arg=["-c", script], capture_output=True)
        while not (status := await self.ask("guest-exec-status", machine, pid=started["pid"]))["exited"]:
            await self.tick()
        return base64.b64decode(status.get("out-data", "")).decode()

    async def begin(self, script: str) -> None:
        """Have the guest run a script that nobody waits for."""
        await self.ask("guest-exec", path="/bin/sh", arg=["-c", script])

    async def tick(self) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(10 * TICK_S, over.set_result, None)
        await over


class Stalls:
    """How long the loop let a timer wait that was due, at worst."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + TICK_S
        self._timer = self._loop.call_at(self._due, self._tick)
        self.longest_s = 0.0

    def _tick(self) -> None:
        self.longest_s = max(self.longest_s, self._loop.time() - self._due)
        self._due = self._loop.time() + TICK_S
        self._timer = self._loop.call_at(self._due, self._tick)

    def end(self) -> None:
        self._timer.cancel()


@pytest.fixture
async def bench(rig: RigHost, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    provider = LibvirtProvider()
    bench = Bench(rig, provider)
    stalls = Stalls()
    async with asyncio.timeout(LIMIT_S):
        yield bench
        stalls.end()
        print(f"\n{request.node.name}: the loop's longest stall was {1000 * stalls.longest_s:.1f} ms")  # noqa: T201 - measured, not asserted
        for machine in (bench.machine, bench.other):
            await provider.stop(machine)
        await provider.close()


async def test_a_reverted_machine_answers_and_has_forgotten_everything(bench: Bench) -> None:
    facts = await bench.provider.check(bench.machine)
    assert facts.memory_mb is not None
    await bench.up()
    await bench.sh("echo x > /data/dropped; echo x > /tmp/dropped; sync")
    await bench.up()
    assert await bench.sh("ls /data/dropped /tmp/dropped 2>/dev/null") == ""
    await bench.provider.stop(bench.machine)
    assert await bench.provider.power(bench.machine) is PowerState.OFF


async def test_what_the_agent_refuses_is_told_in_its_words(bench: Bench) -> None:
    await bench.up()
    with pytest.raises(GuestRefused, match="No such file"):
        await bench.ask("guest-file-open", path="/nowhere", mode="r")
    with pytest.raises(GuestRefused, match="guest-nonsense"):
        await bench.ask("guest-nonsense")
    with pytest.raises(GuestRefused, match="too large"):
        await bench.ask("guest-file-open", path="x" * 5_000_000)
    await bench.ask("guest-ping")


async def test_a_reply_that_libvirt_can_not_carry_ends_nothing_of_ours(bench: Bench) -> None:
    await bench.up()
    started = await bench.ask("guest-exec", path="/bin/sh", arg=["-c", "head -c 4000000 /dev/zero"], capture_output=True)
    with pytest.raises((GuestRefused, GuestUnreachable)):
        while not (await bench.ask("guest-exec-status", pid=started["pid"]))["exited"]:
            await bench.tick()
    await bench.ask("guest-ping")


@pytest.mark.parametrize(("script", "downfall"), [("poweroff -f", Downfall.SHUT_DOWN), ("echo c > /proc/sysrq-trigger", None)])
async def test_why_a_machine_runs_no_more_is_told(bench: Bench, script: str, downfall: Downfall | None) -> None:
    await bench.up()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(bench.provider.until_down(bench.machine))
        if downfall is None:
            # The guest's kernel panics, and stays where it is: it runs still.
            await bench.begin(script)
            await bench.tick()
            assert not watching.done()
            await bench.libvirt(lambda connection: connection.lookupByName("lin-1").destroy())
        else:
            await bench.begin(script)
        assert await watching is (downfall or Downfall.SWITCHED_OFF)


async def test_a_hypervisor_process_that_is_killed_is_a_failure(bench: Bench) -> None:
    await bench.up()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(bench.provider.until_down(bench.machine))
        await bench.provider.power(bench.machine)
        bench.rig.kill_guest("lin-1")
        assert await watching is Downfall.FAILED
    with pytest.raises(GuestUnreachable):
        await bench.ask("guest-ping")
    await bench.up()


async def test_a_machine_whose_process_died_under_a_request_to_its_agent_answers_after_the_next_revert(bench: Bench) -> None:
    await bench.up()
    bench.rig.suspend_guest("lin-1")
    with pytest.raises(GuestUnreachable):
        await bench.provider.ask(bench.machine, '{"execute":"guest-ping"}', 1)
    async with asyncio.TaskGroup() as ending:
        ending.create_task(bench.libvirt(lambda connection: connection.lookupByName("lin-1").destroy()))
        await bench.off_loop(lambda: bench.rig.wait_for_end_of_suspended("lin-1"))
        bench.rig.kill_guest("lin-1")
    async with asyncio.timeout(LIMIT_S / 4):
        await bench.up()


async def test_a_daemon_that_is_killed_and_starts_anew_in_mid_run_is_no_downfall(bench: Bench) -> None:
    await bench.up()
    await bench.begin("sleep 1000")
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(bench.provider.until_down(bench.machine))
        started = await bench.ask("guest-exec", path="/bin/sleep", arg=["1000"])
        await bench.off_loop(bench.rig.kill_daemon)
        asked = group.create_task(bench.ask("guest-exec-status", pid=started["pid"]))
        looked = group.create_task(bench.provider.power(bench.machine))
        await bench.tick()
        await bench.off_loop(bench.rig.start_daemon)
        assert await asked == {"exited": False}
        assert await looked is PowerState.RUNNING
        assert not watching.done()
        await bench.provider.stop(bench.machine)
        assert await watching is Downfall.SWITCHED_OFF


async def test_what_dies_while_the_daemon_is_away_is_told_when_it_is_back(bench: Bench) -> None:
    await bench.up()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(bench.provider.until_down(bench.machine))
        await bench.provider.power(bench.machine)
        await bench.off_loop(bench.rig.kill_daemon)
        bench.rig.kill_guest("lin-1")
        await bench.off_loop(bench.rig.start_daemon)
        assert await watching is Downfall.FAILED


async def test_a_daemon_that_is_frozen_goes_on_where_it_was(bench: Bench) -> None:
    await bench.up()
    bench.rig.signal_daemon(signal.SIGSTOP)
    try:
        async with asyncio.TaskGroup() as group:
            calls: list[asyncio.Task[Any]] = [
                group.create_task(bench.ask("guest-ping")),
                group.create_task(bench.provider.power(bench.machine)),
                group.create_task(bench.provider.screenshot(bench.machine)),
            ]
            watching = group.create_task(bench.provider.until_down(bench.machine))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2.0):
                    await bench.provider.check(bench.machine)
            assert not any(call.done() for call in calls)
            bench.rig.signal_daemon(signal.SIGCONT)
            await asyncio.gather(*calls)
            assert not watching.done()
            await bench.provider.stop(bench.machine)
            await watching
    finally:
        bench.rig.signal_daemon(signal.SIGCONT)


async def test_a_daemon_that_is_frozen_for_too_long_is_given_up_and_found_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "KEEPALIVE_S", 1)
    monkeypatch.setattr(line, "KEEPALIVE_TRIES", 1)
    await bench.up()
    bench.rig.signal_daemon(signal.SIGSTOP)
    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(bench.provider.until_down(bench.machine))
            with pytest.raises(GuestUnreachable, match="was lost"):
                await bench.ask("guest-exec", path="/bin/true")
            pinged = group.create_task(bench.ask("guest-ping"))
            bench.rig.signal_daemon(signal.SIGCONT)
            assert await pinged == {}
            assert not watching.done()
            watching.cancel()
    finally:
        bench.rig.signal_daemon(signal.SIGCONT)


async def test_agents_that_hang_hold_up_neither_other_machines_nor_their_own_stop(bench: Bench) -> None:
    await bench.up()
    await bench.begin("kill -STOP $(pidof qemu-ga)")
    with pytest.raises(TimeoutError):
        while True:
            async with asyncio.timeout(1.0):
                await bench.ask("guest-ping")
    async with asyncio.TaskGroup() as group:
        hanging = [group.create_task(_outcome(bench.ask("guest-ping"))) for _ in range(6)]
        await bench.up(bench.other)
        assert await bench.sh("echo hello", bench.other) == "hello\n"
        await bench.provider.screenshot(bench.machine)
        assert not hanging[-1].done()
        await bench.provider.stop(bench.machine)
    assert hanging[-1].result() is GuestUnreachable


async def _outcome(work: Awaitable[object]) -> object:
    try:
        return await work
    except MachineError as error:
        return type(error)


async def test_a_machine_whose_snapshot_was_deleted_is_missing_and_its_others_stay(bench: Bench) -> None:
    def replace(connection: Any) -> None:
        domain = connection.lookupByName("lin-2")
        domain.snapshotCreateXML("<domainsnapshot><name>foreign</name></domainsnapshot>", 0)
        domain.snapshotLookupByName("spare").delete(0)

    def names(connection: Any) -> list[str]:
        return sorted(connection.lookupByName("lin-2").snapshotListNames(0))

    spare = bench.named("lin-2", snapshot="spare")
    await bench.up(bench.other)
    await bench.libvirt(
        lambda connection: connection.lookupByName("lin-2").snapshotCreateXML(
            "<domainsnapshot><name>spare</name></domainsnapshot>", 0
        )
    )
    await bench.up(spare)
    await bench.libvirt(replace)
    for call in (bench.provider.revert, bench.provider.check):
        with pytest.raises(MachineMissing, match="no snapshot 'spare'"):
            await call(spare)
    assert await bench.libvirt(names) == ["clean", "foreign"]
    await bench.up(bench.other)
    await bench.libvirt(lambda connection: connection.lookupByName("lin-2").snapshotLookupByName("foreign").delete(0))


async def test_traffic_is_recorded_until_the_end_and_when_the_guest_goes_down(bench: Bench, tmp_path: Path) -> None:
    await bench.up()
    capture = await bench.provider.capture(bench.machine, tmp_path / "ended.pcap")
    await bench.sh("ping -c1 -W1 10.0.2.2")
    await capture.end()
    await capture.end()
    size = (tmp_path / "ended.pcap").stat().st_size
    arp = b"\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01"
    assert any(arp in packet for _, packet in packets((tmp_path / "ended.pcap").read_bytes()))
    cut = await bench.provider.capture(bench.machine, tmp_path / "cut.pcap")
    await bench.begin("ping -c1 -W1 10.0.2.2; poweroff -f")
    assert await bench.provider.until_down(bench.machine) is Downfall.SHUT_DOWN
    await cut.end()
    assert any(arp in packet for _, packet in packets((tmp_path / "cut.pcap").read_bytes()))
    assert (tmp_path / "ended.pcap").stat().st_size == size
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


async def test_memory_and_screen_are_looked_at_and_the_machine_goes_on(bench: Bench, tmp_path: Path) -> None:
    await bench.up()
    picture = await bench.provider.screenshot(bench.machine)
    assert picture.content.startswith(b"\x89PNG")
    await bench.provider.dump_memory(bench.machine, tmp_path / "memory.elf")
    with (tmp_path / "memory.elf").open("rb") as dump:
        assert dump.read(4) == b"\x7fELF"
    assert (tmp_path / "memory.elf").stat().st_mode & 0o777 == 0o600
    assert await bench.provider.power(bench.machine) is PowerState.RUNNING
    assert await bench.sh("echo hello") == "hello\n"


async def test_a_dump_that_is_given_up_lets_the_machine_go_on(bench: Bench, tmp_path: Path) -> None:
    await bench.up()
    async with asyncio.TaskGroup() as group:
        dumping = group.create_task(bench.provider.dump_memory(bench.machine, tmp_path / "memory.elf"))
        while not any(path.stat().st_size for path in tmp_path.glob("memory.elf")):
            await bench.tick()
        dumping.cancel()
    while list(tmp_path.iterdir()):
        await bench.tick()
    assert await bench.sh("echo hello") == "hello\n"


async def test_a_running_machine_is_cut_off_its_network_and_its_disk_slowed_down(bench: Bench) -> None:
    await bench.up()
    assert await bench.sh("cat /sys/class/net/eth0/carrier") == "1\n"
    await bench.provider.throttle(bench.machine, Throttle(network_kbps=0, disk_kib_s=512))
    assert await bench.sh("cat /sys/class/net/eth0/carrier") == "0\n"
    tuned = await bench.libvirt(lambda connection: connection.lookupByName("lin-1").blockIoTune("vda", 0))
    assert tuned["total_bytes_sec"] == 512 * 1024
    await bench.up()
    assert await bench.sh("cat /sys/class/net/eth0/carrier") == "1\n"


async def test_a_machine_is_reverted_to_a_saved_image(bench: Bench) -> None:
    image = bench.rig.root / "out/lin-2.save"
    saved = bench.named("lin-2", snapshot=f"save:{image}")
    with pytest.raises(MachineMissing, match="virsh"):
        await bench.provider.check(saved)
    await bench.up(bench.other)
    await bench.sh("echo x > /data/base; sync", bench.other)
    await bench.libvirt(lambda connection: connection.lookupByName("lin-2").save(str(image)))
    assert (await bench.provider.check(saved)).memory_mb is not None
    for _ in range(2):
        await bench.up(saved)
        assert await bench.sh("ls /data | grep -v lost", saved) == "base\n"
        await bench.sh("echo x > /data/dropped; sync", saved)
    await bench.provider.stop(saved)
    pools = await bench.libvirt(lambda connection: [pool.name() for pool in connection.listAllStoragePools(0)])
    assert pools == []
    image.unlink()


async def test_what_is_there_is_found(bench: Bench) -> None:
    first, second, *_ = await discover(bench.rig.uri)
    assert (first.domain, second.domain) == ("lin-1", "lin-2")
    assert (first.platform, first.arch, first.snapshot, first.has_agent_channel) == ("linux", "x64", "clean", True)
    assert re.fullmatch(r"52:54:00(:[0-9a-f]{2}){3}", first.macs[0])
