"""A data folder with samples and results as an engine leaves them, made quickly: tasks that have ended, one result each."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from malbox_tui.config.folders import DataFolders
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.model.task import EndedBy, Outcome, TaskState
from malbox_tui.store.quarantine import CartQuarantine
from malbox_tui.store.results import FileResultStore
from tests.store.builders import NOON, added, claimed, run, settle, sqlite_store, stop

DAY_S = 86400.0


async def fill(folders: DataFolders, contents: Sequence[str], *, at: float = NOON, every_s: float = DAY_S) -> list[str]:
    """Tasks of these contents, one a day, each with the result "found <content>"; returns the sums."""
    folders.create()
    store, quarantine, results = sqlite_store(folders.store), CartQuarantine(folders.quarantine), FileResultStore(folders.results)
    await store.open(lambda events: None)
    await quarantine.open()
    await results.open()
    sums = []
    for number, content in enumerate(contents):
        then = at + number * every_s
        kept = await quarantine.store(_chunks(content.encode()), 1 << 30)
        sums.append(kept.sha256)
        token = f"token-{kept.sha256[:8]}"
        task = await claimed(store, await added(store, content, content.encode(), at=then), token, then)
        writer = results.begin(task.id, token, "strings", "report", "json")
        writer.write(f"found {content}".encode())
        plugins = (PluginRun("strings", "1", PluginStatus.COMPLETED, 0.5, (writer.commit(),)),)
        await results.settle(task.id, token)
        for make in (
            lambda task, then=then: run(task, then),
            lambda task, then=then, plugins=plugins: stop(
                task, then, Outcome(TaskState.COMPLETED, EndedBy.FINISHED, "finished", None, plugins)
            ),
            lambda task, then=then: settle(task, then),
        ):
            change = make(task)
            await store.write(change)
            task = change.after
    await store.close()
    await quarantine.close()
    await results.close()
    return sums


def filled(data: Path, *contents: str, at: float = NOON, every_s: float = DAY_S) -> list[str]:
    """As `fill`, in the data folder `data`, where no loop runs."""
    return asyncio.run(fill(DataFolders.under(data), contents, at=at, every_s=every_s))


def sha256_of(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def carts_in(data: Path) -> set[str]:
    """The sums of what lies in the quarantine."""
    return {path.stem for path in data.joinpath("quarantine").rglob("*.cart")}


def results_in(data: Path) -> set[int]:
    """The tasks of which results lie there."""
    return {int(path.relative_to(data / "results").parts[0]) for path in data.joinpath("results").rglob("*") if path.is_file()}


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content
