"""What a person says of a machine on the command line, and how machines are shown there."""

from __future__ import annotations

from typing import Any

import pytest

from malbox_tui.cli.command_records import machine_page_record
from malbox_tui.cli.machine_changes import MachineWords, added, changed
from malbox_tui.cli.machine_page import TITLES, machine_lines, machine_row
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.machine import MachineFacts, MachineMoment, MachineSpec, MachineState, MachineView

WIN10 = MachineSpec(
    name="win10",
    provider="libvirt",
    platform="windows",
    tags=("office",),
    uri="qemu:///system",
    snapshot="clean",
    channel="qga",
    disk_kib_s=900,
    network_kbps=0,
)
HOSTILE = "\x1b]0;pwned\x07\n[bold]"


def test_options_say_what_a_new_machine_is() -> None:
    words = MachineWords(
        uri="qemu:///system", snapshot="clean", platform="windows", tag=("office",), disk_kib_s=900, network_kbps=0
    )
    assert added("win10", words) == WIN10


@pytest.mark.parametrize(
    ("name", "words", "problem"),
    [
        ("win10", MachineWords(), "platform: missing"),
        ("win10", MachineWords(platform="windows"), "uri: missing"),
        ("two words", MachineWords(platform="windows", uri="qemu:///system", snapshot="a"), "name: expected a name"),
        ("m1", MachineWords(platform="linux", provider="simulated", uri="qemu:///system"), "uri: a simulated machine"),
        ("m1", MachineWords(platform="linux", provider="magic"), "provider: "),
    ],
)
def test_what_no_machine_can_be_is_told_by_its_key(name: str, words: MachineWords, problem: str) -> None:
    with pytest.raises(MalboxError) as caught:
        added(name, words)
    assert str(caught.value).startswith(problem)


def test_pairs_and_options_change_a_machine_and_leave_the_rest() -> None:
    after = changed(
        WIN10, ["tags=office, word", "disk_kib_s=", "network-kbps=64", "max-failures=7"], MachineWords(address="10.0.0.4")
    )
    assert (after.tags, after.max_failures, after.address) == (("office", "word"), 7, "10.0.0.4")
    assert (after.disk_kib_s, after.network_kbps) == (None, 64)
    assert (after.uri, after.snapshot, after.channel) == (WIN10.uri, WIN10.snapshot, WIN10.channel)
    assert changed(WIN10, ["tags="], MachineWords()).tags == ()


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        ("office", "'office' is no KEY=VALUE"),
        ("name=other", "A machine keeps its name."),
        ("max_failures=many", "max_failures: 'many' is not a whole number."),
        ("max_failures=0", "max_failures: "),
        ("snapshot=", "snapshot: missing"),
        ("snapshto=x", "snapshto: "),
    ],
)
def test_a_change_that_makes_no_sense_is_told(pair: str, problem: str) -> None:
    with pytest.raises(MalboxError) as caught:
        changed(WIN10, [pair], MachineWords())
    assert str(caught.value).startswith(problem)
    with pytest.raises(MalboxError, match="Say what is to be changed"):
        changed(WIN10, [], MachineWords())


def view(**fields: Any) -> MachineView:
    basic = {"name": "win10", "provider": "libvirt", "platform": "windows", "arch": "x64", "tags": ("office",)}
    return MachineView(**{**basic, "state": MachineState.READY, "since": 100.0, "spec": WIN10, **fields})


def test_a_row_says_why_since_when_how_often_and_for_whom() -> None:
    machine = view(state=MachineState.LEASED, task_id=7, failures=2, reason="odd", leaving=True)
    row = dict(zip(TITLES, machine_row(machine, 160.0), strict=True))
    assert row == {
        "name": "win10",
        "system": "windows/x64",
        "tags": "office",
        "state": "leased (leaving)",
        "for": "1 min 00 s",
        "task": "#7",
        "failures": "2",
        "reason": "odd",
    }


def test_a_page_has_what_it_is_what_is_known_of_it_and_its_history_the_latest_first() -> None:
    history = (
        MachineMoment(at=90.0, state=MachineState.LEASED, task_id=3),
        MachineMoment(at=100.0, state=MachineState.READY, reason="tried"),
    )
    facts = MachineFacts(memory_mb=2048, vcpus=2, warnings=("Its guest has no clock.",))
    assert list(machine_lines(view(facts=facts, history=history), 160.0)) == [
        "Machine win10: ready",
        "  for           1 min 00 s",
        "  system        windows/x64",
        "  tags          office",
        "  provider      libvirt",
        "  uri           qemu:///system",
        "  snapshot      clean",
        "  disk_kib_s    900",
        "  network_kbps  0",
        "  memory        2048 MiB",
        "  processors    2",
        "  ! Its guest has no clock.",
        "",
        "History",
        "  1970-01-01T00:01:40.000Z  ready: tried",
        "  1970-01-01T00:01:30.000Z  leased, task #3",
    ]
    record = machine_page_record(view(facts=facts, history=history))
    assert record["record"] == "machine"
    assert (record["memory_mb"], record["warnings"], record["configuration"]["snapshot"]) == (
        2048,
        ["Its guest has no clock."],
        "clean",
    )
    assert record["history"][0] == {"at": "1970-01-01T00:01:30.000Z", "state": "leased", "task_id": 3, "reason": ""}


def test_a_machine_of_which_nothing_is_known_has_a_page_all_the_same() -> None:
    assert len(list(machine_lines(view(spec=None), 160.0))) == 5
    assert machine_page_record(view(spec=None))["configuration"] == {}


def test_hostile_text_is_shown_and_never_obeyed() -> None:
    spec = MachineSpec(name=HOSTILE, provider="libvirt", platform="linux", domain=HOSTILE, watch=(HOSTILE,))
    facts = MachineFacts(warnings=(HOSTILE,))
    moments = (MachineMoment(at=1.0, state=MachineState.QUARANTINED, reason=HOSTILE),)
    machine = view(name=HOSTILE, tags=(HOSTILE,), reason=HOSTILE, spec=spec, facts=facts, history=moments)
    for text in (*machine_row(machine, 1.0), *machine_lines(machine, 1.0), str(machine_page_record(machine))):
        assert text.isprintable(), text
