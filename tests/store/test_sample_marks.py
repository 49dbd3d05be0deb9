"""Notes and tags of samples, in both stores: kept with the news of them, and read with each task of the content."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.events import SampleMarked
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.sample import Note, Sample
from malbox_tui.ports import Store
from malbox_tui.store.memory import MemoryStore
from tests.store.builders import NOON, new_task, sqlite_store

STORES = pytest.mark.parametrize("kind", ["sqlite", "memory"])


def store_of(kind: str, folder: Path) -> Store:
    return sqlite_store(folder / "store.sqlite3") if kind == "sqlite" else MemoryStore()


@pytest.fixture
async def opened(kind: str, tmp_path: Path) -> AsyncIterator[Store]:
    store = store_of(kind, tmp_path)
    await store.open(lambda events: None)
    yield store
    await store.close()


async def samples(store: Store) -> list[Sample]:
    return [row.sample for row in (await store.tasks(TaskQuery(), NOON)).rows]


@STORES
async def test_what_people_note_is_kept_with_the_sample(opened: Store) -> None:
    task = (await opened.add(new_task())).task
    await opened.note(NOON, SampleMarked(sha256=task.sha256, actor="ana", note="from the\nmail \x1b[31m", tags=("b", "a")))
    await opened.note(NOON + 1, SampleMarked(sha256=task.sha256, actor="ben", note="second", tags=("a", "c"), untags=("b",)))
    (sample,) = await samples(opened)
    assert sample.notes == (Note(NOON, "ana", "from the\nmail \x1b[31m"), Note(NOON + 1, "ben", "second"))
    assert sample.tags == ("a", "c")


@STORES
async def test_both_tasks_of_a_content_have_its_marks_and_other_contents_none(opened: Store) -> None:
    first = (await opened.add(new_task())).task
    await opened.note(NOON, SampleMarked(sha256=first.sha256, actor="ana", tags=("x",)))
    await opened.add(new_task(name=None, retry_of=first.id))
    await opened.add(new_task("another"))
    assert [sample.tags for sample in await samples(opened)] == [(), ("x",), ("x",)]


@STORES
async def test_marks_of_a_sample_that_is_not_there_change_nothing(opened: Store) -> None:
    await opened.add(new_task())
    await opened.note(NOON, SampleMarked(sha256="f" * 64, actor="ana", tags=("x",)))
    assert [sample.tags for sample in await samples(opened)] == [()]


@STORES
async def test_an_add_and_a_mark_in_one_commit_are_both_kept(opened: Store) -> None:
    task = (await opened.add(new_task())).task
    kept = [opened.note(NOON, SampleMarked(sha256=task.sha256, actor="ana", tags=(f"t{number}",))) for number in range(20)]
    added = await opened.add(new_task("another"))
    for answer in kept:
        await answer
    assert added.created
    tags = {sample.sha256: sample.tags for sample in await samples(opened)}
    assert len(tags[task.sha256]) == 20


async def test_marks_are_there_after_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    store = sqlite_store(path)
    await store.open(lambda events: None)
    task = (await store.add(new_task())).task
    await store.note(NOON, SampleMarked(sha256=task.sha256, actor="ana", note="kept", tags=("x",)))
    await store.close()
    store = sqlite_store(path)
    await store.open(lambda events: None)
    (sample,) = await samples(store)
    await store.close()
    assert (sample.notes[0].text, sample.tags) == ("kept", ("x",))
