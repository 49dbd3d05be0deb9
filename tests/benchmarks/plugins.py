"""What it costs to have a plugin look at one small file, and how fast its results come to the disk.

A run is from its order to all that was found, with the process of a persistent plugin warm; an ephemeral one's is started each time. A
result's way, from the plugin through the runner to a file, is compared with a process that writes as much into a plain pipe, and one
that copies it from there to a file.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins.registry import BUILTIN_FOLDER
from malbox_tui.ports import PluginBench, PluginJob
from tests.benchmarks.figures import Comparison, Figure, median
from tests.confine.rig import Rig, Stop, rig, write_plugin

RUNS = 200
STARTS = 20
COPIES = 5
RESULT_BYTES = 64 * 1024 * 1024
PIECE_BYTES = 1024 * 1024
SMALL = b"A harmless text with http://example.com/ in it.\n" * 20

_PUSHES = f'ctx.results().push_bytes("large", bytes({RESULT_BYTES}))'
_WRITES = f"import os\nfor _ in range({RESULT_BYTES // PIECE_BYTES}):\n    os.write(1, bytes({PIECE_BYTES}))"


def measure() -> Iterator[Figure]:
    """A small file through a persistent plugin, an ephemeral one and the built-in ones; results to disk."""
    yield median("a small file through a persistent plugin", _timed("pass", "persistent", RUNS), "ms", "aim: under 3 ms")
    yield median("… through an ephemeral one", _timed("pass", "ephemeral", STARTS), "ms")
    yield median("… through the built-in ones", _timed("", "", RUNS), "ms")
    ours = [RESULT_BYTES / 1e6 / seconds for seconds in _seconds_to_push()]
    plain = [RESULT_BYTES / 1e6 / seconds for seconds in _seconds_to_copy()]
    ratio = statistics.median(ours) / statistics.median(plain)
    yield median("results to disk", ours, "MB/s", compared=Comparison(peer="pipe to file", embedded=True, ratio=ratio))
    yield median("… a plain pipe to a file", plain, "MB/s")


def _timed(body: str, state: str, runs: int) -> list[float]:
    """Milliseconds of each run; the built-in plugins where no `body` is given."""

    async def measured(folder: Path) -> list[float]:
        if body:
            _write(folder, body, state)
        async with rig(folder, plugin_folder=None if body else BUILTIN_FOLDER) as subject:
            bench = await subject.runner.acquire()
            (bench.inbox / "sample").write_bytes(SMALL)
            await _run(subject, bench)
            seconds = [await _run(subject, bench) for _ in range(runs)]
            await subject.runner.release(bench)
        return [value * 1e3 for value in seconds]

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        return asyncio.run(measured(Path(folder)))


def _seconds_to_push() -> list[float]:
    async def measured(folder: Path) -> list[float]:
        _write(folder, _PUSHES, "persistent")
        async with rig(folder) as subject:
            bench = await subject.runner.acquire()
            (bench.inbox / "sample").write_bytes(SMALL)
            await _run(subject, bench)
            seconds = [await _run(subject, bench) for _ in range(COPIES)]
            await subject.runner.release(bench)
        return seconds

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        return asyncio.run(measured(Path(folder)))


def _seconds_to_copy() -> list[float]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(COPIES):
            start = time.perf_counter()
            with subprocess.Popen([sys.executable, "-c", _WRITES], stdout=subprocess.PIPE) as writer:
                assert writer.stdout is not None
                with Path(folder, str(number)).open("wb") as target:
                    while piece := writer.stdout.read(PIECE_BYTES):
                        target.write(piece)
            found.append(time.perf_counter() - start)
    return found


async def _run(subject: Rig, bench: PluginBench) -> float:
    subject.tasks += 1
    start = time.perf_counter()
    findings = await bench.run(PluginJob(subject.tasks, f"token-{subject.tasks}", "sample"), Stop())
    seconds = time.perf_counter() - start
    failed = [run for run in findings.runs if run.status is PluginStatus.FAILED]
    assert not failed, failed
    return seconds


def _write(folder: Path, body: str, state: str) -> None:
    write_plugin(folder / "plugins", body)
    manifest = folder / "plugins" / "subject" / "plugin.toml"
    manifest.write_text(manifest.read_text().replace('"persistent"', f'"{state}"'))
