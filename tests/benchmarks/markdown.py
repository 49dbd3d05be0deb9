"""The README's table of the engine: `make bench BENCH=engine JSON=1 > rows && python -m tests.benchmarks.markdown < rows`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

Row = dict[str, Any]
"""A figure as `Figure.as_json` has it."""

SHOWN = {
    "durable_noop_tasks_per_s": "tasks a second",
    "durable_noop_processor_us": "processor time of one",
    "dispatch_p50_ms": "submit to run on an idle pool, p50",
    "dispatch_p99_ms": "… p99",
    "cancel_p50_ms": "cancel to stop signal of what runs, p50",
    "cancel_max_ms": "… highest",
    "cancel_stored_p50_ms": "cancel to stored end, p50",
    "pending_100k_start_s": "start to first run with 100,000 pending",
    "bytes_per_pending_task": "memory of one of 100,000 pending",
    "task_cost_us": "one task, others pending",
    "task_cost_processor_us": "… processor time",
    "aiosqlite_task_us": "prototype: rows of one task through aiosqlite",
    "aiosqlite_task_processor_us": "… processor time",
}
"""Name of a figure → what it is called. What isn't here is left out."""
OURS_ALONE = ("dispatch_p99_ms", "cancel_max_ms")
"""Of so few samples the peers' worst says little."""

FOR_EACH_NUMBER = ("task_cost_us", "task_cost_processor_us")
"""Those that are measured with several numbers of pending tasks."""


def table(rows: Iterable[Row]) -> Iterator[str]:
    """The lines: each figure of ours, beside it each peer's, `ratio` being ours to it."""
    found = [row for row in rows if row["name"] in SHOWN]
    yield "| figure | ours | peer | the peer's | ratio |"
    yield "| --- | --- | --- | --- | --- |"
    for name in SHOWN:
        of_peers = [row for row in found if row["name"] == name and "peer" in row and name not in OURS_ALONE]
        for row in (row for row in found if row["name"] == name and "peer" not in row):
            label = f"{SHOWN[name]}: {row['pending']:,}" if name in FOR_EACH_NUMBER else SHOWN[name]
            beside = [_peer(peer) for peer in of_peers] or ["| | | |"]
            for place, cells in enumerate(beside):
                yield f"| {label} | {_value(row)} {cells}" if place == 0 else f"| | {cells}"


def _peer(row: Row) -> str:
    kind = "embedded" if row["embedded"] else "server"
    if row["value"] is None:
        return f"| {row['peer']}, {kind} | {row['missing']} | |"
    return f"| {row['peer']}, {kind} | {_value(row)} | {row['ratio']:,.2f} |"


def _value(row: Row) -> str:
    value = row["value"]
    if value is None:
        return str(row["missing"])
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    unit = "" if row["unit"] == "1/s" else f" {row['unit']}"
    return f"{value:,.{digits}f}{unit}"


if __name__ == "__main__":
    for line in table(json.loads(text) for text in sys.stdin):
        print(line)  # noqa: T201 - it is what this is for
