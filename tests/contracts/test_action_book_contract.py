"""What every `ActionBook` does, whatever store keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.model.actions import ActionRecord, Submitted
from malbox_tui.model.commands import (
    Action,
    CancelTasks,
    DisableMachines,
    EnableMachines,
    PausePool,
    ResizeGroup,
    ResumePool,
    RetryTasks,
    SaveLimits,
    SetPriority,
    Shutdown,
    ShutdownMode,
)
from malbox_tui.model.events import ActionTaken, PoolResumed
from malbox_tui.model.task import TaskState
from malbox_tui.store.memory import MemoryStore
from malbox_tui.store.sqlite import SqliteStore
from malbox_tui.store.sqlite_reader import SqliteReader
from tests.store.builders import NOON, Told, added, sqlite_store

Kept = MemoryStore | SqliteStore

EACH: tuple[Action | Submitted, ...] = (
    CancelTasks(task_ids=(3, 4), expected=TaskState.RUNNING),
    SetPriority(task_ids=(3,), priority=-7),
    RetryTasks(task_ids=(1, 2)),
    ResizeGroup(group="windows", min_workers=None, max_workers=4),
    SaveLimits(),
    DisableMachines(machines=("win10-1", "\x1b[31m")),
    EnableMachines(machines=("win10-1",)),
    PausePool(),
    ResumePool(),
    Shutdown(mode=ShutdownMode.DRAIN, within_s=60.5),
    Submitted(accepted=3, duplicates=1, refused=2),
)


def taken(action: Action | Submitted = PausePool(), **fields: Any) -> ActionTaken:  # noqa: B008 - immutable
    return ActionTaken(**{"actor": "ana", "action": action, "done": True, "message": "Done.", **fields})


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, told: Told) -> AsyncIterator[Kept]:
    store = MemoryStore() if request.param == "memory" else sqlite_store(tmp_path / "store.sqlite")
    await store.open(told)
    yield store
    await store.close()


@pytest.fixture
def told() -> Told:
    return Told()


async def numbers(store: Kept, before: int | None, limit: int) -> list[int]:
    return [record.number for record in await store.actions(before, limit)]


async def test_a_new_store_has_no_actions(store: Kept) -> None:
    assert list(await store.actions(None, 10)) == []


@pytest.mark.parametrize("action", EACH, ids=lambda action: type(action).__name__)
async def test_every_kind_of_action_is_kept_as_it_was_told(store: Kept, told: Told, action: Action) -> None:
    body = taken(action, origin="laptop (process 7)", message="It\u202e broke \x00", done=False, done_to=(3, 2**40))
    await store.note(NOON, body)
    number = told.events[-1].position.seq
    assert told.bodies == [body]
    assert list(await store.actions(None, 10)) == [
        ActionRecord(
            number=number,
            at=NOON,
            actor="ana",
            origin=body.origin,
            action=action,
            done=False,
            message=body.message,
            done_to=body.done_to,
        )
    ]


async def test_an_action_has_the_number_of_its_event(store: Kept, told: Told) -> None:
    store.note(NOON, taken())
    await added(store)
    store.note(NOON, PoolResumed())
    await store.note(NOON, taken())
    seqs = [event.position.seq for event in told.events if isinstance(event.body, ActionTaken)]
    assert await numbers(store, None, 10) == seqs[::-1] == [4, 1]


async def test_a_window_holds_the_latest_before_a_number(store: Kept) -> None:
    for _ in range(5):
        store.note(NOON, taken())
    await store.note(NOON, taken())
    assert await numbers(store, None, 2) == [6, 5]
    assert await numbers(store, 5, 2) == [4, 3]
    assert await numbers(store, 1, 2) == []
    assert await numbers(store, 99, 100) == [6, 5, 4, 3, 2, 1]
    assert await numbers(store, None, 0) == []
    assert await numbers(store, None, -1) == []


async def test_many_actions_of_one_commit_are_all_kept(store: Kept) -> None:
    for _ in range(130):
        answer = store.note(NOON, taken())
    await answer
    assert await numbers(store, None, 1000) == list(range(130, 0, -1))


async def test_actions_outlive_the_engine_and_its_events(tmp_path: Path) -> None:
    def ignore(events: Sequence[object]) -> None:
        pass

    path = tmp_path / "store.sqlite"
    for _ in range(3):
        store = sqlite_store(path, kept_events=1)
        await store.open(ignore)
        store.note(NOON, taken())
        await store.note(NOON, PoolResumed())
        await store.close()
    store = sqlite_store(path, kept_events=1)
    await store.open(ignore)
    assert len(await store.events(0, 100)) == 1
    assert await numbers(store, None, 10) == [5, 3, 1]
    reader = SqliteReader(path)
    await reader.open()
    assert list(await reader.actions(None, 10)) == list(await store.actions(None, 10)), "beside a running engine too"
    await reader.close()
    await store.close()
