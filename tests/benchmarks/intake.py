"""A folder into the store, whole: walked, handed in, packed into the quarantine, made tasks, each receipt given. No worker takes them.

Beside it a plain loop over the same files in the same run: each packed by `cart`, its file and its folder synced, and no more.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import cart  # type: ignore[import-untyped]

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import GeneralSettings, Settings
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.submission import Account, SubmissionOptions
from malbox_tui.runtime import open_intake, start_engine
from tests.benchmarks.figures import Comparison, Figure, median
from tests.benchmarks.fresh_process import in_a_fresh_process
from tests.benchmarks.process_memory import own_peak_mb

ROUNDS = 3
PLAIN = "a loop of cart and fsync"


class Files(NamedTuple):
    """So many files, each of so many bytes and a content of its own."""

    count: int
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.count:,} × {self.size_bytes / 1e3:g} kB"


class TakenIn(NamedTuple):
    """How one intake went: files a second, and the most memory that its process had, in MB."""

    files_per_s: float
    peak_mb: float


SIZES = (Files(1_000, 10_000), Files(50_000, 1_000))


def measure(sizes: Sequence[Files] = SIZES, rounds: int = ROUNDS) -> Iterator[Figure]:
    """Files a second beside the plain loop, the two taking turns; then what each file more costs of memory."""
    peaks_mb = []
    for files in sizes:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            _write(folder, files)
            ours, plain = [], []
            for _ in range(rounds):
                ours.append(in_a_fresh_process(taken_in, folder, files.count))
                plain.append(in_a_fresh_process(packed_in_a_loop, folder, files.count))
        yield from _beside(files, [run.files_per_s for run in ours], plain)
        peaks_mb.append(statistics.median(run.peak_mb for run in ours))
        yield Figure(f"… highest memory of the engine's process, {files}", peaks_mb[-1], "MB", rounds)
    fewest, most = sizes[0], sizes[-1]
    each_bytes = (peaks_mb[-1] - peaks_mb[0]) * 1e6 / (most.count - fewest.count)
    yield Figure(f"memory of each file more, {fewest.count:,} to {most.count:,}", each_bytes, "bytes", rounds, "aim: flat")


def taken_in(folder: Path, count: int) -> TakenIn:
    """The intake of `folder` by an engine with nothing else to do, up to the last receipt."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        settings, folders = Settings(general=GeneralSettings(min_workers=0, max_workers=0)), DataFolders.under(Path(place))
        engine = start_engine(settings, folders)
        try:
            start = time.perf_counter()
            offers = open_intake(settings, folders).offers([os.fsencode(folder)])
            account = asyncio.run(_account(engine.client.submit(offers, SubmissionOptions())))
            taken_s = time.perf_counter() - start
        finally:
            engine.stop(ShutdownMode.GIVE_BACK)
            engine.join()
        assert len(account.accepted) == count, f"{len(account.accepted)} of {count} were accepted"
        return TakenIn(count / taken_s, own_peak_mb())


def packed_in_a_loop(folder: Path, count: int) -> float:
    """Files of `folder` a second, one after the other."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        start = time.perf_counter()
        target = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            packed = 0
            for path in sorted(folder.iterdir()):
                with path.open("rb") as content, (Path(place) / path.name).open("wb") as file:
                    cart.pack_stream(content, file)
                    file.flush()
                    os.fsync(file.fileno())
                os.fsync(target)
                packed += 1
        finally:
            os.close(target)
        assert packed == count
        return count / (time.perf_counter() - start)


async def _account(submission: Awaitable[Account]) -> Account:
    return await submission


def _write(folder: Path, files: Files) -> None:
    """Contents that compress by half, as programs do."""
    for number in range(files.count):
        (folder / f"{number:06}").write_bytes(random.Random(number).randbytes(files.size_bytes // 2).hex().encode())
    os.sync()


def _beside(files: Files, ours: Sequence[float], plain: Sequence[float]) -> Iterator[Figure]:
    beside = Comparison(peer=PLAIN, embedded=True, ratio=statistics.median(ours) / statistics.median(plain))
    yield median(f"a folder into the store, {files}", ours, "files/s", "aim: 3 times the loop")
    yield median(f"… {files}", plain, "files/s", compared=beside)
