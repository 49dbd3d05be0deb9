"""What it costs that the engine is in another process: samples in, pages and events out, over the control socket."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.model.commands import Command, SetPriority, ShutdownMode
from malbox_tui.model.events import Event
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.remote.client import RemoteClient, SocketWay
from malbox_tui.runtime import SystemClock, start_engine
from tests.benchmarks.console import read_for
from tests.benchmarks.figures import Comparison, Figure, median, percentile
from tests.benchmarks.filled_store import fill
from tests.benchmarks.fresh_process import in_a_fresh_process

SAMPLES = 1500
ROUNDS = 3
TASKS = 100_000
PAGES = 100
FOLLOWED_S = 5
SETTLED_S, IDLE_S = 6, 20
STEP_S = 0.02
"""How often some events are caused, so that there are as many a second as are to be."""
CONFIG = "[general]\nmin_workers = 0\nmax_workers = 0\n"


def measure() -> Iterator[Figure]:
    """Samples beside the same in process, pages of many tasks, and how late events come."""
    yield from _samples()
    yield from _pages()
    for readers, events_per_s in ((2, 1000), (48, 500)):
        half_ms, late_ms, share = in_a_fresh_process(followed, readers, events_per_s)
        name = f"an event, with its commit, to each of {readers} readers, {events_per_s:,} a second"
        yield Figure(f"{name}, p50", half_ms, "ms", 1, "aim: 5" if events_per_s == 1000 else "")
        yield Figure("… p99", late_ms, "ms", 1, "aim: 20" if events_per_s == 1000 else "")
        yield Figure("… the serving process", share * 100, "%", 1)
    yield Figure("an attached console with nothing to do", asyncio.run(_idle_console()) * 100, "%", 1, "aim: 1")


def _samples() -> Iterator[Figure]:
    own, here = [], []
    for _ in range(ROUNDS):
        here.append(in_a_fresh_process(submitted_in_process, SAMPLES))
        own.append(in_a_fresh_process(submitted_over_the_socket, SAMPLES))
    figure = median("small samples a second, over the socket", own, "/s")
    ratio = figure.value / percentile(here, 0.5) if figure.value else None
    beside = Comparison(peer="in process", embedded=True, ratio=ratio)
    yield median("small samples a second, over the socket", own, "/s", "aim: half", compared=beside)


def _pages() -> Iterator[Figure]:
    rates = in_a_fresh_process(pages, TASKS)
    yield median(f"pages of 100 of {TASKS:,} tasks a second", rates, "/s")


# --- each in a process of its own ------------------------------------------------------------------------------------------------


def submitted_in_process(count: int) -> float:
    """Samples a second through the engine's own door, which is in another thread."""
    with tempfile.TemporaryDirectory() as folder:
        engine = start_engine(Settings(general=GeneralSettings(min_workers=0, max_workers=0)), DataFolders.under(Path(folder)))
        try:
            return asyncio.run(_rate(engine.client.submit(offers(count), SubmissionOptions()), count))
        finally:
            engine.stop(ShutdownMode.GIVE_BACK)
            engine.join()


def submitted_over_the_socket(count: int) -> float:
    """Samples a second through `serve`, by the client of a console."""

    async def submit() -> float:
        async with _served() as (client, _):
            return await _rate(client.submit(offers(count), SubmissionOptions()), count)

    return asyncio.run(submit())


def pages(tasks: int) -> list[float]:
    """Pages a second, in a few rounds."""

    async def look() -> list[float]:
        async with _served(tasks) as (client, _):
            return [await _rate(_look(client), PAGES) for _ in range(ROUNDS)]

    return asyncio.run(look())


def followed(readers: int, events_per_s: int) -> tuple[float, float, float]:
    """How many milliseconds after its step a reader has an event, p50 and p99, and the share of a processor that the serving process
    takes.

    Half of the events are commands that were carried out, the other half what they did; each is committed before it is told.
    """
    late_ms, share = asyncio.run(_followed(readers, events_per_s))
    return percentile(late_ms, 0.5), percentile(late_ms, 0.99), share


