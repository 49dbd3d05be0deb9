"""What `doctor` says of machines, with libvirt's own mock for a hypervisor."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.config.machine_list import listed
from malbox_tui.machinery import binding
from malbox_tui.machinery.domain_xml import parse_domain
from malbox_tui.machinery.survey import MachineLook
from malbox_tui.model.machine import MachineSpec
from malbox_tui.runtime import machine_diagnosis
from malbox_tui.runtime.finding import Finding, Health
from malbox_tui.runtime.kvm_probe import KvmProbe
from malbox_tui.runtime.machine_diagnosis import diagnose_machines
from tests.support.mock_hypervisor import AGENT, RUNNING, MockDomain, card, mock_hypervisor

pytestmark = pytest.mark.needs("libvirt")


def machine(name: str, uri: str, **fields: Any) -> MachineSpec:
    return MachineSpec(
        **{"name": name, "provider": "libvirt", "platform": "linux", "uri": uri, "snapshot": "clean", "channel": "qga", **fields}
    )


def findings(*machines: MachineSpec) -> list[Finding]:
    return list(diagnose_machines(listed(machines)))


def bad(found: list[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.health is not Health.OK]


def only(found: list[Finding], what: str) -> Finding:
    (finding,) = (finding for finding in found if finding.what == what)
    return finding


def test_without_machines_of_libvirts_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_diagnosis, "Survey", None)
    assert findings(MachineSpec(name="played", provider="simulated", platform="linux")) == []


def test_a_machine_that_is_as_it_should_be_is_told_in_one_line(tmp_path: Path) -> None:
    uri = mock_hypervisor(tmp_path, MockDomain("lin-1", AGENT + card("52:54:00:00:00:01")))
    found = findings(machine("lin-1", uri))
    assert bad(found) == []
    assert only(found, "machine").detail == "lin-1: snapshot clean is there, off now (256 MiB, 2 CPUs)"
    assert only(found, "network").detail == "lin-1: its network closed leads nowhere but to this host's bridge"
    assert only(found, "libvirt").detail.endswith(", 1 domain")


def test_what_is_wrong_with_one_machine_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    uri = mock_hypervisor(
        tmp_path, MockDomain("off", snapshots=(("clean", "shutoff"),)), MockDomain("deaf", ""), MockDomain("bare", snapshots=())
    )
    found = findings(*(machine(name, uri) for name in ("off", "deaf", "bare", "gone")))
    failures = {finding.detail.partition(":")[0]: finding for finding in found if finding.what == "machine"}
    assert {finding.health for finding in failures.values()} == {Health.FAIL}
    assert failures["off"].detail == "off: its snapshot 'clean' was taken while it was off"
    assert failures["deaf"].detail == "deaf: it has no channel to a guest agent"
    assert failures["bare"].detail == "bare: it has no snapshot 'clean' (it has none)"
    assert failures["gone"].detail == f"gone: {uri} has no domain 'gone'"
    assert all(finding.remedy for finding in failures.values())


def test_two_machines_with_one_network_card_address_are_told(tmp_path: Path) -> None:
    twins = [MockDomain(name, AGENT + card("52:54:00:00:00:01")) for name in ("a", "b")]
    found = findings(*(machine(name, mock_hypervisor(tmp_path, *twins)) for name in ("a", "b")))
    (failure,) = bad(found)
    assert failure.detail.startswith("b: the machine a has the network card address 52:54:00:00:00:01 already")


def test_a_machine_that_is_there_twice_is_not_looked_at(tmp_path: Path) -> None:
    uri = mock_hypervisor(tmp_path, MockDomain("lin-1"))
    (failure,) = bad(findings(machine("lin-1", uri), machine("other", uri, domain="lin-1")))
    assert failure.detail == f"other is not used: lin-1 is the domain lin-1 at {uri} already"
    assert failure.remedy == "Name another domain, or remove one of the two"


@pytest.mark.parametrize(
    ("network_card", "health", "detail"),
    [
        (card("52:54:00:00:00:01", "open"), Health.WARN, "m: its network open leads out of the host (forward mode nat)"),
        (card("52:54:00:00:00:01", "none"), Health.FAIL, "m: there is no network none"),
        (card("52:54:00:00:00:01", "br0", "bridge"), Health.WARN, "m: its network card is on the host's bridge br0"),
    ],
    ids=["leads out", "missing", "bridge"],
)
def test_where_a_network_card_leads_is_told(tmp_path: Path, network_card: str, health: Health, detail: str) -> None:
    found = findings(machine("m", mock_hypervisor(tmp_path, MockDomain("m", AGENT + network_card))))
    network = only(found, "network")
    assert network.health is health
    assert network.detail.startswith(detail)
    assert network.remedy


def test_a_card_by_which_samples_reach_this_hosts_loopback_is_a_warning(tmp_path: Path) -> None:
    user = card("52:54:00:00:00:01", kind="user")
    (warning,) = bad(findings(machine("m", mock_hypervisor(tmp_path, MockDomain("m", AGENT + user)))))
    assert warning.health is Health.WARN
    assert "samples reach what listens on this host's loopback" in warning.detail
    assert warning.remedy == "Use an isolated network instead"


def test_a_guest_that_runs_and_whose_agent_says_nothing_is_a_warning(tmp_path: Path) -> None:
    found = findings(machine("m", mock_hypervisor(tmp_path, MockDomain("m", state=RUNNING))))
    (warning,) = bad(found)
    assert (warning.what, warning.health) == ("agent", Health.WARN)


def test_a_hypervisor_that_is_not_there_is_a_failure_with_the_remedy(tmp_path: Path) -> None:
    missing = f"qemu+unix:///session?socket={tmp_path}/none"
    (failure,) = findings(machine("m", missing))[-1:]
    assert (failure.what, failure.health) == ("libvirt", Health.FAIL)
    assert failure.detail.startswith(f"{missing} can't be reached")
    assert "libvirt's daemon does not run there" in failure.remedy


def test_a_hypervisor_that_hangs_keeps_nothing_from_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_diagnosis, "CONNECT_S", 0.2)
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as frozen:
        frozen.bind("s")
        frozen.listen()
        hanging = f"qemu+unix:///session?socket={tmp_path}/s"
        found = findings(machine("a", hanging), machine("b", mock_hypervisor(tmp_path, MockDomain("b"))))
    assert [finding.health for finding in found if finding.what == "libvirt"] == [Health.FAIL, Health.OK]
    assert any(finding.detail.startswith("b: snapshot clean is there") for finding in found)


def test_without_the_module_there_is_one_failure_a_hypervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise binding.LibvirtNotInstalled("No module named 'libvirt'")

    monkeypatch.setattr("malbox_tui.machinery.survey.start_event_loop", missing)
    found = findings(machine("a", "qemu+ssh://h/system"), machine("b", "qemu+ssh://h/system"))
    assert [finding.what for finding in found] == ["libvirt"]
    assert "pip install 'malbox-tui[libvirt]'" in found[0].remedy


@pytest.mark.parametrize(
    ("kind", "works", "expected"),
    [
        ("kvm", True, []),
        ("kvm", None, []),
        ("kvm", False, [(Health.FAIL, "m: it needs KVM, and it is a trap")]),
        ("qemu", True, [(Health.WARN, "m: it is emulated (TCG), many times slower than with KVM")]),
    ],
)
def test_a_machine_that_needs_what_this_host_has_not_is_told(
    kind: str, works: bool | None, expected: list[tuple[Health, str]]
) -> None:
    look = MachineLook(parse_domain(f"<domain type='{kind}'/>"), (), "")
    kvm = KvmProbe(works, "it is a trap", "use another host")
    found = machine_diagnosis._processor("m", machine("m", "qemu:///system"), look, kvm)
    assert [(finding.health, finding.detail) for finding in found] == expected
