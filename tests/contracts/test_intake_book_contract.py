"""What every `IntakeBook` does, whatever store keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from malbox_tui.model.intake import Fate, IntakeEntry, IntakeHead, IntakeLine, IntakePage, LineQuery, Way
from malbox_tui.model.queries import TaskFilter, TaskQuery
from malbox_tui.model.sample import SampleName
from malbox_tui.ports import NewTask
from malbox_tui.store import memory, sqlite_batch
from malbox_tui.store.memory import MemoryStore
from malbox_tui.store.sqlite import SqliteStore
from malbox_tui.store.sqlite_reader import SqliteReader
from tests.intake.test_folder_walk import HOSTILE_NAMES
from tests.store.builders import NOON, Told, new_task, sqlite_store

Kept = MemoryStore | SqliteStore

ARCHIVE = "ab" * 32
DROP = IntakeHead(key="drop", began_at=NOON, actor="ana", origin="laptop (process 7)", way=Way.DROP, title="3 paths")
WATCH = IntakeHead(key="watch", began_at=NOON + 1, actor="watch:/in", way=Way.WATCH, title="/in")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    store = MemoryStore() if request.param == "memory" else sqlite_store(tmp_path / "store.sqlite")
    await store.open(Told())
    yield store
    await store.close()


def coming(content: str = "sample", **fields: Any) -> NewTask:
    """A task to add, with any name."""
    name = fields.pop("name", SampleName(b"sample.exe", b"/in/sample.exe"))
    return msgspec.structs.replace(new_task(content), name=name, **fields)


def refused(name: bytes = b"x", *, at: float = NOON, reason: str = "It is a link.") -> IntakeLine:
    return IntakeLine(fate=Fate.REFUSED, name=SampleName(name, b"/in/" + name), at=at, code="link", reason=reason)


def opened(name: bytes = b"a.zip") -> IntakeLine:
    sums = {"sha256": ARCHIVE, "size_bytes": 2**40}
    return IntakeLine(fate=Fate.OPENED, name=SampleName(name), at=NOON, reason="zip archive: 1 taken", **sums)  # type: ignore[arg-type]


async def page(store: Kept, **asked: object) -> IntakePage:
    return await store.intake_lines(LineQuery(**{"intake": 1, **asked}))  # type: ignore[arg-type]


async def test_a_new_store_has_no_intakes(store: Kept) -> None:
    assert list(await store.intakes(None, 10)) == []
    assert await page(store) == IntakePage(intake=None)


async def test_what_is_added_has_its_line_with_its_task_and_a_duplicate_the_task_it_is_one_of(store: Kept) -> None:
    first = (await store.add(coming(intake=DROP))).task
    await store.add(coming(intake=DROP, name=SampleName(b"again", b"/in/again", ARCHIVE)))
    found = await page(store)
    assert [(line.fate, line.name.name, line.name.archive, line.task_id) for line in found.lines] == [
        (Fate.ACCEPTED, b"sample.exe", "", first.id),
        (Fate.DUPLICATE, b"again", ARCHIVE, first.id),
    ]
    assert {(line.sha256, line.size_bytes) for line in found.lines} == {(first.sha256, new_task().size_bytes)}
    assert found.intake is not None
    assert (found.intake.head, found.intake.accepted, found.intake.duplicates, found.intake.total) == (DROP, 1, 1, 2)


async def test_a_task_without_an_intake_or_a_new_name_has_no_line(store: Kept) -> None:
    first = (await store.add(new_task())).task
    await store.add(coming(name=None, retry_of=first.id, intake=DROP))
    assert list(await store.intakes(None, 10)) == []


async def test_lines_are_kept_as_they_were_entered_in_the_order_of_the_calls(store: Kept) -> None:
    store.enter(IntakeEntry(DROP, refused()))
    store.enter(IntakeEntry(WATCH, refused(b"other")))
    store.enter(IntakeEntry(DROP, opened()))
    await store.add(coming(intake=DROP, name=SampleName(b"sample.exe", b"/in/sample.exe")))
    found = await page(store)
    assert [(line.fate, line.name, line.code, line.reason, line.size_bytes) for line in found.lines] == [
        (Fate.REFUSED, SampleName(b"x", b"/in/x"), "link", "It is a link.", None),
        (Fate.OPENED, SampleName(b"a.zip"), "", "zip archive: 1 taken", 2**40),
        (Fate.ACCEPTED, SampleName(b"sample.exe", b"/in/sample.exe"), "", "", new_task().size_bytes),
    ]
    numbers = [line.number for line in found.lines]
    assert numbers == sorted(set(numbers)) == [1, 3, 4]
    assert [view.head.key for view in await store.intakes(None, 10)] == ["watch", "drop"], "the latest first"
    assert [view.head.key for view in await store.intakes(2, 10)] == ["drop"]
    assert len(await store.intakes(None, 1)) == 1
    assert list(await store.intakes(None, -1)) == []


async def test_an_intake_that_goes_on_is_the_same_one_and_counts_on(store: Kept) -> None:
    await store.enter(IntakeEntry(DROP, refused(at=NOON)))
    await store.enter(IntakeEntry(DROP, refused(at=NOON + 5)))
    (view,) = await store.intakes(None, 10)
    assert (view.number, view.refused, view.head.began_at, view.latest_at) == (1, 2, NOON, NOON + 5)


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, bytes(range(256)), b"readme.txt", b"", b"x" * 100_000])
async def test_no_name_is_left_out(store: Kept, name: bytes) -> None:
    await store.enter(IntakeEntry(DROP, refused(name)))
    await store.add(coming(intake=DROP, name=SampleName(name, b"/in/" + name)))
    assert [line.name.name for line in (await page(store)).lines] == [name, name]


async def test_words_that_are_no_text_do_no_harm(store: Kept) -> None:
    odd = IntakeHead(key="odd", began_at=NOON, actor="\udcff", origin="\x00", title="\ud800\u202e")
    await store.enter(IntakeEntry(odd, refused(reason="\udcff" * 5000)))
    await store.enter(IntakeEntry(DROP, refused()))
    assert [view.refused for view in await store.intakes(None, 10)] == [1, 1]
    (line,) = (await page(store)).lines
    assert line.reason


async def test_a_window_of_lines_begins_after_a_number_and_holds_only_the_fates_that_are_asked_for(store: Kept) -> None:
    for number in range(6):
        store.enter(IntakeEntry(DROP, refused(b"%d" % number) if number % 2 else opened(b"%d" % number)))
    await store.enter(IntakeEntry(DROP, refused(b"6")))

    async def asked(**window: object) -> tuple[list[bytes], bool]:
        found = await page(store, **window)
        return [line.name.name for line in found.lines], found.more

    assert await asked(limit=3) == ([b"0", b"1", b"2"], True)
    assert await asked(after=3, limit=4) == ([b"3", b"4", b"5", b"6"], False)
    assert await asked(fates=frozenset({Fate.REFUSED}), limit=3) == ([b"1", b"3", b"5"], True)
    assert await asked(fates=frozenset()) == ([], False)
    assert await asked(limit=0) == ([], True)
    assert await asked(limit=-1) == ([], True)


async def test_of_too_many_lines_and_intakes_the_oldest_are_forgotten(store: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (memory, sqlite_batch):
        monkeypatch.setattr(module, "KEPT_LINES", 4)
        monkeypatch.setattr(module, "KEPT_INTAKES", 2)
    for number in range(6):
        await store.enter(IntakeEntry(DROP, refused(b"%d" % number)))
    found = await page(store)
    assert [line.name.name for line in found.lines] == [b"2", b"3", b"4", b"5"]
    assert found.intake is not None
    assert found.intake.refused == 6, "all are counted"
    for key in ("a", "b"):
        await store.enter(IntakeEntry(IntakeHead(key=key, began_at=NOON, actor="ana"), refused()))
    assert [view.head.key for view in await store.intakes(None, 10)] == ["b", "a"]


async def test_many_lines_of_one_commit_are_all_kept(store: Kept) -> None:
    for number in range(700):
        answer = store.enter(IntakeEntry(DROP, refused(b"%d" % number)))
    await answer
    found = await page(store, limit=1000)
    assert [line.name.name for line in found.lines] == [b"%d" % number for number in range(700)]


async def test_the_same_content_in_two_archives_keeps_both_names_and_is_found_by_each(store: Kept) -> None:
    other = "cd" * 32
    for archive in (ARCHIVE, other, ARCHIVE, ""):
        await store.add(coming(name=SampleName(b"a", b"/in/x.zip!/a", archive)))
    await store.add(new_task("other"))

    async def tasks(archive: str) -> int:
        return (await store.tasks(TaskQuery(where=TaskFilter(archive=archive)), NOON)).total

    record = (await store.tasks(TaskQuery(where=TaskFilter(archive=ARCHIVE)), NOON)).rows[0]
    assert [name.archive for name in record.sample.names] == [ARCHIVE, other, ""]
    assert [await tasks(archive) for archive in (ARCHIVE, other.upper(), "ef" * 32, "")] == [1, 1, 0, 0]


async def test_tasks_are_found_by_the_sums_of_their_contents(store: Kept) -> None:
    await store.add(new_task())
    await store.add(new_task("other"))
    sums = (new_task().sha256.upper(), "2" * 64, "x' OR 1")
    assert (await store.tasks(TaskQuery(where=TaskFilter(sha256s=sums)), NOON)).total == 1
    assert (await store.tasks(TaskQuery(where=TaskFilter(sha256s=())), NOON)).total == 0


async def test_accounts_outlive_the_engine_and_are_read_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = sqlite_store(path)
    await store.open(Told())
    await store.enter(IntakeEntry(DROP, refused()))
    await store.close()
    store = sqlite_store(path)
    await store.open(Told())
    await store.enter(IntakeEntry(DROP, refused()))
    reader = SqliteReader(path)
    await reader.open()
    assert list(await reader.intakes(None, 10)) == list(await store.intakes(None, 10))
    assert await reader.intake_lines(LineQuery(intake=1)) == await store.intake_lines(LineQuery(intake=1))
    await reader.close()
    await store.close()