async def _followed(readers: int, events_per_s: int) -> tuple[list[float], float]:
    late_ms: list[float] = []
    burst = round(events_per_s * STEP_S)
    async with _served(burst) as (client, server), asyncio.TaskGroup() as following:
        handles = [following.create_task(_follow(server.path, late_ms)) for _ in range(readers)]
        await asyncio.sleep(1)  # noqa: TID251 - they connect
        late_ms.clear()
        before, start = server.processor_s(), time.perf_counter()
        for number in range(round(FOLLOWED_S / STEP_S)):
            actions = [SetPriority(task_ids=(task_id,), priority=number % 2 + 1) for task_id in range(1, burst // 2 + 1)]
            await asyncio.gather(*(client.do(Command(action=action, actor="")) for action in actions))
            await asyncio.sleep(max(0.0, start + (number + 1) * STEP_S - time.perf_counter()))  # noqa: TID251 - the pace
        share = (server.processor_s() - before) / (time.perf_counter() - start)
        for handle in handles:
            handle.cancel()
    return late_ms, share


async def _idle_console() -> float:
    """The share of a processor that a console takes which only looks at an engine without tasks."""
    async with _served() as (_, server):
        return await asyncio.to_thread(_share_of_console, server.path.parent)


def _share_of_console(data: Path) -> float:
    pid, terminal = pty.fork()
    if pid == 0:
        command = [sys.executable, "-m", "malbox_tui", "attach", "--data-dir", str(data)]
        os.execve(sys.executable, command, {**os.environ, "TERM": "xterm-256color"})
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 140, 0, 0))
        process = psutil.Process(pid)
        read_for(terminal, SETTLED_S)
        before = sum(process.cpu_times()[:2])
        read_for(terminal, IDLE_S)
        return float(sum(process.cpu_times()[:2]) - before) / IDLE_S
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


async def _follow(path: Path, late_ms: list[float]) -> None:
    client, clock = RemoteClient(SocketWay(str(path)), SystemClock()), SystemClock()
    async for item in client.events(None):
        if isinstance(item, Event):
            late_ms.append((clock.now() - item.at) * 1e3)  # noqa: PERF401 - it never ends


async def _look(client: RemoteClient) -> None:
    for number in range(PAGES):
        page = await client.query(TaskQuery(offset=number * 900, limit=100))
        assert len(page.rows) == 100


async def _rate(work: object, count: int) -> float:
    start = time.perf_counter()
    await work  # type: ignore[misc]
    return count / (time.perf_counter() - start)


async def offers(count: int) -> AsyncIterator[Offer]:
    """Small contents, each another."""
    for number in range(count):
        yield Offer(SampleName(b"%d" % number), _content(number))


async def _content(number: int) -> AsyncIterator[bytes]:
    yield b"a small sample, number %d\n" % number


class _Server:
    def __init__(self, path: Path, process: subprocess.Popen[str]) -> None:
        self.path = path
        self._process = psutil.Process(process.pid)

    def processor_s(self) -> float:
        """What it has taken so far."""
        times = self._process.cpu_times()
        return times.user + times.system


@asynccontextmanager
async def _served(tasks: int = 0) -> AsyncIterator[tuple[RemoteClient, _Server]]:
    """`malbox-tui serve` without workers, with so many pending tasks."""
    with tempfile.TemporaryDirectory() as name:
        folders = DataFolders.under(Path(name))
        if tasks:
            await asyncio.to_thread(fill, folders.store, tasks)
        folders.config_file.write_text(CONFIG)
        command = [sys.executable, "-m", "malbox_tui", "serve", "--data-dir", name]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            assert "Serving" in process.stderr.readline()
            client = RemoteClient(SocketWay(str(folders.control_socket)), SystemClock())
            yield client, _Server(folders.control_socket, process)
            client.close()
        finally:
            process.terminate()
            process.communicate()
