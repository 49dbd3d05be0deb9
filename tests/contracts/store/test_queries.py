"""What every `Store` answers when it is asked."""

from __future__ import annotations

import asyncio

import pytest

from malbox_tui.model.plugin_wishes import PluginWishes
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery, TaskSort
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.ports import Store
from tests.contracts.store.asking import query, stored
from tests.store.builders import NOON, added, claimed, completed, new_task, run, settle, sha256_of, stop


async def test_tasks_are_filtered_by_every_condition_given(store: Store) -> None:
    await completed(store, "alpha")
    await added(store, "beta", b"b\xe4ta\xff.bin", priority=3)
    await added(store, "gamma", b"GAMMA.bin")
    assert await query(store) == [3, 2, 1]
    assert await query(store, task_ids=(3, 1, 77)) == [3, 1]
    assert await query(store, task_ids=()) == []
    assert await query(store, states=frozenset({TaskState.PENDING})) == [3, 2]
    assert await query(store, states=frozenset({TaskState.PENDING, TaskState.COMPLETED})) == [3, 2, 1]
    assert await query(store, states=frozenset()) == []
    assert await query(store, sha256_prefix=sha256_of("beta")[:9].upper()) == [2]
    assert await query(store, sha256_prefix=sha256_of("beta")) == [2]
    assert await query(store, sha256_prefix="") == [3, 2, 1]
    assert await query(store, sha256_prefix="%") == []
    assert await query(store, name_contains=b".bin") == [3, 2]
    assert await query(store, name_contains=b"\xe4ta\xff") == [2]
    assert await query(store, name_contains=b"gamma") == []
    assert await query(store, name_contains=b".bin", states=frozenset({TaskState.COMPLETED})) == []


async def test_tasks_are_found_by_whom_they_belong_to(store: Store) -> None:
    await added(store, "a", owner="ana", wishes=PluginWishes(("strings",), {"strings": {"min_length": "8"}}))
    await added(store, "b")
    await added(store, "c", owner="ana")
    assert await query(store, owner="ana") == [3, 1]
    assert await query(store, owner="an") == []
    assert await query(store, owner="") == [2]
    assert (await stored(store, 1)).wishes == PluginWishes(("strings",), {"strings": {"min_length": "8"}})


async def test_tasks_are_sorted_as_asked(store: Store) -> None:
    first = await claimed(store, await added(store, "a", priority=1), "token-a")
    second = await claimed(store, await added(store, "b", priority=5), "token-b")
    await added(store, "c", priority=5)
    for task, at in ((second, NOON + 10), (first, NOON + 20)):
        for make in (run, stop):
            await store.write(make(task))
            task = make(task).after
        await store.write(settle(task, at))

    async def order(sort: TaskSort) -> list[int]:
        return [record.task.id for record in (await store.tasks(TaskQuery(sort=sort), NOON)).rows]

    assert await order(TaskSort.NEWEST) == [3, 2, 1]
    assert await order(TaskSort.OLDEST) == [1, 2, 3]
    assert await order(TaskSort.QUEUE) == [2, 3, 1]
    assert await order(TaskSort.ENDED) == [2, 1, 3]


async def test_a_window_tells_how_many_match_in_all(store: Store) -> None:
    await asyncio.gather(*(store.add(new_task(f"content {n}")) for n in range(10)))

    async def window(offset: int, limit: int) -> tuple[list[int], int]:
        page = await store.tasks(TaskQuery(sort=TaskSort.OLDEST, offset=offset, limit=limit), NOON)
        return [record.task.id for record in page.rows], page.total

    assert await window(0, 3) == ([1, 2, 3], 10)
    assert await window(8, 3) == ([9, 10], 10)
    assert await window(50, 3) == ([], 10)
    assert await window(0, 0) == ([], 10)
    assert await window(-5, 2) == ([1, 2], 10)
    assert await window(0, -1) == ([], 10)


@pytest.mark.parametrize("sort", list(TaskSort))
async def test_a_window_can_be_moved_to_hold_a_task_in_its_middle(store: Store, sort: TaskSort) -> None:
    for number in range(1, 12):
        await store.add(new_task(str(number), priority=number % 3))
    everything = [record.task.id for record in (await store.tasks(TaskQuery(sort=sort), NOON)).rows]

    async def window(around: int, **where: tuple[int, ...]) -> tuple[list[int], int]:
        page = await store.tasks(TaskQuery(where=TaskFilter(**where), sort=sort, offset=1, limit=4, around=around), NOON)
        return [record.task.id for record in page.rows], page.offset

    assert await window(everything[6]) == (everything[4:8], 4)
    assert await window(everything[0]) == (everything[:4], 0)
    assert await window(everything[10]) == (everything[8:], 8)
    assert await window(99) == (everything[1:5], 1)
    some = tuple(everything[:6])
    assert await window(everything[9], task_ids=some) == (everything[1:5], 1), "one that doesn't match moves nothing"


async def test_no_page_holds_more_than_the_limit(store: Store) -> None:
    await asyncio.gather(*(store.add(new_task(f"content {n}")) for n in range(MAX_ROWS + 5)))
    page = await store.tasks(TaskQuery(limit=10**9), NOON + 7)
    assert (len(page.rows), page.total, page.clock) == (MAX_ROWS, MAX_ROWS + 5, NOON + 7)


async def test_a_query_sees_what_was_committed_before_it(store: Store) -> None:
    for number in range(5):
        await added(store, f"content {number}")
        assert (await store.tasks(TaskQuery(), NOON)).total == number + 1


async def test_pending_tasks_of_one_class_share_it(store: Store) -> None:
    wish = RequirementClass("dynamic", "linux", tags=("a", "b"))
    for number in range(4):
        await added(
            store, f"content {number}", requires=RequirementClass("dynamic", "linux", tags=("a", "b")), priority=number % 2
        )
    entries = await store.pending()
    assert sorted((entry.task_id, entry.priority) for entry in entries) == [(1, 0), (2, 1), (3, 0), (4, 1)]
    assert {entry.requires for entry in entries} == {wish}
