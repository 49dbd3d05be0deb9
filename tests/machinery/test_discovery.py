"""What a hypervisor has, as it could be configured."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from malbox_tui.machinery.discovery import FoundMachine, FoundSnapshot, discover
from malbox_tui.machinery.place import dialled, is_local
from malbox_tui.machinery.refusals import MAX_WORDS, Refusal, Unreachable, cleaned, why_unreachable
from malbox_tui.model.machine import PowerState
from tests.machinery.mock_host import RUNNING, MockMachine, write_host

WINDOWS = (
    "<metadata><o:libosinfo xmlns:o='http://libosinfo.org/xmlns/libvirt/domain/1.0'><o:os id='http://microsoft.com/win/10'/>"
    "</o:libosinfo></metadata>"
)


@pytest.mark.needs("libvirt")
async def test_all_machines_are_found_with_what_they_are(tmp_path: Path) -> None:
    asyncio.get_running_loop().set_debug(True)
    uri = write_host(
        tmp_path / "host.xml",
        MockMachine("win10", RUNNING, (("first", "running"), ("clean", "running"), ("off", "shutoff")), more=WINDOWS),
        MockMachine("bare", snapshots=(("off", "shutoff"),), agent=False, card="user"),
    )
    bare, win10 = await discover(uri)
    assert win10 == FoundMachine(
        domain="win10",
        uri=uri,
        power=PowerState.RUNNING,
        platform="windows",
        arch="x64",
        has_agent_channel=True,
        snapshots=win10.snapshots,
        macs=("52:54:00:00:00:01",),
        memory_mb=2048,
        vcpus=2,
        warnings=(),
    )
    assert {
        FoundSnapshot(name, was_running, False) for name, was_running in (("first", True), ("clean", True), ("off", False))
    } == set(win10.snapshots)
    assert win10.snapshot == "clean"
    assert (bare.domain, bare.platform, bare.snapshot, bare.has_agent_channel) == ("bare", "", "", False)
    assert [
        word for word in ("channel", "snapshot of it running", "loopback") if not any(word in text for text in bare.warnings)
    ] == []


@pytest.mark.needs("libvirt")
async def test_a_guest_that_boots_by_uefi_is_to_be_saved_since_no_snapshot_can_be_taken_of_it(tmp_path: Path) -> None:
    pflash = "<loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE.fd</loader>"
    uri = write_host(tmp_path / "host.xml", MockMachine("win11", snapshots=(), loader=pflash))
    (win11,) = await discover(uri)
    (warning,) = win11.warnings
    assert f"`virsh -c {uri} save win11 FILE`" in warning
    assert 'snapshot = "save:FILE"' in warning
    assert "snapshot-create-as" not in warning


@pytest.mark.needs("libvirt")
@pytest.mark.parametrize(
    ("uri", "remedy"),
    [
        ("qemu+unix:///session?socket=/nowhere/libvirt-sock", "systemctl enable --now libvirtd"),
        ("test:///nowhere.xml", "no file /nowhere.xml"),
        ("", "qemu:///system"),
    ],
)
async def test_what_is_not_there_is_told_with_what_to_do(uri: str, remedy: str) -> None:
    with pytest.raises(Unreachable) as caught:
        await discover(uri)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (
            "Cannot recv data: ssh: Could not resolve hostname sbx: Name or service not known: Connection reset by peer",
            "Check the host's name in 'qemu:///system?x=1'",
        ),
        ("Cannot recv data: user@sbx: Permission denied (publickey): Connection reset by peer", "ssh-copy-id"),
        ("Cannot recv data: Host key verification failed.: Connection reset by peer", "accept the host's key"),
        ("Failed to connect socket to '/run/libvirt/libvirt-sock': Permission denied", "usermod -aG libvirt"),
        (
            "authentication unavailable: no polkit agent available to authenticate action 'org.libvirt.unix.manage'",
            "usermod -aG libvirt",
        ),
        ("Failed to connect socket to '/run/libvirt/libvirt-sock': No such file or directory", "systemctl enable"),
        ("something new", "virsh -c 'qemu:///system?x=1' list"),
    ],
)
def test_each_kind_of_failure_has_its_remedy(words: str, remedy: str) -> None:
    assert remedy in why_unreachable("qemu:///system?x=1", Refusal(38, words))


@pytest.mark.parametrize(
    ("uri", "given"),
    [
        ("qemu+ssh://u@h/system", "qemu+ssh://u@h/system?no_tty=1"),
        ("qemu+ssh://u@h/system?keyfile=/k", "qemu+ssh://u@h/system?keyfile=/k&no_tty=1"),
        ("qemu+ssh://h/system?no_tty=0", "qemu+ssh://h/system?no_tty=0"),
        ("qemu:///system", "qemu:///system"),
        ("qemu+unix:///session?socket=/run/x", "qemu+unix:///session?socket=/run/x"),
    ],
)
def test_ssh_never_asks_on_the_terminal(uri: str, given: str) -> None:
    assert dialled(uri) == given


def test_which_hypervisors_are_on_this_host() -> None:
    here = ["qemu:///system", "qemu:///session", "qemu+unix:///session?socket=/x", "test:///default"]
    elsewhere = ["qemu+ssh://h/system", "qemu+tls://h/system", "qemu+tcp://h/system", "qemu://h/system"]
    assert [uri for uri in [*here, *elsewhere] if is_local(uri)] == here


def test_foreign_words_are_printable_one_line_and_bounded() -> None:
    assert cleaned("a\x1b[2Jb\nc\u202e") == "a [2Jb c"
    assert len(cleaned("x" * 10**6)) == MAX_WORDS
