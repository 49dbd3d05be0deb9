"""From closing a file in a watched folder to its task, beyond the time it has to stand still.

The kernel's hints, the engine and its store are real; contents are only hashed.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from malbox_tui.config.settings import Settings
from malbox_tui.config.watching import WatchSettings
from malbox_tui.intake.watching.taken import TakenFiles
from malbox_tui.intake.watching.watched_folder import WatchedFolder
from malbox_tui.intake.watching.watcher import FolderWatch
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.events import Event, Gap, TaskCreated
from malbox_tui.runtime.archives import with_archives
from tests.benchmarks.figures import Figure
from tests.benchmarks.no_op import running_engine

FILES = 20
OTHERS = 1_000
"""Files that lie there already and were taken."""
SETTLE_S = 0.5
AIM = "under 0.5 s"


def measure() -> Iterator[Figure]:
    """With nothing else in the folder, and among others."""
    for others in (0, OTHERS):
        with tempfile.TemporaryDirectory() as place:
            delays = asyncio.run(_delays(Path(place), others))
        among = f", among {others:,} files" if others else ""
        yield Figure(
            name=f"file closed to task, beyond settling{among}",
            value=statistics.median(delays),
            unit="s",
            runs=len(delays),
            aim=AIM,
        )


async def _delays(place: Path, others: int) -> list[float]:
    folder = place / "in"
    folder.mkdir()
    for number in range(others):
        (folder / f"other-{number}").write_bytes(b"other %d" % number)
    async with running_engine(place / "store.sqlite3", 1) as engine:
        events = engine.events(None)
        watched = WatchedFolder(
            WatchSettings(path=str(folder), settle_s=SETTLE_S),
            submit=engine.submit,
            opener=lambda inner: with_archives(Settings(), inner, ArchiveChoice()),
            taken=TakenFiles(place / "watched", str(folder)),
            max_sample_bytes=1 << 20,
            tell=lambda _sentence, _is_bad: None,
        )
        watch = FolderWatch([watched])
        async with asyncio.TaskGroup() as group:
            group.create_task(watch.run())
            for _ in range(others):
                await _created(events)
            delays = []
            for number in range(FILES):
                (folder / f"new-{number}").write_bytes(b"new %d" % number)
                closed = time.perf_counter()
                await _created(events)
                delays.append(time.perf_counter() - closed - SETTLE_S)
            watch.close()
    return delays


async def _created(events: AsyncIterator[Event | Gap]) -> None:
    async for event in events:
        if isinstance(event, Event) and isinstance(event.body, TaskCreated):
            return
