"""The main job on real files: `malbox-tui analyze /usr/bin` with two workers, with the memory of its whole process tree."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.figures import Figure
from tests.benchmarks.process_memory import pss_mb, tree_pss_mb

FOLDER = Path("/usr/bin")
LOOK_EVERY_S = 0.5
CONFIG = "[general]\nmin_workers = 2\nmax_workers = 2\n"


def measure() -> Iterator[Figure]:
    """Files and megabytes a second, and the highest PSS seen."""
    sizes = [status.st_size for path in FOLDER.iterdir() if stat.S_ISREG((status := path.lstat()).st_mode)]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "config.toml").write_text(CONFIG)
        seconds, tree_mb, own_mb = _watched(data, Path(folder) / "out.jsonl")
    name = f"analyze {FOLDER} ({len(sizes)} files, {sum(sizes) / 1e6:.0f} MB), two workers"
    yield Figure(name, len(sizes) / seconds, "files/s", 1, "aim: 25")
    yield Figure("… content", sum(sizes) / 1e6 / seconds, "MB/s", 1)
    yield Figure("… highest PSS of the whole process tree", tree_mb, "MB", 1, "aim: under 700")
    yield Figure("… highest PSS of the engine's own process", own_mb, "MB", 1, "aim: under 150")


def _watched(data: Path, output: Path) -> tuple[float, float, float]:
    command = [sys.executable, "-m", "malbox_tui", "--data-dir", str(data), "analyze", str(FOLDER), "--json"]
    highest_tree = highest_own = 0.0
    start = time.perf_counter()
    with output.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            highest_tree = max(highest_tree, tree_pss_mb(process.pid))
            highest_own = max(highest_own, pss_mb(process.pid))
            time.sleep(LOOK_EVERY_S)
        seconds = time.perf_counter() - start
    if process.returncode != 0:
        raise SystemExit(f"analyze ended with {process.returncode}")
    return seconds, highest_tree, highest_own
