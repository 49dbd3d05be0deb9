"""Machines of libvirt are reverted and stopped, and nothing else is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import MachineError, MachineMissing
from malbox_tui.model.machine import Downfall, PowerState
from tests.machinery.conftest import Gate, wrapped
from tests.machinery.mock_host import machine_at
from tests.support.virtual_time import settle_loop

pytestmark = pytest.mark.needs("libvirt")

REVERT_RISKY, SYSTEM_ERROR = 77, 38


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


@pytest.fixture
def shared() -> Iterator[Any]:
    """The mock host whose state all connections of this process share, with its machine running."""
    import libvirt

    connection = libvirt.open("test:///default")
    domain = connection.lookupByName("test")
    if not domain.isActive():
        domain.create()
    yield connection
    for snapshot in domain.listAllSnapshots(0):
        snapshot.delete(0)
    connection.close()


async def test_other_machines_and_snapshots_are_left_alone(provider: LibvirtProvider, shared: Any) -> None:
    def snapshots() -> dict[str, str]:
        return {snapshot.getName(): snapshot.getXMLDesc(0) for snapshot in domain.listAllSnapshots(0)}

    domain = shared.lookupByName("test")
    for name in ("clean", "foreign"):
        domain.snapshotCreateXML(f"<domainsnapshot><name>{name}</name></domainsnapshot>", 0)
    stranger = shared.createXML("<domain type='test'><name>s</name><memory>9</memory><os><type>hvm</type></os></domain>", 0)
    before = snapshots()
    machine = machine_at("test:///default", "test", channel="http")
    await provider.check(machine)
    await provider.revert(machine)
    await provider.stop(machine)
    assert snapshots() == before
    assert stranger.isActive()
    stranger.destroy()


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


@pytest.mark.parametrize(
    ("words", "running_at_reverts"),
    [
        ("Guest agent is not responding: QEMU guest agent is not available due to an error", [True, False]),
        ("Guest agent is not responding: QEMU guest agent is not connected", [True]),
        ("internal error: cannot parse json {: parse error: premature EOF", [True]),
    ],
)
async def test_a_machine_whose_agent_libvirt_holds_for_broken_is_switched_off_and_reverted_once_more(
    provider: LibvirtProvider,
    host: str,
    monkeypatch: pytest.MonkeyPatch,
    libvirt_error: Callable[[int, str], Exception],
    words: str,
    running_at_reverts: list[bool],
) -> None:
    import libvirt_qemu

    found: list[bool] = []

    def see(real: Callable[..., Any], domain: Any, *args: Any) -> None:
        found.append(bool(domain.isActive()))
        real(domain, *args)

    def answer(*_: object) -> str:
        raise libvirt_error(86, words)

    wrapped(monkeypatch, "revertToSnapshot", see)
    monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", answer)
    await provider.revert(machine_at(host, "up"))
    assert found == running_at_reverts
    assert await provider.power(machine_at(host, "up")) is PowerState.RUNNING


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


async def test_a_machine_that_is_off_or_crashed_is_down_at_once(provider: LibvirtProvider, host: str) -> None:
    assert await provider.until_down(machine_at(host, "down")) is Downfall.SWITCHED_OFF
    assert await provider.until_down(machine_at(host, "crashed")) is Downfall.CRASHED


@pytest.mark.parametrize(("deed", "downfall"), [("shutdown", Downfall.SHUT_DOWN), ("destroy", Downfall.SWITCHED_OFF)])
async def test_why_a_machine_runs_no_more_is_told(provider: LibvirtProvider, shared: Any, deed: str, downfall: Downfall) -> None:
    machine = machine_at("test:///default", "test")
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(provider.until_down(machine))
        assert await provider.power(machine) is PowerState.RUNNING
        assert not watching.done()
        getattr(shared.lookupByName("test"), deed)()
    assert watching.result() is downfall
