"""How tasks and what is known of their samples come into every `Store`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import TaskCreated
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.report import Identification
from malbox_tui.model.sample import SampleName
from malbox_tui.model.task import ChosenBy, ChosenProfile, RequirementClass, RunOptions, Task
from malbox_tui.ports import Change, Store
from tests.contracts.store.asking import cancel_pending, query, stored
from tests.store.builders import NOON, Told, added, claimed, completed, new_task, run, settle, sha256_of, stop


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


async def test_the_profile_that_was_chosen_is_kept_on_all_its_ways(store: Store) -> None:
    own = RequirementClass("dynamic", "linux", tags=("office",))
    asked = ChosenProfile(name="office \u2028", by=ChosenBy.KIND, kind="ole", timeout_s=7.5, requires=own)
    task = await claimed(store, await added(store, profile=asked))
    assert task.profile == asked
    assert [row.profile for row in await store.owned()] == [asked]
    assert (await stored(store, task.id)).profile == asked
    assert (await added(store, "other")).profile is None


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


@pytest.mark.parametrize("end", [cancel_pending, None])
async def test_what_is_to_be_unique_joins_whatever_task_its_content_has(
    store: Store, end: Callable[[Task], Change] | None
) -> None:
    first = await added(store, owner="ana")
    if end is not None:
        await store.write(end(first))
    result = await store.add(new_task(name=b"other.exe", unique=True))
    assert (result.created, result.task.id, result.task.owner) == (False, first.id, "ana")
    assert (await store.add(new_task("other content", unique=True))).created


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


async def test_the_kind_of_a_sample_is_kept(store: Store) -> None:
    await added(store)
    kind = Identification("pe", "application/vnd.microsoft.portable-executable", "windows", "x64", "PE32+")
    await store.identify(sha256_of("sample"), kind)
    await store.identify(sha256_of("nothing"), kind)
    assert (await store.tasks(TaskQuery(), NOON)).rows[0].sample.identification == kind
