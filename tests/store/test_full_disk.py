"""A full disk refuses what it can't keep, loses nothing, and is of use again when there is room."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.errors import StoreFull
from malbox_tui.model.queries import TaskQuery
from malbox_tui.store.quarantine import CartQuarantine
from malbox_tui.store.results import FileResultStore
from malbox_tui.store.sqlite_reader import SqliteReader
from tests.store.builders import NOON, Told, added, claimed, new_task, run, sqlite_store
from tests.store.conftest import SmallDisk

LIMIT = 64 << 20


async def noise(size_bytes: int) -> AsyncIterator[bytes]:
    content = hashlib.shake_256(b"noise").digest(size_bytes)
    for start in range(0, size_bytes, 1 << 16):
        yield content[start : start + (1 << 16)]


async def test_every_write_of_a_full_store_is_refused_and_it_works_again_with_room(small_disk: SmallDisk) -> None:
    told = Told()
    store = sqlite_store(small_disk.folder / "store.sqlite")
    await store.open(told)
    kept = await added(store, "kept")
    owned = await claimed(store, await added(store, "owned"))
    small_disk.fill()
    long_name = b"n" * 200_000
    refused = await asyncio.gather(
        *(store.add(new_task(f"refused {number}", long_name)) for number in range(20)), return_exceptions=True
    )
    assert {type(answer) for answer in refused} == {StoreFull}
    assert (await store.tasks(TaskQuery(), NOON)).total == 2
    small_disk.make_room()
    await store.write(run(owned))
    after = await added(store, "after")
    await store.close()
    assert after.id == owned.id + 1 == kept.id + 2
    assert [event.position.seq for event in told.events] == [1, 2, 3, 4, 5]


async def test_a_content_that_a_full_disk_can_not_keep_is_refused_and_leaves_nothing(small_disk: SmallDisk) -> None:
    quarantine = CartQuarantine(small_disk.folder / "quarantine")
    await quarantine.open()
    small_disk.fill(but_bytes=128 << 10)
    for size_bytes in (200_000, 2_000_000):
        with pytest.raises(StoreFull):
            await quarantine.store(noise(size_bytes), LIMIT)
    assert [path for path in (small_disk.folder / "quarantine").rglob("*") if path.is_file()] == []
    small_disk.make_room()
    assert (await quarantine.store(noise(2_000_000), LIMIT)).size_bytes == 2_000_000
    await quarantine.close()


async def test_extracting_to_a_full_disk_is_refused_and_leaves_nothing(small_disk: SmallDisk, tmp_path: Path) -> None:
    quarantine = CartQuarantine(tmp_path / "quarantine")
    await quarantine.open()
    stored = await quarantine.store(noise(8 << 20), LIMIT)
    with pytest.raises(StoreFull):
        await quarantine.extract(stored.sha256, small_disk.folder / "out")
    assert list(small_disk.folder.iterdir()) == []
    await quarantine.close()


async def test_a_result_that_a_full_disk_can_not_keep_is_refused_and_leaves_nothing(small_disk: SmallDisk) -> None:
    results = FileResultStore(small_disk.folder / "results")
    await results.open()
    writer = results.begin(1, "token", "yara", "dump", "bytes")
    with pytest.raises(StoreFull):
        writer.write(bytes(8 << 20))
    writer.abort()
    assert [path for path in (small_disk.folder / "results").rglob("*") if path.is_file()] == []
    await results.close()


@pytest.mark.parametrize("room_bytes", [0, 16 << 10])
async def test_a_store_that_nobody_writes_is_read_on_a_full_disk(small_disk: SmallDisk, room_bytes: int) -> None:
    store = sqlite_store(small_disk.folder / "store")
    await store.open(Told())
    await added(store)
    await store.close()
    small_disk.fill(but_bytes=room_bytes)
    reader = SqliteReader(small_disk.folder / "store")
    await reader.open()
    assert (await reader.tasks(TaskQuery(), NOON)).total == 1
    await reader.close()
