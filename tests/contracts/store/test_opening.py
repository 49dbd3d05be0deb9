"""What every `Store` does when it is opened and closed, whatever it is made of."""

from __future__ import annotations

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import PoolResumed, TaskStageChanged
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.ports import Store
from tests.contracts.store.asking import stored
from tests.contracts.store.places import Place
from tests.store.builders import NOON, Told, added, claim_request, claimed, completed, run


async def test_a_new_store_is_empty_and_in_its_first_epoch(place: Place, told: Told) -> None:
    store = place.store()
    identity = await store.open(told)
    await store.close()
    assert (identity.epoch, identity.last_seq) == (1, 0)
    assert identity.engine_id
    assert identity.counts == dict.fromkeys(TaskState, 0)


async def test_a_reopened_store_is_the_same_store_in_its_next_epoch(place: Place, told: Told) -> None:
    store = place.store()
    first = await store.open(told)
    await completed(store, "a")
    await added(store, "b")
    await claimed(store, await added(store, "c"), "token-c")
    await store.close()
    store = place.store()
    second = await store.open(told)
    await store.close()
    assert (second.engine_id, second.epoch) == (first.engine_id, 2)
    assert second.last_seq == len(told.events)
    assert {state: count for state, count in second.counts.items() if count} == {
        TaskState.COMPLETED: 1,
        TaskState.PENDING: 1,
        TaskState.INITIALIZING: 1,
    }


async def test_pending_and_owned_tasks_are_found_after_reopening(place: Place, told: Told) -> None:
    store = place.store()
    await store.open(told)
    waiting = await added(store, "waiting", priority=7)
    owned = await claimed(store, await added(store, "owned"))
    await completed(store, "done", "token-2")
    await store.close()
    store = place.store()
    await store.open(told)
    assert [(entry.task_id, entry.priority, entry.requires) for entry in await store.pending()] == [
        (waiting.id, 7, RequirementClass())
    ]
    assert list(await store.owned()) == [owned]
    await store.close()


async def test_seq_goes_on_without_gaps_across_epochs(place: Place, told: Told) -> None:
    for content in ("a", "b"):
        store = place.store()
        await store.open(told)
        await added(store, content)
        store.note(NOON, PoolResumed())
        await store.close()
    assert [event.position.seq for event in told.events] == [1, 2, 3, 4]
    assert [event.position.epoch for event in told.events] == [1, 1, 2, 2]


async def test_task_ids_go_on_across_epochs(place: Place, told: Told) -> None:
    ids = []
    for content in ("a", "b"):
        store = place.store()
        await store.open(told)
        ids.append((await added(store, content)).id)
        await store.close()
    assert ids == [1, 2]


async def test_closing_writes_what_was_handed_over(place: Place, told: Told) -> None:
    store = place.store()
    await store.open(told)
    task = await claimed(store, await added(store))
    change = run(task)
    _ = store.write(change)
    store.note(NOON, PoolResumed())
    await store.close()
    store = place.store()
    await store.open(told)
    assert await stored(store, task.id) == change.after
    assert [type(event.body) for event in await store.events(2, 10)] == [TaskStageChanged, PoolResumed]
    await store.close()


async def test_closing_twice_does_nothing(store: Store) -> None:
    await store.close()
    await store.close()


async def test_a_closed_store_refuses_work(store: Store) -> None:
    task = await added(store)
    await store.close()
    with pytest.raises(StoreError):
        await added(store, "other")
    with pytest.raises(StoreError):
        await store.claim(claim_request(task.id))
    with pytest.raises(StoreError):
        await store.tasks(TaskQuery(), NOON)
    with pytest.raises(StoreError):
        await store.pending()
