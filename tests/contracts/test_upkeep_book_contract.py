"""What every `UpkeepBook` does, whatever store keeps it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.engine.metrics import TaskCounts
from malbox_tui.model.errors import SampleInUse
from malbox_tui.model.events import ResultsRemoved, SampleRemoved
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.task import TaskState
from malbox_tui.model.upkeep import Cause
from malbox_tui.ports import Store, UpkeepBook
from malbox_tui.store.memory import MemoryStore
from malbox_tui.store.upkeep_book import MemoryUpkeep, SqliteUpkeep
from tests.store.builders import NOON, Told, added, claimed, completed, new_task, run, settle, sha256_of, sqlite_store, stop

SHA = sha256_of("sample")


class Shop:
    """A store and its book, over the same things each time it is opened."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._path = folder / "store.sqlite"
        self._memory = MemoryStore() if kind == "memory" else None
        self.told = Told()

    async def open(self) -> None:
        if self._memory is not None:
            self.store: Store = self._memory
            self.book: UpkeepBook = MemoryUpkeep(self._memory)
        else:
            sqlite = sqlite_store(self._path)
            self.store, self.book = sqlite, SqliteUpkeep(sqlite, self._path)
        self.identity = await self.store.open(self.told)

    async def close(self) -> None:
        await self.book.close()
        await self.store.close()


@pytest.fixture(params=["memory", "sqlite"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    shop = Shop(request.param, tmp_path)
    await shop.open()
    yield shop
    await shop.close()


async def ids(store: Store) -> list[int]:
    return [row.task.id for row in (await store.tasks(TaskQuery(), NOON)).rows]


async def test_a_sample_goes_with_all_its_tasks_and_what_is_on_disk_is_noted(shop: Shop) -> None:
    first = await completed(shop.store)
    again = await completed(shop.store, "other", "token-2")
    retry = await shop.store.add(new_task(name=None, retry_of=first.id))
    with pytest.raises(SampleInUse, match=f"task {retry.task.id} waits or runs") as refused:
        await shop.book.remove_sample(SHA, NOON, Cause.PURGE)
    assert refused.value.task_ids == (retry.task.id,)
    assert await ids(shop.store) == [retry.task.id, again.id, first.id], "nothing was changed"
    removal = await shop.book.remove_sample(again.sha256, NOON + 9, Cause.AGE)
    assert removal is not None
    assert (removal.sha256, removal.task_ids) == (again.sha256, (again.id,))
    assert await ids(shop.store) == [retry.task.id, first.id]
    assert not await shop.book.holds(again.sha256)
    assert await shop.book.holds(SHA)
    assert list(await shop.book.open_removals()) == [removal]
    (body,) = [body for body in shop.told.bodies if isinstance(body, SampleRemoved)]
    assert body == SampleRemoved(sha256=again.sha256, cause=Cause.AGE, task_ids=(again.id,), states={TaskState.COMPLETED: 1})
    await shop.book.close_removal(removal.number)
    assert list(await shop.book.open_removals()) == []


async def test_a_running_task_keeps_its_sample(shop: Shop) -> None:
    task = await claimed(shop.store, await added(shop.store))
    with pytest.raises(SampleInUse) as refused:
        await shop.book.remove_sample(SHA, NOON, Cause.SIZE)
    assert refused.value.task_ids == (task.id,)


async def test_what_is_not_there_is_not_removed(shop: Shop) -> None:
    assert await shop.book.remove_sample(SHA, NOON, Cause.PURGE) is None
    assert await shop.book.remove_results((1, 2), NOON, Cause.AGE) is None
    assert list(await shop.book.open_removals()) == []


async def test_a_number_is_never_given_twice(shop: Shop) -> None:
    task = await completed(shop.store)
    await shop.book.remove_sample(SHA, NOON, Cause.PURGE)
    await shop.close()
    await shop.open()
    assert (await added(shop.store, "another")).id == task.id + 1


async def test_a_removed_sample_can_come_again(shop: Shop) -> None:
    await completed(shop.store)
    await shop.book.remove_sample(SHA, NOON, Cause.PURGE)
    task = await added(shop.store)
    (row,) = (await shop.store.tasks(TaskQuery(), NOON)).rows
    assert (row.task.id, row.sample.names[0].name, row.sample.notes) == (task.id, b"sample.exe", ())


async def test_results_of_ended_tasks_are_removed_once(shop: Shop) -> None:
    done, waits = await completed(shop.store), await added(shop.store, "waits")
    removal = await shop.book.remove_results((done.id, waits.id, 77), NOON + 5, Cause.SIZE)
    assert removal is not None
    assert (removal.sha256, removal.task_ids) == ("", (done.id,))
    assert await shop.book.remove_results((done.id,), NOON + 6, Cause.AGE) is None
    assert [body for body in shop.told.bodies if isinstance(body, ResultsRemoved)] == [
        ResultsRemoved(task_ids=(done.id,), cause=Cause.SIZE)
    ]
    assert await ids(shop.store) == [waits.id, done.id], "what it came to stays"
    rows = (await shop.store.tasks(TaskQuery(), NOON)).rows
    assert [row.results_removed_at for row in rows] == [None, NOON + 5], "and that they are gone is told with the task"


async def ended(store: Store, content: str, at: float) -> None:
    task = await claimed(store, await added(store, content), f"token-{content}")
    for make in (run, stop, settle):
        change = make(task, at)
        await store.write(change)
        task = change.after


async def test_the_oldest_are_told_first_and_none_that_is_in_use(shop: Shop) -> None:
    for content, at in (("young", 300), ("old", 100), ("middle", 200)):
        await ended(shop.store, content, NOON + at)
    await claimed(shop.store, (await shop.store.add(new_task("middle", again=True))).task, "token-9")
    samples = await shop.book.oldest_samples(math.inf, 10)
    assert [(aged.sha256, aged.at) for aged in samples] == [(sha256_of("old"), NOON + 100), (sha256_of("young"), NOON + 300)]
    assert [aged.sha256 for aged in await shop.book.oldest_samples(NOON + 300, 10)] == [sha256_of("old")]
    assert [aged.task_id for aged in await shop.book.oldest_results(math.inf, 2)] == [2, 3]
    await shop.book.remove_results((2,), NOON, Cause.AGE)
    assert [aged.task_id for aged in await shop.book.oldest_results(math.inf, 10)] == [3, 1]


async def test_open_removals_outlive_the_process(shop: Shop) -> None:
    await completed(shop.store)
    removal = await shop.book.remove_sample(SHA, NOON, Cause.PURGE)
    await shop.close()
    await shop.open()
    assert list(await shop.book.open_removals()) == [removal]


async def test_the_counts_follow_from_the_events(shop: Shop) -> None:
    await completed(shop.store)
    await added(shop.store, "waits")
    await shop.book.remove_sample(SHA, NOON, Cause.PURGE)
    counts = TaskCounts({}, {})
    for body in shop.told.bodies:
        counts.apply(body)
    await shop.close()
    await shop.open()
    assert counts.by_state() == shop.identity.counts
    assert counts.by_state()[TaskState.COMPLETED] == 0
