"""The console in a real pseudo-terminal beside a bare line-drawn list and Textual's DataTable, all showing the same changes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from tests.benchmarks.figures import Figure

ROWS = 2_000
RATES = (0, 100, 2_000)
KINDS = ("console", "bare", "datatable")
SETTLE_S, MEASURE_S = 3.0, 5.0
KEYS = 30
COLUMNS, LINES = 140, 45


def measure() -> Iterator[Figure]:
    """Processor time, bytes to the terminal and the time from a key to its paint, for each app and rate of changes."""
    yield Figure("console: start to first paint", statistics.median(_first_paint_s() for _ in range(3)) * 1000, "ms", 3)
    for rate in RATES:
        seen = {kind: _watch(kind, rate) for kind in KINDS}
        for kind, figures in seen.items():
            yield Figure(f"{kind}: processor at {rate} changes/s", figures.processor_percent, "%", 1)
            yield Figure(f"{kind}: bytes to the terminal at {rate} changes/s", figures.bytes_per_s, "B/s", 1)
            yield Figure(f"{kind}: key to paint at {rate} changes/s, p50", figures.key_p50_ms, "ms", KEYS)
            yield Figure(f"{kind}: key to paint at {rate} changes/s, p99", figures.key_p99_ms, "ms", KEYS)


@dataclass(frozen=True, slots=True)
class _Seen:
    processor_percent: float
    bytes_per_s: float
    key_p50_ms: float
    key_p99_ms: float


def _watch(kind: str, rate: int) -> _Seen:
    pid, terminal = _start(kind, ROWS, rate)
    try:
        read_for(terminal, SETTLE_S)
        process = psutil.Process(pid)
        before = process.cpu_times()
        written = read_for(terminal, MEASURE_S)
        after = process.cpu_times()
        keys = sorted(_key_to_paint_s(terminal) for _ in range(KEYS))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    used = after.user + after.system - before.user - before.system
    return _Seen(used / MEASURE_S * 100, written / MEASURE_S, keys[len(keys) // 2] * 1000, keys[-1] * 1000)


def _start(kind: str, rows: int, rate: int) -> tuple[int, int]:
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"}
        command = [sys.executable, "-m", "tests.benchmarks.console_app", kind, str(rows), str(rate), "0"]
        os.execve(sys.executable, command, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    return pid, terminal


def _first_paint_s() -> float:
    start = time.perf_counter()
    pid, terminal = _start("console", 100, 0)
    try:
        shown = b""
        while b"Timelines" not in shown:
            select.select([terminal], [], [], 30)
            shown += os.read(terminal, 65536)
        return time.perf_counter() - start
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def read_for(terminal: int, seconds: float) -> int:
    """Read what is written for so long; how many bytes that were."""
    total, end = 0, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select([terminal], [], [], left)
        if ready:
            total += len(os.read(terminal, 65536))
    return total


def _key_to_paint_s(terminal: int) -> float:
    """From the key's byte to the first byte painted after it, with the terminal quiet before."""
    read_for(terminal, 0.05)
    start = time.perf_counter()
    os.write(terminal, b"\x1b[B")
    select.select([terminal], [], [], 10)
    seconds = time.perf_counter() - start
    read_for(terminal, 0.05)
    return seconds
