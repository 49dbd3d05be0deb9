"""Which machines of libvirt can be used, and what is said of those that can't."""

from __future__ import annotations

import pytest

from malbox_tui.machinery import binding
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import MachineError, MachineMisconfigured, MachineMissing
from malbox_tui.model.machine import PowerState
from tests.machinery.mock_host import machine_at

pytestmark = pytest.mark.needs("libvirt")


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
        (("by-uefi",), MachineMissing, 'save by-uefi FILE`, and write snapshot = "save:FILE"'),
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
