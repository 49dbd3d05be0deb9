"""What every `Store` does, whatever it is made of."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from malbox_tui.model.errors import LeaseLost, StaleTask, StoreError
from malbox_tui.model.events import (
    Event,
    PoolPaused,
    PoolResumed,
    TaskCanceled,
    TaskCreated,
    TaskPriorityChanged,
    TaskStageChanged,
    TaskStarting,
)
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery, TaskSort
from malbox_tui.model.report import Identification
from malbox_tui.model.sample import SampleName
from malbox_tui.model.task import EndedBy, RequirementClass, RunOptions, Task, TaskState, Trigger, ended_while_pending
from malbox_tui.model.task import claimed as claimed_in_the_model
from malbox_tui.ports import Change, Store
from malbox_tui.simulated.store import FaultyStore
from malbox_tui.simulated.world import World
from malbox_tui.store.memory import MemoryStore
from tests.store.builders import (
    NOON,
    Told,
    added,
    claim_request,
    claimed,
    completed,
    give_back,
    new_task,
    run,
    settle,
    sha256_of,
    sqlite_store,
    stop,
)

T = TypeVar("T")


class Place:
    """Where a store keeps its things: `store()` gives an object over the same things each time."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind = kind
        self._folder = folder
        self._memory = MemoryStore()

    def store(self) -> Store:
        if self._kind == "faulty":
            return FaultyStore(self._memory, World(1, asyncio.sleep), FixedClock())  # noqa: TID251 - nothing is slow
        return self._memory if self._kind == "memory" else sqlite_store(self._folder / "store.sqlite")


class FixedClock:
    """It is noon."""

    def now(self) -> float:
        return NOON


