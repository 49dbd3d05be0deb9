"""What is told of one machine, in lines of any width."""

from __future__ import annotations

import msgspec
import pytest

from malbox_tui.model.machine import MachineFacts, MachineMoment, MachineState, MachineView
from malbox_tui.model.task import TaskState
from malbox_tui.tui.live import LiveTask
from malbox_tui.tui.machine_page import SHOWN_MOMENTS, machine_lines
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.task_page import in_order
from tests.tui.machines_shown import BUSY, FREE, HISTORY
from tests.tui.scripted import NOW, plugin_run

MOMENT = Moment(NOW)


def _told(given: MachineView, task: LiveTask | None = None, width: int = 76) -> str:
    lines = machine_lines(given, task, MOMENT, lambda at: f"T{NOW - at:g}", width)
    assert all(line.cell_len <= width for line in lines)
    return "\n".join(line.plain.rstrip() for line in lines)


def test_a_machines_page_says_what_it_is_and_what_it_does() -> None:
    facts = MachineFacts(memory_mb=4096, vcpus=2, warnings=("It reaches the internet.", "It has no sound."))
    told = _told(
        msgspec.structs.replace(BUSY, facts=facts, tags=("office",), failures=1, leaving=True),
        LiveTask(2, "a.exe", TaskState.RUNNING),
    )
    for line in (
        "Machine win10-1  ● leased",
        "            a task has it; since T42, for 0:42",
        "            it goes out of service as soon as nothing uses it",
        "task        #2 a.exe (Enter opens it)",
        "failures    1 failure since it last served a task well; 3 in a row",
        "system      windows/x64",
        "tags        office",
        "provider    libvirt",
        "uri         qemu:///system",
        "domain      vm-7",
        "snapshot    clean",
        "channel     qga at 10.0.0.7",
        "watched     C:\\Users, C:\\Windows",
        "disk limit  512 KiB/s",
        "network     none",
        "memory      4096 MiB",
        "vcpus       2",
        "! warning   It reaches the internet.",
        "! warning   It has no sound.",
    ):
        assert f"{line}\n" in told


def test_what_is_not_known_is_not_told() -> None:
    told = _told(FREE)
    for word in ("uri", "memory", "warning", "task  ", "reason"):
        assert f"\n{word}" not in told
    assert told.endswith("nothing yet")


def test_a_long_reason_is_told_whole() -> None:
    reason = "the snapshot is not there: make it, or name another one " * 5
    told = " ".join(_told(msgspec.structs.replace(FREE, state=MachineState.QUARANTINED, reason=reason), width=50).split())
    assert f"reason {reason.strip()} failures" in told


@pytest.mark.parametrize("width", [44, 57, 76, 200])
def test_the_history_is_told_the_latest_first_with_how_long_each_state_was(width: int) -> None:
    reason = "the guest did not answer within 120 s"
    history = (*HISTORY, MachineMoment(at=NOW - 12, state=MachineState.REVERTING, reason=reason))
    told = _told(msgspec.structs.replace(BUSY, history=history), width=width)
    lines = told[told.index("History") :].splitlines()
    heads = [line.split()[:4] for line in lines[1:] if line.startswith("T")]
    assert [head[1:] if head[0] == "T42" else head[1:3] for head in heads] == [
        ["0:12", "↻"],
        ["0:30", "●", "leased"],
        ["0:58", "○"],
    ]
    assert " ".join("".join(lines).split()).count("120 s") == 1


def test_of_a_long_history_the_latest_changes_are_told() -> None:
    history = tuple(MachineMoment(at=NOW - 100 + number, state=MachineState.READY) for number in range(SHOWN_MOMENTS + 5))
    told = _told(msgspec.structs.replace(FREE, history=history))
    assert told.count("○ ready") == SHOWN_MOMENTS + 1
    assert told.endswith("and 5 earlier changes")


def test_runs_on_the_sample_come_first_and_those_on_one_thing_together() -> None:
    runs = [plugin_run(1, name, subject=subject) for name, subject in (("a", "x"), ("b", ""), ("c", "y"), ("d", "x"), ("e", ""))]
    assert "".join(run.name for run in in_order(runs)) == "beadc"
