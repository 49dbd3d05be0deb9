"""The engine in its thread and the client that crosses to it, with real threads and loops; only the adapters are scripted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.clock import SystemClock
from malbox_tui.engine.engine import Engine
from malbox_tui.model.commands import CancelTasks, Command, ShutdownMode
from malbox_tui.model.errors import ConfinementUnavailable, EngineStopped, RefusedContent
from malbox_tui.model.events import Event, TaskCompleted, TaskCreated
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Accepted, Offer, Receipt, Refused, SubmissionOptions
from malbox_tui.runtime.engine_thread import EngineThread
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import ScriptedQuarantine, ScriptedResults, ScriptedRunner


def scripted_engine(runner: ScriptedRunner) -> Engine:
    settings = Settings(general=GeneralSettings(max_workers=2))
    return Engine(settings, Adapters(MemoryStore(), ScriptedQuarantine(), ScriptedResults(), runner, SystemClock()))


@pytest.fixture
def thread() -> Iterator[EngineThread]:
    engine = EngineThread(lambda: scripted_engine(ScriptedRunner(seconds=0.0)), lambda: None)
    engine.start()
    yield engine
    engine.stop(ShutdownMode.GIVE_BACK)
    assert engine.join(30)
    assert engine.error is None


async def _offers(*names: str) -> AsyncIterator[Offer]:
    for name in names:
        yield Offer(SampleName(name.encode()), _content(name))


async def _content(name: str) -> AsyncIterator[bytes]:
    for char in name:
        assert threading.current_thread() is threading.main_thread(), "content is read on the caller's side"
        yield char.encode()
    if name == "growing":
        raise RefusedContent("changed_while_read", "It grew while it was read.")


def test_a_submission_crosses_and_its_receipts_come_back_in_order_on_the_callers_loop(thread: EngineThread) -> None:
    told: list[Receipt] = []

    async def work() -> None:
        account = await thread.client.submit(_offers("a", "growing", "b"), SubmissionOptions(), told.append)
        assert list(account.receipts) == told
        assert [type(receipt) for receipt in told] == [Accepted, Refused, Accepted]

    asyncio.run(work())


def test_events_come_through_from_now_on_or_from_a_place_on(thread: EngineThread) -> None:
    async def until_completed(events: AsyncIterator[object]) -> list[type]:
        seen = []
        async for item in events:
            assert isinstance(item, Event)
            if hasattr(item.body, "task_id"):
                seen.append(type(item.body))
            if isinstance(item.body, TaskCompleted):
                return seen
        raise AssertionError("the events ended")

    async def work() -> None:
        start = (await thread.client.overview()).position
        await thread.client.submit(_offers("a"), SubmissionOptions())
        live_and_stored = await until_completed(thread.client.events(start))
        again = await until_completed(thread.client.events(start))
        assert live_and_stored == again
        assert again[0] is TaskCreated

    asyncio.run(work())


def test_any_loop_in_any_thread_may_use_the_client(thread: EngineThread) -> None:
    pages = []

    def look() -> None:
        pages.append(asyncio.run(thread.client.query(TaskQuery())))

    others = [threading.Thread(target=look) for _ in range(4)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert [page.total for page in pages] == [0, 0, 0, 0]


def test_a_stopped_engine_says_so_and_ends_the_events() -> None:
    engine = EngineThread(lambda: scripted_engine(ScriptedRunner()), lambda: None)
    engine.start()

    async def work() -> None:
        async for item in engine.client.events(None):
            assert isinstance(item, Event)
            engine.stop(ShutdownMode.GIVE_BACK)
        assert engine.join(30)
        with pytest.raises(EngineStopped):
            await engine.client.do(Command(action=CancelTasks(task_ids=(1,)), actor="ana"))
        with pytest.raises(EngineStopped):
            await engine.client.overview()
        engine.stop(ShutdownMode.CANCEL)

    async def provoke() -> None:
        await engine.client.submit(_offers("a"), SubmissionOptions())

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work())
            group.create_task(provoke())

    asyncio.run(both())


def test_what_keeps_an_engine_from_starting_reaches_the_caller() -> None:
    class Unconfined(ScriptedRunner):
        async def open(self) -> list:  # type: ignore[type-arg, override]
            raise ConfinementUnavailable("no bubblewrap")

    ended = threading.Event()
    engine = EngineThread(lambda: scripted_engine(Unconfined()), ended.set)
    with pytest.raises(ConfinementUnavailable, match="no bubblewrap"):
        engine.start()
    assert ended.is_set()
    assert engine.join(0)


def test_a_caller_that_goes_away_in_the_middle_of_a_submission_leaves_the_engine_well(thread: EngineThread) -> None:
    async def endless() -> AsyncIterator[Offer]:
        yield Offer(SampleName(b"first"), _content("first"))
        await asyncio.get_running_loop().create_future()
        raise AssertionError("never")

    async def go_away() -> None:
        told: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        submitting = asyncio.get_running_loop().create_task(
            thread.client.submit(
                _slow_then(endless()), SubmissionOptions(), lambda receipt: told.done() or told.set_result(receipt)
            )
        )
        assert isinstance(await told, Accepted)
        submitting.cancel()
        await asyncio.wait({submitting})

    asyncio.run(go_away())
    assert asyncio.run(thread.client.query(TaskQuery())).total == 1


async def _slow_then(rest: AsyncIterator[Offer]) -> AsyncIterator[Offer]:
    for name in ("a", "a", "a"):
        yield Offer(SampleName(name.encode()), _content(name))
    async for offer in rest:
        yield offer


def test_an_overview_passes_through_every_change_in_order(thread: EngineThread) -> None:
    thread.amend(lambda overview: msgspec.structs.replace(overview, troubles=(*overview.troubles, "first")))
    thread.amend(lambda overview: msgspec.structs.replace(overview, troubles=(*overview.troubles, "second")))
    assert asyncio.run(thread.client.overview()).troubles == ("first", "second")
