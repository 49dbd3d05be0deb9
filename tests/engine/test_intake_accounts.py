"""The account of an intake: a line for whatever was offered, in one intake what belongs together."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable

import pytest

from malbox_tui.engine import intake_accounts
from malbox_tui.engine.submission import STORES_AT_ONCE
from malbox_tui.model.errors import StoreError
from malbox_tui.model.intake import Fate, IntakeEntry, IntakeLabel, IntakeLine, IntakeView, LineQuery, Way
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, OpenedArchive, Refusal, Refused, SubmissionOptions
from malbox_tui.model.task import TaskState
from malbox_tui.store.answers import Answer
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import EngineRig, with_engine

PART = IntakeLabel(Way.API, "/in", "key-1")


async def intakes(rig: EngineRig) -> list[IntakeView]:
    """The latest first."""
    return list(await rig.engine.intakes(None, 1000))


async def lines(rig: EngineRig, number: int = 1) -> list[IntakeLine]:
    return list((await rig.engine.intake_lines(LineQuery(intake=number, limit=1000))).lines)


async def each(*offers: Offer) -> AsyncIterator[Offer]:
    for offer in offers:
        yield offer


async def content(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def test_a_submission_is_one_intake_with_its_label_and_who_it_is_of() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", "b", "a", intake=IntakeLabel(Way.DROP, "3 paths"))
        await rig.add("c")
        latest, first = await intakes(rig)
        assert (first.head.actor, first.head.way, first.head.title) == ("operator", Way.DROP, "3 paths")
        assert (first.accepted, first.duplicates, latest.accepted) == (2, 1, 1)
        assert [line.task_id for line in await lines(rig)] == [1, 2, 1]

    with_engine(test, min_workers=0, max_workers=0)


def test_a_refusal_of_the_engine_has_its_line_like_one_of_the_offer() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("a", priority=10**9)
        await rig.engine.submit(each(Offer(SampleName(b"x"), refusal=Refusal("link", "It is a link."))), SubmissionOptions())
        assert [(line.fate, line.code) for line in [*await lines(rig), *await lines(rig, 2)]] == [
            (Fate.REFUSED, "nonsense"),
            (Fate.REFUSED, "link"),
        ]

    with_engine(test)


def test_an_opened_archive_has_a_line_and_makes_no_task() -> None:
    archive = OpenedArchive(sha256="ab" * 32, size_bytes=9, words="zip archive: 0 taken")
    inner = OpenedArchive(sha256="", size_bytes=0, words="zip archive: 1 taken")
    nonsense = OpenedArchive(sha256="../../etc", size_bytes=9, words="zip archive")

    async def test(rig: EngineRig) -> None:
        offers = each(
            Offer(SampleName(b"a.zip"), opened=archive),
            Offer(SampleName(b"b.zip"), opened=nonsense),
            Offer(SampleName(b"c.zip"), opened=inner),
        )
        account = await rig.engine.submit(offers, SubmissionOptions())
        assert isinstance(account.receipts[1], Refused), "what is no sum is not believed"
        first, second, third = await lines(rig)
        assert (first.fate, first.sha256, first.reason) == (Fate.OPENED, "ab" * 32, "zip archive: 0 taken")
        assert second.fate is Fate.REFUSED
        assert (third.fate, third.sha256, third.size_bytes) == (Fate.OPENED, "", None), "of one in another one no size is known"
        assert await rig.tasks() == {}

    with_engine(test)


def test_parts_of_one_key_are_one_intake_however_long_they_take_and_whoever_comes_between() -> None:
    async def test(rig: EngineRig) -> None:
        for content_of_part in "abc":
            await rig.add(content_of_part, actor="ben", origin="laptop", intake=PART)
            await rig.add(content_of_part + "!", actor="eva", origin="laptop", intake=PART)
            await rig.pass_time(1000)
        evas, bens = await intakes(rig)
        assert [(view.head.actor, view.accepted) for view in (bens, evas)] == [("ben", 3), ("eva", 3)]

    with_engine(test, min_workers=0, max_workers=0)


def test_parts_without_a_key_belong_together_until_there_is_a_pause() -> None:
    async def test(rig: EngineRig) -> None:
        for content_of_part in "abc":
            await rig.add(content_of_part, actor="ben", origin="process 7")
            await rig.pass_time(intake_accounts.PAUSE_S / 2)
        await rig.pass_time(intake_accounts.PAUSE_S)
        await rig.add("d", actor="ben", origin="process 7")
        await rig.add("e", actor="ben", origin="process 8")
        assert [view.accepted for view in await intakes(rig)] == [1, 1, 3]

    with_engine(test, min_workers=0, max_workers=0)


def test_only_so_many_intakes_in_parts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_accounts, "REMEMBERED", 2)

    async def test(rig: EngineRig) -> None:
        for number in (1, 2, 3, 1):
            await rig.add("a", actor="ben", intake=IntakeLabel(Way.API, "", f"key-{number}"))
        assert len(await intakes(rig)) == 4
        assert len(rig.engine._submissions._accounts._open) == 2

    with_engine(test, min_workers=0, max_workers=0)


class Full(MemoryStore):
    """Keeps no lines."""

    def enter(self, entry: IntakeEntry) -> Awaitable[None]:
        answer: Answer[None] = Answer("a line")
        answer.fail(StoreError("The disk is gone."))
        return answer


def test_a_store_that_takes_no_line_keeps_nobody_from_handing_in(caplog: pytest.LogCaptureFixture) -> None:
    async def test(rig: EngineRig) -> None:
        refused = Offer(SampleName(b"x"), refusal=Refusal("link", "It is a link."))
        account = await rig.engine.submit(each(*[refused] * 200), SubmissionOptions())
        assert len(account.refused) == 200

    with caplog.at_level(logging.WARNING):
        with_engine(test, store=Full())
    assert "could not be kept: The disk is gone." in caplog.text


def test_tasks_start_while_the_rest_is_still_being_read() -> None:
    async def test(rig: EngineRig) -> None:
        async def offers() -> AsyncIterator[Offer]:
            for number in range(20):
                if number > STORES_AT_ONCE:
                    await rig.until_state(1, TaskState.COMPLETED)
                yield Offer(SampleName(b"%d" % number), content(b"%d" % number))

        account = await rig.engine.submit(offers(), SubmissionOptions())
        assert len(account.accepted) == 20

    with_engine(test)


def test_no_more_refusals_are_on_their_way_than_the_store_takes() -> None:
    async def test(rig: EngineRig) -> None:
        most = 0

        async def offers() -> AsyncIterator[Offer]:
            nonlocal most
            for number in range(1000):
                yield Offer(SampleName(b"%d" % number), refusal=Refusal("link", "It is a link."))
                most = max(most, len(rig.store._waiting))

        await rig.engine.submit(offers(), SubmissionOptions())
        assert most <= intake_accounts.AHEAD
        assert len(await lines(rig)) == 1000

    with_engine(test)
