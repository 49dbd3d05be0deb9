"""`python -m tests.simulation.soak [--tasks N]`: thousands of tasks in a row through a real engine, and nothing may grow.

SQLite, the quarantine, results on disk, confined processes of the built-in plugins; workers come and go all the time. Open files,
threads, child processes and memory are looked at whenever the engine rests; the looks at the end are compared with those after the
warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.engine.engine import Engine
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.events import Event, TaskEnded
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.model.task import TaskState
from malbox_tui.runtime.assembly import build_engine
from tests.benchmarks.process_memory import own_pss_mb, tree_pss_mb

BATCH = 100
WARM_UP = 4
"""Batches before the first look that counts: by then everything has been imported and every cache has its size."""
COMPARED = 3
"""Looks whose median is compared, after the warm-up and at the end."""
RESTED_WITHIN_S = 30.0
MAY_GROW_BY = {"threads": 4.0, "memory of the engine": 6.0, "memory of all processes": 30.0}
"""What is no leak: pools start their threads one by one, when they first need so many at once; memory (in MB) differs from rest to rest
by what allocators and SQLite's cache keep, 3 kB a task at most. Of all else nothing may be more."""
SETTINGS = Settings(general=GeneralSettings(min_workers=1, max_workers=3, idle_timeout_ms=100))


@dataclass(frozen=True, slots=True)
class Look:
    """What one process and its children hold while the engine rests."""

    tasks: int
    open_files: int
    threads: int
    children: int
    engine_mb: float
    all_mb: float

    def amounts(self) -> dict[str, float]:
        return {
            "open files": self.open_files,
            "threads": self.threads,
            "child processes": self.children,
            "memory of the engine": self.engine_mb,
            "memory of all processes": self.all_mb,
        }


def main() -> int:
    """The exit status: 0 when nothing grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.soak", description=__doc__)
    parser.add_argument("--tasks", type=int, default=2_000)
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        looks = asyncio.run(_soak(Path(folder), asked.tasks))
    seconds = time.monotonic() - began
    grown = _growth(looks[WARM_UP - 1 :])
    for look in looks:
        _say(f"{look.tasks:>6,} tasks: " + ", ".join(f"{name} {amount:g}" for name, amount in look.amounts().items()))
    _say(f"{looks[-1].tasks:,} tasks in {seconds:.0f} s; " + (f"grown: {'; '.join(grown)}" if grown else "nothing has grown"))
    return 1 if grown else 0


def _growth(looks: Sequence[Look]) -> list[str]:
    """What grew between the first and the last of these looks."""
    first = [look.amounts() for look in looks[:COMPARED]]
    last = [look.amounts() for look in looks[-COMPARED:]]
    grown = []
    for name in first[0]:
        before, after = (median(amounts[name] for amounts in of) for of in (first, last))
        if after > before + MAY_GROW_BY.get(name, 0.0):
            grown.append(f"{name} from {before:g} to {after:g}")
    return grown


async def _soak(folder: Path, tasks: int) -> list[Look]:
    folders = DataFolders.under(folder)
    folders.create()
    engine = build_engine(SETTINGS, folders)
    ready, looks = asyncio.Event(), list[Look]()
    async with asyncio.TaskGroup() as group:
        life = group.create_task(engine.run(ready.set))
        await ready.wait()
        for done in range(0, tasks, BATCH):
            await _run_batch(engine, done, min(BATCH, tasks - done))
            looks.append(await _look_at_rest(engine, min(done + BATCH, tasks)))
            sys.stderr.write(f"{looks[-1].tasks:,} of {tasks:,} tasks\n")
        engine.stop(ShutdownMode.DRAIN)
        if left := await life:
            raise AssertionError(f"tasks {left} were left behind")
    return looks


async def _run_batch(engine: Engine, first: int, count: int) -> None:
    ended = 0
    events = engine.events(None)
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.submit(_offers(first, count), SubmissionOptions()))
        async for item in events:
            ended += isinstance(item, Event) and isinstance(item.body, TaskEnded)
            if ended == count:
                break
    await events.aclose()  # type: ignore[attr-defined]
    counts = (await engine.overview()).counts
    if counts[TaskState.COMPLETED] != first + count:
        raise AssertionError(f"not all tasks completed: {counts}")


async def _offers(first: int, count: int) -> AsyncIterator[Offer]:
    for number in range(first, first + count):
        name = b"sample %d" % number
        yield Offer(SampleName(name, b"/in/" + name), _chunks(b"MZ" + name * 200))


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _look_at_rest(engine: Engine, tasks: int) -> Look:
    """Wait until demand workers have left and their processes with them."""
    async with asyncio.timeout(RESTED_WITHIN_S):
        while True:
            first, second = [await _counts_in_a_moment(engine) for _ in range(2)]
            if first == second and first[0] == SETTINGS.general.min_workers:
                break
    gc.collect()
    own = psutil.Process()
    return Look(
        tasks=tasks,
        open_files=own.num_fds(),
        threads=own.num_threads(),
        children=len(own.children(recursive=True)),
        engine_mb=round(own_pss_mb(), 1),
        all_mb=round(tree_pss_mb(own.pid), 1),
    )


async def _counts_in_a_moment(engine: Engine) -> tuple[int, int]:
    await asyncio.sleep(0.15)  # noqa: TID251 - a real engine in real time
    active = sum(group.active for group in (await engine.overview()).groups)
    return active, len(psutil.Process().children(recursive=True))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
