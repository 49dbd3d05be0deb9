"""A program that is killed while it brings a store up to date leaves it as it was or as it is to be, and the next one goes on."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.model.errors import StoreFull
from malbox_tui.store.migrations import migrate
from malbox_tui.store.statements import migrations
from tests.store.conftest import SmallDisk
from tests.store.test_upgrades import LATEST, dump, put, sqlite_store, version_of

OLDEST_AND_NEWEST = (1, LATEST - 1)
"""Bringing the oldest up to date takes every step that there is, the newest the last ones alone."""
HALF_WAY = 50
"""Instructions of SQLite's machine: more than a statement that only begins or sets something takes, fewer than one that moves rows."""


class Watched:
    """A connection that counts its statements. Of number `killed_at` it begins some, and takes its process with it."""

    def __init__(self, path: Path, killed_at: int | None = None, after: int = 0) -> None:
        self._inner = sqlite3.connect(path, isolation_level=None)
        self._inner.execute("PRAGMA journal_mode = WAL")
        self._killed_at = killed_at
        self._after = after
        self.count = 0

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        if self.count == self._killed_at:
            if not self._after:
                die()
            self._inner.set_progress_handler(die, self._after)
        self.count += 1
        return self._inner.execute(sql, parameters)

    def rollback(self) -> None:
        self._inner.rollback()

    def close(self) -> None:
        self._inner.close()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def migrated(path: Path, killed_at: int | None = None, after: int = 0) -> int:
    """Bring it up to date; returns how many statements that took."""
    connection = Watched(path, killed_at, after)
    migrate(connection, path, migrations())  # type: ignore[arg-type]
    connection.close()
    return connection.count


def killed(path: Path, killed_at: int, after: int) -> bool:
    """The same in a process that is killed at that statement; False: it was done before that."""
    child = os.fork()
    if child == 0:
        try:
            migrated(path, killed_at, after)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, HALF_WAY], ids=["before", "half way"])
@pytest.mark.parametrize("version", OLDEST_AND_NEWEST)
def test_one_that_is_killed_at_any_step_is_gone_on_with(tmp_path: Path, version: int, after: int) -> None:
    whole = tmp_path / "whole"
    put(version, whole)
    before = dump(whole)
    steps = migrated(whole)
    kills = 0
    for step in range(steps):
        path = tmp_path / str(step) / "store.sqlite"
        path.parent.mkdir()
        put(version, path)
        kills += killed(path, step, after)
        assert dump(path) == (before if version_of(path) == version else dump(whole)), f"killed at {step}"
        migrated(path)
        assert (dump(path), version_of(path)) == (dump(whole), LATEST), f"gone on with after a kill at {step}"
        (copy,) = path.parent.glob("*.bak*")
        assert (copy.name, sorted(dump(copy))) == (f"store.sqlite.v{version}.bak", sorted(before)), (
            f"copied after a kill at {step}"
        )
    assert kills == steps if not after else kills > 0


async def test_where_there_is_no_room_for_the_copy_nothing_is_done_and_nothing_left(small_disk: SmallDisk) -> None:
    path = small_disk.folder / "store.sqlite"
    put(1, path)
    before = dump(path)
    small_disk.fill(but_bytes=64 << 10)
    with pytest.raises(StoreFull):
        await sqlite_store(path).open(lambda events: None)
    small_disk.make_room()
    assert (dump(path), list(path.parent.glob("*.bak*"))) == (before, [])
    store = sqlite_store(path)
    await store.open(lambda events: None)
    await store.close()
    assert version_of(path) == LATEST
