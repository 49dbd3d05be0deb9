"""What this machine can do at most, beside which the other figures are to be read."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.figures import Figure, median

ROWS = 100_000
SYNCS = 500
RUNS = 3


def measure() -> Iterator[Figure]:
    """Syncs and SQLite rows a second in the folder for temporary files."""
    with tempfile.TemporaryDirectory() as folder:
        yield median("machine: fdatasync of 4 KiB appends", [_syncs(Path(folder)) for _ in range(RUNS)], "1/s")
        yield median("machine: SQLite rows in one transaction", [_rows(Path(folder)) for _ in range(RUNS)], "1/s")
        yield median("machine: SQLite commits of one row, FULL", [_commits(Path(folder)) for _ in range(RUNS)], "1/s")


def measure_load(when: str) -> Iterator[Figure]:
    """How busy the machine was over the last minute, as the kernel has it (proc(5), loadavg)."""
    yield Figure(f"machine: load average {when}", os.getloadavg()[0], "", 1)


def _syncs(folder: Path) -> float:
    fd = os.open(folder / "syncs", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        block = b"x" * 4096
        start = time.perf_counter()
        for _ in range(SYNCS):
            os.write(fd, block)
            os.fdatasync(fd)
        return SYNCS / (time.perf_counter() - start)
    finally:
        os.close(fd)


def _rows(folder: Path) -> float:
    connection = _database(folder / "rows.sqlite3")
    start = time.perf_counter()
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?, ?)", ((n, "x" * 400) for n in range(ROWS)))
    connection.execute("COMMIT")
    seconds = time.perf_counter() - start
    connection.close()
    return ROWS / seconds


def _commits(folder: Path) -> float:
    connection = _database(folder / "commits.sqlite3")
    start = time.perf_counter()
    for n in range(SYNCS):
        connection.execute("INSERT INTO t VALUES (?, ?)", (n, "x" * 400))
    seconds = time.perf_counter() - start
    connection.close()
    return SYNCS / seconds


def _database(path: Path) -> sqlite3.Connection:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, payload TEXT)")
    return connection
