"""The reports of a task, read from its results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError
from malbox_tui.model.report import REPORT_RESULT, PluginRun, ResultRef
from malbox_tui.reports.words import removed_words, timestamp

MAX_REPORT_BYTES = 4 * 1024 * 1024
"""The engine keeps none that is larger."""

Read = Callable[[ResultRef, int], Awaitable[bytes]]
"""Gives at most so many bytes of a result."""


@dataclass(frozen=True, slots=True)
class PluginReport:
    """What a plugin's run reports. `content`: None when it can't be read; then `problem` says why."""

    run: PluginRun
    content: dict[str, Any] | None
    problem: str = ""


async def gathered(read: Read, runs: Iterable[PluginRun], removed_at: float | None = None) -> list[PluginReport]:
    """The reports of those runs that have one, in their order; with `removed_at`, since when they are gone, none of them is asked
    for. Raises `EngineStopped` and `Disconnected`."""
    found = [(run, result) for run in runs for result in run.results if result.name == REPORT_RESULT]
    if removed_at is not None:
        problem = removed_words(timestamp(removed_at) or "")
        return [PluginReport(run, None, problem) for run, _ in found]
    return [await read_report(read, run, result) for run, result in found]


async def read_report(read: Read, run: PluginRun, result: ResultRef) -> PluginReport:
    """The report of one run. Raises as `gathered`."""
    try:
        content = await read(result, MAX_REPORT_BYTES)
    except (EngineStopped, Disconnected):
        raise
    except MalboxError as error:
        return PluginReport(run, None, str(error))
    return parsed(run, content)


def parsed(run: PluginRun, content: bytes) -> PluginReport:
    """The report in these bytes."""
    try:
        report = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return PluginReport(run, None, "It can't be read, or is too large to be shown here.")
    if not isinstance(report, dict):
        return PluginReport(run, None, "It is no report.")
    return PluginReport(run, report)
