"""How far an intake is is told in one line that fits, and a stopped one says exactly what it took."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from malbox_tui.model.errors import RefusedContent
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Accepted, Duplicate, Offer, Opened, OpenedArchive, Receipt, Refusal, Refused
from malbox_tui.model.task import TaskState
from malbox_tui.tui.intake_run import IntakeRun
from malbox_tui.tui.intake_words import outcome_words, progress_line
from malbox_tui.tui.moment import Moment
from tests.tui.hostile import NAMES

MOMENT = Moment(0.0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def accepted(number: int, archive: str = "") -> Accepted:
    return Accepted(SampleName(b"%d" % number, b"", archive), "a" * 64, 1, number)


def refused(name: bytes = b"x") -> Refused:
    return Refused(SampleName(name), Refusal("link", "It is a link."))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def run_of(clock: Callable[[], float], total: int | None, *receipts: Receipt) -> IntakeRun:
    run = IntakeRun("/in", total, clock)
    for receipt in receipts:
        run.note(receipt)
    return run


def test_progress_has_a_bar_a_rate_and_the_rest_time(clock: Clock) -> None:
    run = run_of(clock, 50_000, *(accepted(number) for number in range(12_500)), refused())
    clock.now += 10
    said = progress_line(run, MOMENT, 120).plain
    assert "█████░░░░░░░░░░░░░░░ 12,501 of 50,000 · 1,250/s · 0:29 left · 1 refused · esc stops" in said


@pytest.mark.parametrize("width", [120, 80, 60, 40, 20, 3, 1])
def test_progress_fits(width: int, clock: Clock) -> None:
    run = run_of(clock, 50_000, *(accepted(number) for number in range(1000)))
    clock.now += 3600
    assert progress_line(run, MOMENT, width).cell_len == width


def test_what_has_no_total_yet_says_how_much_there_was(clock: Clock) -> None:
    assert "0 so far · esc stops" in progress_line(run_of(clock, None), MOMENT, 80).plain
    assert "0 of 0" in progress_line(run_of(clock, 0), MOMENT, 80).plain


def test_members_are_beside_the_count_of_their_archives(clock: Clock) -> None:
    archive = OpenedArchive(sha256="b" * 64, size_bytes=9, words="zip archive: 2 taken")
    run = run_of(clock, 2, accepted(1, "b" * 64), accepted(2, "b" * 64), Opened(SampleName(b"a.zip"), archive))
    assert (run.settled, len(run.task_ids), run.not_taken) == (1, 2, 1)


@pytest.mark.parametrize("name", NAMES)
def test_what_came_of_it_is_safe_to_show(name: bytes, clock: Clock) -> None:
    duplicate = Duplicate(SampleName(b"d"), "a" * 64, 1, 7, TaskState.COMPLETED)
    said = outcome_words(run_of(clock, 3, accepted(1), duplicate, refused(name))).plain
    assert said.startswith("1 added, 1 known already, 1 refused: ")
    assert said.isprintable()


async def offers(*contents: list[bytes]) -> AsyncIterator[Offer]:
    async def chunks(content: list[bytes]) -> AsyncIterator[bytes]:
        for chunk in content:
            yield chunk

    for number, content in enumerate(contents):
        yield Offer(SampleName(b"%d" % number), chunks(content))


async def test_a_stopped_intake_ends_with_what_it_has_and_refuses_what_is_being_read(clock: Clock) -> None:
    run = run_of(clock, 3)
    through = run.through(offers([b"a"], [b"b", b"c"], [b"d"]))
    first = await anext(through)
    assert first.content is not None
    assert [chunk async for chunk in first.content] == [b"a"]
    second = await anext(through)
    assert second.content is not None
    assert await anext(second.content) == b"b"
    run.stop()
    with pytest.raises(RefusedContent, match="stopped"):
        await anext(second.content)
    assert [offer async for offer in through] == []
    run.note(accepted(1))
    run.note(refused(b"1"))
    assert outcome_words(run).plain == "Stopped: 1 added, 1 refused: 1: It is a link.; 1 file not read"
