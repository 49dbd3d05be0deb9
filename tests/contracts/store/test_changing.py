"""How tasks change in every `Store`: at once or not at all, stored first and said second."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Sequence

import msgspec
import pytest

from malbox_tui.model.errors import LeaseLost, StaleTask
from malbox_tui.model.events import (
    Event,
    PoolPaused,
    PoolResumed,
    TaskCreated,
    TaskPriorityChanged,
    TaskProfileChanged,
    TaskStageChanged,
)
from malbox_tui.model.task import ChosenBy, ChosenProfile, RequirementClass, Task, TaskState
from malbox_tui.model.task import claimed as claimed_in_the_model
from malbox_tui.ports import Change, Store
from tests.contracts.store.asking import begun, cancel_pending, query, stored
from tests.contracts.store.places import Place
from tests.store.builders import NOON, Told, added, claim_request, claimed, completed, give_back, new_task, run, settle, stop


async def test_every_value_of_a_task_comes_back_as_it_was_written(store: Store) -> None:
    task = await claimed(store, await added(store))
    for make in (run, stop, settle):
        change = make(task)
        await store.write(change)
        assert await stored(store, task.id) == change.after
        task = change.after
    assert task.state is TaskState.COMPLETED
    assert task.plugins
    assert task.verdict is not None


async def test_changes_of_one_task_are_made_in_the_order_of_the_calls(store: Store, told: Told) -> None:
    task = await claimed(store, await added(store))
    changes = []
    for make in (run, stop, settle):
        changes.append(make(task))
        task = changes[-1].after
    await asyncio.gather(*[store.write(change) for change in changes])
    assert await stored(store, task.id) == task
    assert told.bodies[-3:] == [change.news for change in changes]


async def test_moves_of_two_tasks_handed_over_in_turn_are_all_told_and_end_where_each_ends(store: Store, told: Told) -> None:
    tasks = [await claimed(store, await added(store, name), name) for name in ("a", "b")]
    changes: list[Change] = []
    for make in (run, stop, settle):
        changes += [make(task) for task in tasks]
        tasks = [change.after for change in changes[-2:]]
    await asyncio.gather(*[store.write(change) for change in changes])
    assert [await stored(store, task.id) for task in tasks] == tasks
    assert told.bodies[-6:] == [change.news for change in changes]


async def test_a_move_lost_in_the_middle_leaves_those_before_and_after_it(store: Store, told: Told) -> None:
    owned, other = [await claimed(store, await added(store, name), name) for name in ("a", "b")]
    running = run(owned)
    stopping = stop(running.after)
    changes = [running, run(other), run(owned), stopping, settle(stop(owned).after)]
    results = await asyncio.gather(*[store.write(change) for change in changes], return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["NoneType", "NoneType", "LeaseLost", "NoneType", "NoneType"]
    assert (await stored(store, owned.id)).state is TaskState.COMPLETED
    assert await stored(store, other.id) == run(other).after
    assert told.bodies[-4:] == [change.news for change in changes if change is not changes[2]]
    assert [event.position.seq for event in told.events] == list(range(1, len(told.events) + 1))


async def test_an_attempt_that_lost_its_task_keeps_none_of_the_moves_it_hands_over_at_once(store: Store, told: Told) -> None:
    owned = await claimed(store, await added(store))
    await store.write(give_back(owned))
    before, waiting = len(told.events), await stored(store, owned.id)
    changes = [run(owned), stop(run(owned).after), settle(stop(run(owned).after).after)]
    results = await asyncio.gather(*[store.write(change) for change in changes], return_exceptions=True)
    assert [type(result).__name__ for result in results] == ["LeaseLost"] * 3
    assert (await stored(store, owned.id), len(told.events)) == (waiting, before)


async def test_a_task_is_claimed_moved_and_given_back_in_one_go(store: Store, told: Told) -> None:
    task = await added(store)
    owned = claimed_in_the_model(task, "worker-1", "token-1", NOON + 1, NOON + 61)
    running = run(owned)
    back = give_back(running.after)
    claiming = await begun(store.claim(claim_request(task.id)))
    first, second = store.write(running), store.write(back)
    again = await store.claim(claim_request(task.id, "token-2", at=NOON + 9))
    await first
    await second
    assert await claiming == owned
    assert again == claimed_in_the_model(back.after, "worker-1", "token-2", NOON + 9, NOON + 69)
    assert await stored(store, task.id) == again
    assert len(told.events) == 5


async def test_a_change_keeps_a_renewal_that_came_before_an_earlier_change(store: Store) -> None:
    task = await claimed(store, await added(store))
    renewing = await begun(store.renew(["token-1"], NOON + 500))
    first, second = store.write(run(task)), store.write(stop(run(task).after))
    await asyncio.gather(renewing, first, second)
    assert (await stored(store, task.id)).lease_until == NOON + 500


async def test_many_tasks_pass_through_one_store_at_once(store: Store, told: Told) -> None:
    """More than one statement can hold, and no power of two."""
    count = 95
    tasks = [result.task for result in await asyncio.gather(*(store.add(new_task(f"content {n}")) for n in range(count)))]
    owned = await asyncio.gather(*(store.claim(claim_request(task.id, f"token-{task.id}")) for task in tasks))
    changes = [
        change for task in owned if task for change in (run(task), stop(run(task).after), settle(stop(run(task).after).after))
    ]
    await asyncio.gather(*[store.write(change) for change in changes])
    assert await query(store, states=frozenset({TaskState.COMPLETED})) == [task.id for task in reversed(tasks)]
    assert list(await store.events(0, 10 * count)) == told.events
    assert [event.position.seq for event in told.events] == list(range(1, 5 * count + 1))


async def test_an_attempt_that_lost_its_task_is_told_so_and_keeps_nothing(store: Store, told: Told) -> None:
    first = await claimed(store, await added(store), "first")
    await store.write(give_back(first))
    second = await claimed(store, await stored(store, first.id), "second", NOON + 9)
    before = len(told.events)
    with pytest.raises(LeaseLost):
        await store.write(run(first))
    assert await stored(store, first.id) == second
    assert len(told.events) == before


async def test_a_settled_task_can_not_be_settled_by_another_attempt(store: Store) -> None:
    owned = await claimed(store, await added(store), "first")
    ready = stop(run(owned).after)
    await store.write(run(owned))
    await store.write(ready)
    await store.write(settle(ready.after))
    with pytest.raises(LeaseLost):
        await store.write(settle(ready.after))
    assert await stored(store, owned.id) == settle(ready.after).after


async def test_a_stale_change_of_a_pending_task_is_refused(store: Store) -> None:
    task = await added(store)
    await claimed(store, task)
    with pytest.raises(StaleTask) as caught:
        await store.write(cancel_pending(task))
    assert not isinstance(caught.value, LeaseLost)


async def test_losers_of_a_batch_harm_no_other_and_leave_no_gap(store: Store, told: Told) -> None:
    tasks = [await claimed(store, await added(store, f"content {n}"), f"token-{n}") for n in range(6)]
    await store.write(give_back(tasks[2]))
    await store.write(give_back(tasks[4]))
    results = await asyncio.gather(*[store.write(run(task)) for task in tasks], return_exceptions=True)
    assert [type(result).__name__ for result in results] == [
        "NoneType",
        "NoneType",
        "LeaseLost",
        "NoneType",
        "LeaseLost",
        "NoneType",
    ]
    assert [event.body.task_id for event in told.events[-4:]] == [1, 2, 4, 6]  # type: ignore[union-attr]
    assert [event.position.seq for event in told.events] == list(range(1, len(told.events) + 1))


async def test_a_change_that_nobody_awaits_is_made(store: Store) -> None:
    task = await claimed(store, await added(store))
    _ = store.write(run(task))
    await store.write(stop(run(task).after))
    assert (await stored(store, task.id)).state is TaskState.STOPPING


async def test_the_failure_of_a_change_that_nobody_awaits_is_logged(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    task = await added(store)
    await claimed(store, task)
    with caplog.at_level(logging.WARNING):
        store.write(cancel_pending(task))
        await added(store, "another")
        gc.collect()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no longer pending" in caplog.text


async def test_an_answer_can_be_awaited_twice_and_after_it_came(store: Store) -> None:
    task = await claimed(store, await added(store))
    good, bad = store.write(run(task)), store.write(run(task))
    await added(store, "another")
    for _ in range(2):
        await good
        with pytest.raises(LeaseLost):
            await bad


async def test_a_change_can_not_turn_one_task_into_another(store: Store) -> None:
    first, second = await added(store, "a"), await added(store, "b")
    with pytest.raises(ValueError, match="id"):
        store.write(Change(first, second, PoolResumed(), NOON))


async def test_priorities_change_while_pending(store: Store) -> None:
    task = await added(store)
    after = Task(**{name: getattr(task, name) for name in task.__struct_fields__} | {"priority": 9})
    await store.write(Change(task, after, TaskPriorityChanged(task_id=task.id, priority=9), NOON))
    assert [(entry.task_id, entry.priority) for entry in await store.pending()] == [(task.id, 9)]


async def test_profiles_change_while_pending_and_what_is_needed_with_them(store: Store) -> None:
    task = await added(store)
    chosen = ChosenProfile(name="programs", by=ChosenBy.HAND)
    requires = RequirementClass("dynamic", "windows")
    after = msgspec.structs.replace(task, profile=chosen, requires=requires, type="dynamic", timeout_s=9.0)
    body = TaskProfileChanged(task_id=task.id, profile=str(chosen), requires=requires)
    await store.write(Change(task, after, body, NOON))
    assert await stored(store, task.id) == after
    assert [entry.requires for entry in await store.pending()] == [requires]
    assert (await store.events(0, 10))[-1].body == body
    await store.write(Change(after, msgspec.structs.replace(after, profile=None), body, NOON))
    assert (await stored(store, task.id)).profile is None


async def test_whether_a_machine_is_watched_for_the_whole_time_changes_with_the_profile(store: Store) -> None:
    task = await added(store)
    for enforces in (True, False):
        after = msgspec.structs.replace(task, enforce_timeout=enforces)
        await store.write(Change(task, after, TaskProfileChanged(task_id=task.id, profile="", requires=task.requires), NOON))
        assert await stored(store, task.id) == after
        task = after


async def test_an_event_is_told_before_its_caller_goes_on_and_after_it_is_stored(place: Place) -> None:
    order: list[str] = []
    store = place.store()
    await store.open(lambda events: order.extend(type(event.body).__name__ for event in events))
    task = await added(store)
    order.append("added")
    await claimed(store, task)
    order.append("claimed")
    await store.write(run(await stored(store, task.id)))
    order.append("written")
    await store.close()
    assert order == ["TaskCreated", "added", "TaskStarting", "claimed", "TaskStageChanged", "written"]


async def test_what_is_told_can_be_read(place: Place) -> None:
    store = place.store()
    readings: list[asyncio.Future[Sequence[Event]]] = []
    loop = asyncio.get_running_loop()

    def on_commit(events: Sequence[Event]) -> None:
        readings.append(loop.create_task(store.events(events[0].position.seq - 1, len(events))))  # type: ignore[arg-type]
        last.extend(events)

    last: list[Event] = []
    await store.open(on_commit)
    await asyncio.gather(*(store.add(new_task(f"content {n}")) for n in range(5)))
    found = [event for reading in readings for event in await reading]
    await store.close()
    assert found == last


async def test_notes_and_changes_are_told_in_the_order_of_the_calls(store: Store, told: Told) -> None:
    task = await claimed(store, await added(store))
    store.note(NOON, PoolPaused(reason="by operator"))
    first = store.write(run(task))
    store.note(NOON, PoolResumed())
    await store.write(stop(run(task).after))
    await first
    assert [type(body) for body in told.bodies[2:]] == [PoolPaused, TaskStageChanged, PoolResumed, TaskStageChanged]


async def test_stored_events_are_those_told(store: Store, told: Told) -> None:
    await completed(store)
    store.note(NOON, PoolPaused(reason="\x1b[2J"))
    await added(store, "another")
    assert list(await store.events(0, 100)) == told.events
    assert list(await store.events(2, 3)) == told.events[2:5]
    assert list(await store.events(len(told.events), 10)) == []


async def test_a_cancelled_wait_does_not_undo_a_write(store: Store, told: Told) -> None:
    waiting = await begun(store.add(new_task()))
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    again = await store.add(new_task())
    assert not again.created
    assert [type(body) for body in told.bodies] == [TaskCreated]
