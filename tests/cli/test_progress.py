"""Progress without a terminal, and the account that it is made from."""

from __future__ import annotations

import msgspec

from malbox_tui.cli.progress import ProgressLines
from malbox_tui.cli.tally import Tally
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Refusal, Refused
from malbox_tui.model.task import TaskState

from .builders import EVIL, MALICIOUS, accepted, record


class TurnedClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_summary_comes_at_most_every_two_seconds() -> None:
    said: list[str] = []
    clock, tally = TurnedClock(), Tally()
    lines = ProgressLines(said.append, clock)
    for second in (0.0, 1.9, 2.0, 3.9, 4.0):
        clock.now = second
        tally.received(accepted(int(second * 10)))
        lines.moved_on(tally)
    assert said == ["0 of 3 tasks final", "0 of 5 tasks final"]


def test_what_needs_a_persons_eye_is_told_at_once_and_harmless() -> None:
    said: list[str] = []
    lines = ProgressLines(said.append, TurnedClock())
    lines.task_ended(record(1))
    lines.task_ended(record(2, verdict=MALICIOUS))
    lines.task_ended(record(3, TaskState.TIMED_OUT, EVIL, reason="It took too long.\x1b"))
    assert said == [
        r"task 2 malicious: a.exe: EICAR, \x1b[31mred",
        r"task 3 timed out: \x1b]0;pwned\x07[bold]\x0a\xff: It took too long.\x1b",
    ]


def test_what_a_plugin_had_to_do_without_is_told_once() -> None:
    said: list[str] = []
    lines = ProgressLines(said.append, TurnedClock())
    for task_id, reason in (
        (1, "degraded: rules/a.yar, line 2\x1b"),
        (2, "degraded: rules/a.yar, line 2\x1b"),
        (3, ""),
        (4, "The sample ended."),
    ):
        told = record(task_id)
        plugin = msgspec.structs.replace(told.task.plugins[0], reason=reason)
        lines.task_ended(TaskRecord(msgspec.structs.replace(told.task, plugins=(plugin,)), told.sample))
    assert said == [r"plugin digests is degraded: rules/a.yar, line 2\x1b"]


def test_progress_names_what_needs_an_eye_and_not_what_just_completed() -> None:
    tally = Tally()
    tally.left_over(range(5))
    for task_id, state in enumerate((TaskState.COMPLETED, TaskState.COMPLETED, TaskState.FAILED)):
        tally.ended_as(task_id, state)
    tally.judged(record(1, verdict=MALICIOUS))
    assert tally.progress() == "3 of 5 tasks final, 1 malicious, 1 failed"


def test_the_totals_name_everything_that_was_not_taken_too() -> None:
    tally = Tally()
    tally.left_over([1])
    tally.received(accepted(2))
    tally.received(Refused(SampleName(b"x"), Refusal("empty", "It is empty.")))
    tally.ended_as(1, TaskState.COMPLETED)
    tally.ended_as(2, TaskState.TIMED_OUT)
    tally.judged(record(1, verdict=MALICIOUS))
    assert (
        tally.totals(3.0) == "2 tasks in 3.00 s: 1 completed, 1 timed out · 1 malicious · 1 of earlier runs · 1 refused (empty)"
    )
    assert tally.exit_code() == 1


def test_what_could_not_be_kept_is_not_all_done() -> None:
    tally = Tally()
    tally.received(accepted(1))
    tally.ended_as(1, TaskState.COMPLETED)
    tally.received(Refused(SampleName(b"link"), Refusal("link", "It is a link.")))
    assert tally.exit_code() == 0
    tally.received(Refused(SampleName(b"b.exe"), Refusal("store_failed", "The disk is full.")))
    assert tally.exit_code() == 1


def test_an_end_counts_once() -> None:
    tally = Tally()
    assert tally.ended_as(1, TaskState.COMPLETED)
    assert not tally.ended_as(1, TaskState.COMPLETED)
