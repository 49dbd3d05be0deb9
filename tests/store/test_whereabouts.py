"""A store that is taken away from under its engine takes nothing: what is written to a file without a name is gone with the process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from malbox_tui.model.errors import StoreError
from malbox_tui.store.sqlite import SqliteStore
from tests.store.builders import added, sqlite_store


def _folder_is_renamed(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def _folder_is_removed(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()


def _another_is_in_its_place(path: Path) -> None:
    _folder_is_renamed(path)
    path.parent.mkdir()
    path.write_bytes(b"")


def _its_log_is_removed(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


TAKEN_AWAY = {
    _folder_is_renamed: "was taken away",
    _folder_is_removed: "was taken away",
    _another_is_in_its_place: "was replaced by another",
    _its_log_is_removed: "has lost its -wal file",
}


async def _problems(store: SqliteStore) -> list[str]:
    """What is said to who writes, and to who only looks; empty where all is well."""
    said = []
    asks: tuple[Callable[[], Awaitable[object]], ...] = (lambda: added(store, "b"), store.check)
    for ask in asks:
        try:
            await ask()
        except StoreError as error:
            said.append(str(error))
    return said


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open one in a folder of its own."""
    (tmp_path / "data").mkdir()
    store = sqlite_store(tmp_path / "data" / "store.sqlite3")
    await store.open(lambda _events: None)
    yield store
    await store.close()


@pytest.mark.parametrize("take_away", TAKEN_AWAY, ids=lambda take_away: take_away.__name__[1:])
async def test_one_that_was_taken_away_takes_nothing_and_says_so(
    tmp_path: Path, store: SqliteStore, take_away: Callable[[Path], None]
) -> None:
    path = tmp_path / "data" / "store.sqlite3"
    assert await _problems(store) == []
    take_away(path)
    problem = f"{path} {TAKEN_AWAY[take_away]} while it was in use."
    assert [said[: len(problem)] for said in await _problems(store)] == [problem] * 2


async def test_one_that_is_put_back_goes_on(tmp_path: Path, store: SqliteStore) -> None:
    _folder_is_renamed(tmp_path / "data" / "store.sqlite3")
    assert len(await _problems(store)) == 2
    (tmp_path / "elsewhere").rename(tmp_path / "data")
    assert await _problems(store) == []


async def test_one_whose_disk_became_read_only_says_so(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list(os.statvfs(tmp_path))
    flags = found[8] | os.ST_RDONLY
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result([*found[:8], flags, *found[9:]]))
    assert [said.partition(": ")[0] for said in await _problems(store)] == [
        f"{tmp_path / 'data' / 'store.sqlite3'} can't be written"
    ] * 2
    monkeypatch.undo()
    assert await _problems(store) == []
