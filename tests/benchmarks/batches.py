"""What running tasks in batches saves over running them one by one, on small files through the real engine and its real plugins.

Plugin processes are persistent either way. Two sets of plugins: the built-in ones, which take no batches and so get the tasks of one
one by one; and one that does nothing but takes batches, which shows what the engine itself saves.
"""

from __future__ import annotations

import asyncio
import random
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.config.workers import ExecutionMode, WorkerSettings
from malbox_tui.engine.engine import Engine
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.events import Event, TaskEnded
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.plugins.registry import BUILTIN_FOLDER
from malbox_tui.runtime.assembly import build_engine
from tests.benchmarks.figures import Figure, median

FILES = 1000
WORKERS = 2
BATCH = 32
ROUNDS = 3
SEED = 5

_MANIFEST = """\
[plugin]
name = "nothing"
version = "1.0.0"
description = "does nothing"
type = "host"
binary = "main.py"

[runtime]
state = "persistent"
execution = "parallel"
"""
_MAIN = """\
from malbox_plugin_sdk import Plugin, run


class Nothing(Plugin):
    def on_task(self, ctx):
        pass

    def on_batch(self, ctxs):
        pass


run(Nothing())
"""


def measure(files: int = FILES, rounds: int = ROUNDS) -> Iterator[Figure]:
    """Files a second and the engine's own processor time a file, one by one and in batches, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        nothing = _plugin_that_does_nothing(Path(folder))
        for plugins, name in ((BUILTIN_FOLDER, "built-in plugins"), (nothing, "a plugin that does nothing")):
            yield from _compared(plugins, name, files, rounds)


def _compared(plugins: Path, name: str, files: int, rounds: int) -> Iterator[Figure]:
    rates: dict[int, list[float]] = {1: [], BATCH: []}
    costs: dict[int, list[float]] = {1: [], BATCH: []}
    for _ in range(rounds):
        for size in rates:
            seconds, processor_s = _analysed(plugins, size, files)
            rates[size].append(files / seconds)
            costs[size].append(processor_s / files * 1000)
    for size, mode in ((1, "one by one"), (BATCH, f"batches of {BATCH}")):
        yield median(f"{files:,} small files, {name}, {mode}", rates[size], "files/s")
        yield median("… processor time of the engine", costs[size], "ms/file")


def _analysed(plugins: Path, batch: int, files: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_run(Path(folder), plugins, batch, _contents(files)))


def _contents(files: int) -> list[bytes]:
    """Texts of up to 16 KiB, each another one, the same at every run."""
    fortune = random.Random(SEED)
    words = ["invoice", "payment", "please", "open", "the", "document", "attached", "below", "\n", "http://example.com/"]
    return [
        (f"{number} " + " ".join(fortune.choices(words, k=fortune.randrange(20, 2000)))).encode()[: 16 * 1024]
        for number in range(files)
    ]


async def _run(folder: Path, plugins: Path, batch: int, contents: Sequence[bytes]) -> tuple[float, float]:
    """Seconds, and processor seconds of this process, from the first submission to the last end, with the processes warm."""
    folders = DataFolders.under(folder)
    folders.create()
    engine = build_engine(_settings(batch), folders, plugins)
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run(ready.set))
        await ready.wait()
        await _submitted_and_ended(engine, [b"warm %d" % number for number in range(WORKERS * batch)])
        start, processor_s = time.perf_counter(), _processor_s()
        await _submitted_and_ended(engine, contents)
        spent = time.perf_counter() - start, _processor_s() - processor_s
        engine.stop(ShutdownMode.GIVE_BACK)
    return spent


def _settings(batch: int) -> Settings:
    if batch == 1:
        return Settings(general=GeneralSettings(min_workers=WORKERS, max_workers=WORKERS))
    group = WorkerSettings(
        name="batches",
        execution_mode=ExecutionMode.BATCH,
        max_batch_size=batch,
        min_workers=WORKERS,
        max_workers=WORKERS,
    )
    return Settings(general=GeneralSettings(min_workers=0, max_workers=0), workers=(group,))


async def _submitted_and_ended(engine: Engine, contents: Sequence[bytes]) -> None:
    position = (await engine.overview()).position

    async def all_ended() -> None:
        left = len(contents)
        async for item in engine.events(position):
            left -= isinstance(item, Event) and isinstance(item.body, TaskEnded)
            if not left:
                return

    async with asyncio.TaskGroup() as group:
        group.create_task(all_ended())
        await engine.submit(_offers(contents), SubmissionOptions())


async def _offers(contents: Sequence[bytes]) -> AsyncIterator[Offer]:
    for number, content in enumerate(contents):
        yield Offer(SampleName(b"%d.txt" % number), _chunks(content))


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _processor_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _plugin_that_does_nothing(folder: Path) -> Path:
    plugin = folder / "plugins" / "nothing"
    plugin.mkdir(parents=True)
    (plugin / "plugin.toml").write_text(_MANIFEST)
    (plugin / "main.py").write_text(_MAIN)
    # Sandboxes run as another user where this one is root.
    for path in (folder, plugin.parent, plugin):
        path.chmod(0o755)
    return plugin.parent
