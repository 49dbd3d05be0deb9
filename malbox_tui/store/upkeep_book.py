"""What a store has for its upkeep: beside its other calls, with a reader of its own, since what is asked here looks through all tasks.

Writing goes through the store's one writer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from malbox_tui.model.upkeep import Cause
from malbox_tui.ports import Aged, Removal
from malbox_tui.store.answers import Answer
from malbox_tui.store.memory import MemoryStore
from malbox_tui.store.requests import Closing, Removing, Request
from malbox_tui.store.rows import Row
from malbox_tui.store.sqlite_reader import SqliteReader
from malbox_tui.store.statements import statement

_ids = msgspec.json.Decoder(tuple[int, ...]).decode


class Writer(Protocol):
    """A store that requests are handed to."""

    def hand_over(self, request: Request) -> None:
        """Put a request into the next transaction; where there will be none, it is answered with an error."""
        ...


class _Removals:
    """The writing half of an `UpkeepBook`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def remove_sample(self, sha256: str, at: float, cause: Cause) -> Removal | None:
        """As `UpkeepBook.remove_sample`. Cancelled: it is forgotten or not."""
        request = Removing(sha256, (), at, cause, Answer("the removal of sample %s", sha256))
        self._writer.hand_over(request)
        return await request.answer

    async def remove_results(self, task_ids: Sequence[int], at: float, cause: Cause) -> Removal | None:
        """As `UpkeepBook.remove_results`. Cancelled: they are marked or not."""
        request = Removing("", tuple(task_ids), at, cause, Answer("the removal of results of %d tasks", len(task_ids)))
        self._writer.hand_over(request)
        return await request.answer

    async def close_removal(self, number: int) -> None:
        """As `UpkeepBook.close_removal`."""
        request = Closing(number, Answer("the end of a removal"))
        self._writer.hand_over(request)
        await request.answer


class SqliteUpkeep(_Removals):
    """Implements `UpkeepBook` for the SQLite store at `path`, which `writer` writes."""

    def __init__(self, writer: Writer, path: Path) -> None:
        super().__init__(writer)
        self._reader = SqliteReader(path)
        self._at_work = asyncio.Lock()

    async def open_removals(self) -> Sequence[Removal]:
        """As `UpkeepBook.open_removals`."""
        return await self._read("removals", (), lambda row: Removal(row[0], row[1], _ids(row[2])))

    async def holds(self, sha256: str) -> bool:
        """As `UpkeepBook.holds`."""
        (found,) = await self._read("holds", (sha256,), lambda row: row[0])
        return bool(found)

    async def oldest_samples(self, before: float, limit: int) -> Sequence[Aged]:
        """As `UpkeepBook.oldest_samples`."""
        return await self._read("oldest_samples", (before, limit), lambda row: Aged(*row))

    async def oldest_results(self, before: float, limit: int) -> Sequence[Aged]:
        """As `UpkeepBook.oldest_results`."""
        return await self._read("oldest_results", (before, limit), lambda row: Aged(*row))

    async def close(self) -> None:
        """Let go of the file."""
        await self._reader.close()

    async def _read(self, name: str, parameters: Row, make: Callable[[Row], Any]) -> list[Any]:
        async with self._at_work:
            await self._reader.open()
        return await self._reader.rows(statement(name), parameters, make)


class MemoryUpkeep(_Removals):
    """Implements `UpkeepBook` for a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self._store = store

    async def open_removals(self) -> Sequence[Removal]:
        """As `UpkeepBook.open_removals`."""
        return list(self._store.removals.values())[:1000]

    async def holds(self, sha256: str) -> bool:
        """As `UpkeepBook.holds`."""
        return any(task.sha256 == sha256 for task in self._store.all_tasks())

    async def oldest_samples(self, before: float, limit: int) -> Sequence[Aged]:
        """As `UpkeepBook.oldest_samples`."""
        latest: dict[str, Aged] = {}
        in_use: set[str] = set()
        for task in self._store.all_tasks():
            if task.finished_at is None:
                in_use.add(task.sha256)
                continue
            at = max(task.finished_at, latest[task.sha256].at) if task.sha256 in latest else task.finished_at
            latest[task.sha256] = Aged(task.sha256, task.id, at)
        found = [aged for aged in latest.values() if aged.sha256 not in in_use and aged.at < before]
        return sorted(found, key=lambda aged: (aged.at, aged.sha256))[:limit]

    async def oldest_results(self, before: float, limit: int) -> Sequence[Aged]:
        """As `UpkeepBook.oldest_results`."""
        found = [
            Aged(task.sha256, task.id, task.finished_at)
            for task in self._store.all_tasks()
            if task.finished_at is not None and task.finished_at < before and task.id not in self._store.without_results
        ]
        return sorted(found, key=lambda aged: (aged.at, aged.task_id))[:limit]

    async def close(self) -> None:
        """Nothing is held."""
