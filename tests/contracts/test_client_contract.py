"""What every `Client` does, wherever the engine runs: in this process across a thread, or behind a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import cast

import pytest

from malbox_tui.engine.clock import SystemClock
from malbox_tui.model.commands import CancelTasks, Command, PausePool, ResizeGroup, ResumePool, ShutdownMode
from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError, RefusedContent
from malbox_tui.model.events import Event, Gap, PoolPaused, PoolResumed, Position, TaskCreated
from malbox_tui.model.intake import Fate, IntakeLabel, LineQuery, Way
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.report import ResultRef
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import (
    LEFT_OUT,
    Accepted,
    Duplicate,
    Offer,
    Opened,
    OpenedArchive,
    Receipt,
    Refusal,
    Refused,
    SubmissionOptions,
)
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Client
from malbox_tui.remote.client import RemoteClient, SocketWay
from tests.intake.test_folder_walk import HOSTILE_NAMES
from tests.remote.rig import ServerRig, served


@pytest.fixture(params=["in this process", "behind a socket"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[ServerRig, Client]]:
    """An engine whose tasks stay as they are, and a door to it."""
    async with served(tmp_path) as server:
        if request.param == "in this process":
            yield server, server.client
        else:
            with closing(RemoteClient(SocketWay(str(server.socket)), SystemClock())) as remote:
                door: Client = remote
                yield server, door


@pytest.fixture
def client(rig: tuple[ServerRig, Client]) -> Client:
    return rig[1]


async def chunks(*given: bytes, then: Exception | None = None) -> AsyncIterator[bytes]:
    for chunk in given:
        yield chunk
    if then is not None:
        raise then


def offer(name: bytes, *given: bytes, then: Exception | None = None) -> Offer:
    return Offer(SampleName(name, b"/in/" + name), content=chunks(*(given or (name,)), then=then))


async def each(*offers: Offer) -> AsyncIterator[Offer]:
    for given in offers:
        yield given


async def receipts(client: Client, *offers: Offer, **options: object) -> tuple[Receipt, ...]:
    return (await client.submit(each(*offers), SubmissionOptions(**options))).receipts  # type: ignore[arg-type]


async def do(client: Client, action: object) -> bool:
    return (await client.do(Command(action=action, actor="somebody"))).done  # type: ignore[arg-type]


@asynccontextmanager
async def following(client: Client, after: Position | None) -> AsyncIterator[AsyncGenerator[Event | Gap, None]]:
    events = cast(AsyncGenerator[Event | Gap, None], client.events(after))
    try:
        yield events
    finally:
        await events.aclose()


async def bodies(events: AsyncIterator[Event | Gap], *kinds: type) -> list[object]:
    """The next bodies, up to one of each kind in this order."""
    found: list[object] = []
    async with asyncio.timeout(60):
        for kind in kinds:
            while not (found and isinstance(found[-1], kind)):
                item = await anext(events)
                assert isinstance(item, Event)
                found.append(item.body)
    return found


# --- submissions ---------------------------------------------------------------------------------------------------------------


async def test_each_offer_has_its_receipt_in_the_order_of_the_offers(client: Client) -> None:
    names = [b"%d.bin" % number for number in range(30)]
    given = await receipts(client, *(offer(name) for name in names))
    assert [receipt.name.name for receipt in given] == names
    assert all(isinstance(receipt, Accepted) for receipt in given)


async def test_names_keep_their_bytes(client: Client) -> None:
    name = b"r\xe9sum\xe9 \x1b[31m\n&=?#%\xff"
    await receipts(client, offer(name))
    page = await client.query(TaskQuery())
    assert page.rows[0].sample.names == (SampleName(name, b"/in/" + name),)


async def test_what_is_asked_of_plugins_and_whose_samples_are_goes_with_them(client: Client) -> None:
    asked = {"plugins": ("scripted",), "owner": "ana m\xfcller"}
    await receipts(client, offer(b"a"), **asked)
    await receipts(client, offer(b"b"))
    page = await client.query(TaskQuery(where=TaskFilter(owner="ana m\xfcller")))
    assert [(row.task.wishes.only, row.task.owner) for row in page.rows] == [(("scripted",), "ana m\xfcller")]
    assert [row.task.id for row in (await client.query(TaskQuery(where=TaskFilter(owner="")))).rows] == [2]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"plugins": ("nope",)}, "There is no plugin 'nope'; there is scripted."),
        ({"plugin_options": ("key=1",)}, "No plugin has the option 'key'; there is none."),
        ({"unique": True, "again": True}, "What is known can't be both left out (unique) and analysed again."),
    ],
)
async def test_what_plugins_can_not_do_is_refused_with_the_reason(client: Client, asked: dict[str, object], reason: str) -> None:
    (receipt,) = await receipts(client, offer(b"a"), **asked)
    assert isinstance(receipt, Refused)
    assert (receipt.refusal.code, receipt.refusal.reason) == ("nonsense", reason)


async def test_content_that_is_known_is_no_new_task_where_it_is_to_be_unique(client: Client) -> None:
    await receipts(client, offer(b"a"))
    await do(client, CancelTasks(task_ids=(1,)))
    (receipt,) = await receipts(client, offer(b"other", b"a"), unique=True)
    assert isinstance(receipt, Duplicate)
    assert (receipt.task_id, receipt.state) == (1, TaskState.CANCELED)


async def test_receipts_are_told_as_they_come(client: Client) -> None:
    told: list[Receipt] = []
    account = await client.submit(each(*(offer(b"%d" % number) for number in range(9))), SubmissionOptions(), told.append)
    assert sorted(told, key=str) == sorted(account.receipts, key=str)


async def test_what_was_refused_before_stays_refused_and_the_rest_goes_on(client: Client) -> None:
    refusal = Refusal("unreadable", "It can't be read.")
    given = await receipts(client, offer(b"a"), Offer(SampleName(b"b"), refusal=refusal), offer(b"c"))
    assert given[1] == Refused(SampleName(b"b"), refusal)
    assert isinstance(given[0], Accepted)
    assert isinstance(given[2], Accepted)


async def test_content_that_ends_with_a_refusal_is_refused_and_nothing_of_it_is_kept(client: Client) -> None:
    changed = RefusedContent("changed", "It changed while it was read.")
    given = await receipts(client, offer(b"a", b"x" * 100_000, then=changed), offer(b"b"))
    assert given[0] == Refused(SampleName(b"a", b"/in/a"), Refusal("changed", "It changed while it was read."))
    assert isinstance(given[1], Accepted)
    assert (await client.query(TaskQuery())).total == 1


@pytest.mark.parametrize(("content", "code"), [((b"",), "empty"), ((b"x" * 64 * 1024,) * 40, "too_large")])
async def test_content_of_the_wrong_size_is_refused(client: Client, content: tuple[bytes, ...], code: str) -> None:
    refused, accepted = await receipts(client, offer(b"a", *content), offer(b"b"))
    assert isinstance(refused, Refused)
    assert refused.refusal.code == code
    assert isinstance(accepted, Accepted)


async def test_the_same_content_joins_its_task(client: Client) -> None:
    (first,) = await receipts(client, offer(b"a", b"same"))
    (second,) = await receipts(client, offer(b"b", b"same"))
    assert isinstance(first, Accepted)
    assert isinstance(second, Duplicate)
    assert second.task_id == first.task_id


async def test_what_is_asked_of_a_submission_reaches_its_tasks(client: Client) -> None:
    await receipts(client, offer(b"a"), priority=7, timeout_s=12.5)
    task = (await client.query(TaskQuery())).rows[0].task
    assert (task.priority, task.timeout_s) == (7, 12.5)


# --- accounts ----------------------------------------------------------------------------------------------------------------------


async def account(client: Client, number: int = 1, **asked: object) -> list[tuple[Fate, bytes, str]]:
    page = await client.intake_lines(LineQuery(intake=number, **asked))  # type: ignore[arg-type]
    return [(line.fate, line.name.name, line.code) for line in page.lines]


async def test_what_was_left_out_is_counted_as_it_was_offered(client: Client) -> None:
    refusal = Refusal(LEFT_OUT, "300 files were left out.", 300)
    assert await receipts(client, Offer(SampleName(b"many"), refusal=refusal)) == (Refused(SampleName(b"many"), refusal),)


async def test_whatever_was_offered_has_a_line_in_one_account(client: Client) -> None:
    refusal = Refusal("link", "It is a link.")
    archive = OpenedArchive(sha256="ab" * 32, size_bytes=7, words="zip archive: 1 taken")
    await receipts(client, offer(b"before"))
    given = await receipts(
        client,
        offer(b"a", b"same"),
        Offer(SampleName(b"readme.txt"), refusal=refusal),
        Offer(SampleName(b"x.zip", b"/in/x.zip"), opened=archive),
        Offer(SampleName(b"nothing")),
        offer(b"empty", b""),
        *(offer(b"%d" % number) for number in range(20)),
        intake=IntakeLabel(Way.DROP, "26 paths \udcff"),
    )
    again = await receipts(client, offer(b"b", b"same"), intake=IntakeLabel(Way.SUBMIT))
    assert given[2] == Opened(SampleName(b"x.zip", b"/in/x.zip"), archive)
    assert isinstance(again[0], Duplicate)
    duplicate, drop, before = await client.intakes(None, 10)
    assert (drop.accepted, drop.opened, drop.refused, drop.head.way, drop.head.title[:8]) == (21, 1, 3, Way.DROP, "26 paths")
    assert [duplicate.duplicates, before.total] == [1, 1]
    assert sorted(await account(client, 2))[-4:] == [
        (Fate.OPENED, b"x.zip", ""),
        (Fate.REFUSED, b"empty", "empty"),
        (Fate.REFUSED, b"nothing", "no_content"),
        (Fate.REFUSED, b"readme.txt", "link"),
    ]
    assert await account(client, 3) == [(Fate.DUPLICATE, b"b", "")]
    assert await account(client, 99) == []


@pytest.mark.parametrize("name", HOSTILE_NAMES)
async def test_an_account_keeps_every_name_and_its_archive(client: Client, name: bytes) -> None:
    named = SampleName(name, b"/in/a.zip!/" + name, "ab" * 32)
    await receipts(client, Offer(named, chunks(b"x")), Offer(named, refusal=Refusal("link", "It is a link.")))
    page = await client.intake_lines(LineQuery(intake=1))
    assert [line.name for line in page.lines] == [named, named]
    record = (await client.query(TaskQuery(where=TaskFilter(archive="ab" * 32)))).rows[0]
    assert record.sample.names == (named,)


async def test_a_window_of_an_account_goes_on_after_a_line(client: Client) -> None:
    await receipts(client, *(Offer(SampleName(b"%d" % number), refusal=Refusal("x", "X.")) for number in range(5)))
    first = await client.intake_lines(LineQuery(intake=1, limit=3))
    rest = await client.intake_lines(LineQuery(intake=1, after=first.lines[-1].number, fates=frozenset({Fate.REFUSED})))
    assert (len(first.lines), first.more, len(rest.lines), rest.more) == (3, True, 2, False)


# --- questions -----------------------------------------------------------------------------------------------------------------


async def test_a_window_holds_what_was_asked_for(client: Client) -> None:
    await receipts(client, *(offer(b"%d" % number) for number in range(12)))
    page = await client.query(TaskQuery(where=TaskFilter(name_contains=b"1"), limit=2))
    assert {row.sample.names[0].name for row in page.rows} < {b"1", b"10", b"11"}
    assert (len(page.rows), page.total) == (2, 3)


async def test_the_overview_counts(client: Client) -> None:
    await receipts(client, offer(b"a"), offer(b"b"))
    overview = await client.overview()
    assert overview.counts[TaskState.PENDING] == 2
    assert overview.position.seq > 0


async def test_a_result_that_is_not_there_is_an_error_in_words(client: Client) -> None:
    with pytest.raises(MalboxError, match=r"\w"):
        await client.read(ResultRef("report", "json", 3, "0" * 64, "1/none/report"), 100)


# --- commands ------------------------------------------------------------------------------------------------------------------


async def test_a_command_is_carried_out(client: Client) -> None:
    (receipt,) = await receipts(client, offer(b"a"))
    assert isinstance(receipt, Accepted)
    assert await do(client, CancelTasks(task_ids=(receipt.task_id,)))
    assert (await client.query(TaskQuery())).rows[0].task.state is TaskState.CANCELED


async def test_a_refused_command_is_an_outcome(client: Client) -> None:
    assert not await do(client, ResizeGroup(group="none", max_workers=2))
    assert not await do(client, CancelTasks(task_ids=(404,)))


async def test_the_same_key_does_nothing_twice(client: Client) -> None:
    command = Command(action=PausePool(), actor="somebody", key="k")
    first = await client.do(command)
    assert await client.do(command) == first


# --- events --------------------------------------------------------------------------------------------------------------------


async def test_events_from_a_place_on_come_in_order_and_go_on(client: Client) -> None:
    place = (await client.overview()).position
    await receipts(client, offer(b"a"))
    async with following(client, place) as events:
        created = (await bodies(events, TaskCreated))[-1]
        assert isinstance(created, TaskCreated)
        assert created.task_id == 1
        await do(client, PausePool())
        assert isinstance((await bodies(events, PoolPaused))[-1], PoolPaused)


async def test_a_place_of_another_engine_begins_with_a_gap(client: Client) -> None:
    async with following(client, Position("another", 1, 5)) as events:
        assert isinstance(await anext(events), Gap)


async def test_events_from_now_on_leave_out_what_was_before(rig: tuple[ServerRig, Client]) -> None:
    server, client = rig
    await do(client, PausePool())
    async with following(client, None) as events, asyncio.TaskGroup() as beside:
        first = beside.create_task(bodies(events, PoolResumed))
        while not first.done():
            await _pause_and_resume(server.client)
        assert not isinstance(first.result()[0], TaskCreated)


async def _pause_and_resume(client: Client) -> None:
    await do(client, PausePool())
    await do(client, ResumePool())


# --- the end -------------------------------------------------------------------------------------------------------------------


async def test_events_end_with_the_engine_and_calls_say_so(rig: tuple[ServerRig, Client]) -> None:
    server, client = rig
    async with following(client, (await client.overview()).position) as events:
        server.thread.stop(ShutdownMode.GIVE_BACK)
        async with asyncio.timeout(60):
            assert all([isinstance(item, Event) async for item in events])
    await asyncio.to_thread(server.thread.join)
    with pytest.raises((EngineStopped, Disconnected)):
        await client.overview()
    with pytest.raises((EngineStopped, Disconnected)):
        await receipts(client, offer(b"a"))