@pytest.fixture(params=["memory", "sqlite", "faulty"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
async def store(place: Place, told: Told) -> AsyncIterator[Store]:
    store = place.store()
    await store.open(told)
    yield store
    await store.close()


async def query(store: Store, **values: object) -> list[int]:
    page = await store.tasks(TaskQuery(where=TaskFilter(**values)), NOON)  # type: ignore[arg-type]
    return [record.task.id for record in page.rows]


async def stored(store: Store, task_id: int) -> Task:
    page = await store.tasks(TaskQuery(where=TaskFilter(task_ids=(task_id,))), NOON)
    return page.rows[0].task


async def begun(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """`work` as a task that has reached its first wait."""
    handle = asyncio.get_running_loop().create_task(work)
    reached = asyncio.Event()
    asyncio.get_running_loop().call_soon(reached.set)
    await reached.wait()
    return handle


def cancel_pending(task: Task) -> Change:
    after = ended_while_pending(task, Trigger.CANCEL, NOON + 1, EndedBy.USER, "canceled by an operator")
    return Change(task, after, TaskCanceled(task_id=task.id, ended_by=EndedBy.USER, reason=after.reason), NOON + 1)


# --- opening and closing ---


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


# --- adding ---


async def test_an_added_task_is_pending_and_holds_what_was_asked(store: Store) -> None:
    wish = RequirementClass("dynamic", "windows", "x64", ("office",), "win10-1")
    result = await store.add(new_task(priority=5, timeout_s=12.5, requires=wish))
    assert result.created
    assert result.task == Task(
        id=1,
        sha256=sha256_of("sample"),
        type="dynamic",
        requires=wish,
        priority=5,
        timeout_s=12.5,
        created_at=NOON,
        stage_since=NOON,
    )
    assert await stored(store, 1) == result.task


async def test_how_a_sample_is_run_is_kept_on_all_its_ways(store: Store) -> None:
    asked = RunOptions(("-x", "", "a \u2028 b"), memory_dump=True)
    task = await claimed(store, await added(store, run=asked))
    assert task.run == asked
    assert [row.run for row in await store.owned()] == [asked]
    assert (await stored(store, task.id)).run == asked
    assert (await added(store, "other")).run == RunOptions()


async def test_adding_is_told_with_the_escaped_name(store: Store, told: Told) -> None:
    await added(store, name=b"r\xe9sum\xe9\n\x1b[2J.exe")
    assert told.bodies == [
        TaskCreated(task_id=1, sha256=sha256_of("sample"), type="static", priority=1, name="r\\xe9sum\\xe9\\x0a\\x1b[2J.exe")
    ]


async def test_content_with_a_pending_task_joins_it(store: Store, told: Told) -> None:
    first = await store.add(new_task(name=b"a"))
    second = await store.add(new_task(name=b"b"))
    assert (second.created, second.task) == (False, first.task)
    assert len(told.events) == 1


async def test_content_with_an_owned_task_joins_it(store: Store) -> None:
    owned = await claimed(store, await added(store))
    again = await store.add(new_task())
    assert (again.created, again.task) == (False, owned)


async def test_content_with_a_completed_task_is_a_duplicate_of_the_latest(store: Store) -> None:
    await completed(store, token="token-1")
    latest = (await store.add(new_task(again=True))).task
    for make in (run, stop, settle):
        latest = await claimed(store, latest, "token-2") if make is run else latest
        change = make(latest)
        await store.write(change)
        latest = change.after
    result = await store.add(new_task())
    assert (result.created, result.task) == (False, latest)


async def test_content_with_only_a_canceled_task_becomes_a_new_one(store: Store) -> None:
    await store.write(cancel_pending(await added(store)))
    result = await store.add(new_task())
    assert (result.created, result.task.id) == (True, 2)


async def test_again_makes_a_task_of_completed_content(store: Store) -> None:
    await completed(store)
    result = await store.add(new_task(again=True))
    assert (result.created, result.task.id) == (True, 2)


async def test_again_joins_a_pending_task(store: Store) -> None:
    await completed(store)
    second = (await store.add(new_task(again=True))).task
    third = await store.add(new_task(again=True))
    assert (third.created, third.task) == (False, second)


async def test_content_that_was_completed_and_waits_again_joins_the_waiting_task(store: Store) -> None:
    await completed(store)
    waiting = (await store.add(new_task(again=True))).task
    result = await store.add(new_task())
    assert (result.created, result.task) == (False, waiting)


async def test_a_retry_always_makes_a_task_and_names_its_origin(store: Store, told: Told) -> None:
    first = await completed(store)
    waiting = await store.add(new_task(again=True))
    result = await store.add(new_task(name=None, retry_of=first.id))
    assert waiting.created
    assert (result.created, result.task.retry_of) == (True, first.id)
    assert told.bodies[-1] == TaskCreated(
        task_id=3, sha256=first.sha256, type="static", priority=1, name="sample.exe", retry_of=first.id
    )


async def test_a_retry_of_a_task_that_is_not_there_is_refused_and_harms_no_other(store: Store, told: Told) -> None:
    bad, good = await asyncio.gather(store.add(new_task("a", retry_of=99)), store.add(new_task("b")), return_exceptions=True)
    assert isinstance(bad, StoreError)
    assert not isinstance(good, BaseException)
    assert good.task.id == 1
    assert [event.position.seq for event in told.events] == [1]


async def test_two_adds_of_one_content_at_the_same_time_make_one_task(store: Store, told: Told) -> None:
    results = await asyncio.gather(*(store.add(new_task(name=b"n%d" % number)) for number in range(5)))
    assert [result.created for result in results] == [True, False, False, False, False]
    assert {result.task.id for result in results} == {1}
    assert len(told.events) == 1


async def test_tasks_added_at_the_same_time_are_numbered_in_the_order_of_the_calls(store: Store, told: Told) -> None:
    results = await asyncio.gather(*(store.add(new_task(f"content {number}")) for number in range(20)))
    assert [result.task.id for result in results] == list(range(1, 21))
    assert [body.task_id for body in told.bodies if isinstance(body, TaskCreated)] == list(range(1, 21))


async def test_names_are_kept_as_bytes_each_once_in_the_order_they_came(store: Store) -> None:
    names = [b"\xff\xfe\x00odd", "naïve\n".encode(), b"[bold]", b"\xff\xfe\x00odd", b"'; DROP TABLE task; --"]
    for name in names:
        await store.add(new_task(name=name, origin=b"/in"))
    await store.add(new_task(name=b"[bold]", origin=b"/elsewhere"))
    page = await store.tasks(TaskQuery(), NOON)
    assert page.rows[0].sample.names == (
        *(SampleName(name, b"/in") for name in dict.fromkeys(names)),
        SampleName(b"[bold]", b"/elsewhere"),
    )


async def test_the_name_of_a_duplicate_is_kept(store: Store) -> None:
    await completed(store)
    await store.add(new_task(name=b"other name"))
    assert await query(store, name_contains=b"other") == [1]


async def test_a_sample_remembers_its_size_and_when_it_was_first_seen(store: Store) -> None:
    await added(store, at=NOON)
    await added(store, at=NOON + 9)
    sample = (await store.tasks(TaskQuery(), NOON)).rows[0].sample
    assert (sample.size_bytes, sample.first_seen_at, sample.identification) == (6, NOON, None)


# --- claiming ---


async def test_a_claimed_task_is_what_the_model_makes_of_it(store: Store, told: Told) -> None:
    task = await added(store, at=NOON)
    owned = await store.claim(claim_request(task.id, at=NOON + 1 / 3))
    assert owned == claimed_in_the_model(task, "worker-1", "token-1", NOON + 1 / 3, NOON + 1 / 3 + 60)
    assert await stored(store, task.id) == owned
    assert told.events[-1].body == TaskStarting(task_id=task.id, worker="worker-1", attempt=1)
    assert told.events[-1].at == NOON + 1 / 3


async def test_the_losing_claimer_gets_nothing(store: Store, told: Told) -> None:
    task = await added(store)
    await claimed(store, task, "first")
    assert await store.claim(claim_request(task.id, "second")) is None
    assert (await stored(store, task.id)).token == "first"
    assert len(told.events) == 2


async def test_of_claims_at_the_same_time_the_first_wins(store: Store, told: Told) -> None:
    task = await added(store)
    answers = await asyncio.gather(*(store.claim(claim_request(task.id, f"token-{n}")) for n in range(4)))
    assert [answer.token if answer else None for answer in answers] == ["token-0", None, None, None]
    assert len(told.events) == 2


async def test_many_claims_at_the_same_time_each_get_their_task(store: Store) -> None:
    tasks = [await added(store, f"content {n}") for n in range(8)]
    answers = await asyncio.gather(*(store.claim(claim_request(task.id, f"token-{task.id}")) for task in tasks))
    assert [(answer.id, answer.token) for answer in answers if answer] == [(task.id, f"token-{task.id}") for task in tasks]


async def test_nothing_but_a_pending_task_can_be_claimed(store: Store) -> None:
    done = await completed(store)
    assert await store.claim(claim_request(done.id, "token-9")) is None
    assert await store.claim(claim_request(99, "token-9")) is None


async def test_a_token_that_owns_a_task_can_not_own_another(store: Store) -> None:
    first, second = await added(store, "a"), await added(store, "b")
    await claimed(store, first, "same")
    with pytest.raises(StoreError):
        await store.claim(claim_request(second.id, "same"))
    assert (await stored(store, second.id)).state is TaskState.PENDING


async def test_a_task_given_back_can_be_claimed_again(store: Store) -> None:
    owned = await claimed(store, await added(store), "first")
    await store.write(give_back(owned, crashed=True))
    again = await store.claim(claim_request(owned.id, "second", at=NOON + 9))
    assert again is not None
    assert (again.attempts, again.crashes, again.token) == (1, 1, "second")


async def test_a_task_is_claimed_as_it_was_changed_while_it_waited(store: Store) -> None:
    task = await added(store)
    after = msgspec.structs.replace(task, priority=9, reason="moved up")
    await store.write(Change(task, after, TaskPriorityChanged(task_id=task.id, priority=9), NOON))
    assert await claimed(store, task) == claimed_in_the_model(after, "worker-1", "token-1", NOON + 1, NOON + 61)


async def test_a_task_whose_claim_failed_with_others_can_be_claimed(store: Store) -> None:
    first, second = await added(store, "a"), await added(store, "b")
    results = await asyncio.gather(
        store.add(new_task("c")),
        store.claim(claim_request(first.id, "same")),
        store.claim(claim_request(second.id, "same")),
        return_exceptions=True,
    )
    assert isinstance(results[2], StoreError)
    assert await claimed(store, second, "another") == claimed_in_the_model(second, "worker-1", "another", NOON + 1, NOON + 61)
    assert await query(store, states=frozenset({TaskState.PENDING})) == [3]


async def test_a_pending_task_canceled_just_before_is_not_claimed(store: Store) -> None:
    task = await added(store)
    canceling = store.write(cancel_pending(task))
    assert await store.claim(claim_request(task.id)) is None
    await canceling
    assert (await stored(store, task.id)).state is TaskState.CANCELED


async def test_a_task_claimed_just_before_is_not_canceled_as_pending(store: Store) -> None:
    task = await added(store)
    claiming = await begun(store.claim(claim_request(task.id)))
    with pytest.raises(StaleTask):
        await store.write(cancel_pending(task))
    assert await stored(store, task.id) == await claiming


# --- changing ---


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


# --- stored first, said second ---


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


# --- cancelled callers ---


async def test_a_cancelled_wait_does_not_undo_a_write(store: Store, told: Told) -> None:
    waiting = await begun(store.add(new_task()))
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    again = await store.add(new_task())
    assert not again.created
    assert [type(body) for body in told.bodies] == [TaskCreated]


# --- leases ---


async def test_a_renewed_lease_lasts_longer(store: Store) -> None:
    task = await claimed(store, await added(store))
    assert await store.renew(["token-1"], NOON + 500) == frozenset()
    assert (await stored(store, task.id)).lease_until == NOON + 500


async def test_renewing_names_the_tokens_that_own_nothing(store: Store) -> None:
    task = await claimed(store, await added(store))
    await store.write(give_back(task))
    await claimed(store, await added(store, "other"), "token-2")
    assert await store.renew(["token-1", "token-2", "never"], NOON + 500) == {"token-1", "never"}
    assert await store.renew([], NOON + 500) == frozenset()


async def test_a_change_does_not_shorten_a_renewed_lease(store: Store) -> None:
    task = await claimed(store, await added(store))
    await store.renew(["token-1"], NOON + 500)
    await store.write(run(task))
    assert (await stored(store, task.id)).lease_until == NOON + 500


async def test_renewing_never_shortens_a_lease(store: Store) -> None:
    task = await claimed(store, await added(store))
    assert await store.renew(["token-1"], NOON) == frozenset()
    assert (await stored(store, task.id)).lease_until == task.lease_until


# --- samples ---


async def test_the_kind_of_a_sample_is_kept(store: Store) -> None:
    await added(store)
    kind = Identification("pe", "application/vnd.microsoft.portable-executable", "windows", "x64", "PE32+")
    await store.identify(sha256_of("sample"), kind)
    await store.identify(sha256_of("nothing"), kind)
    assert (await store.tasks(TaskQuery(), NOON)).rows[0].sample.identification == kind


# --- queries ---


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
