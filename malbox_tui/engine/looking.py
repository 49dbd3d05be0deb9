"""The plugins of this host look at what was collected of a run in a guest, one file after the other, on the bench of the task."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.guest_files import CollectedFile
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.ports import PluginBench, PluginJob, ResultStore

log = logging.getLogger(__name__)

MOST_LOOKED_AT = 16
"""How many of the collected files the plugins look at."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The plugins' runs on what was collected, and what was not looked at, in words; empty: nothing is missing."""

    runs: tuple[PluginRun, ...] = ()
    missing: str = ""


async def look_at(
    files: Sequence[CollectedFile], bench: PluginBench, results: ResultStore, job: PluginJob, stop: CancelToken, max_bytes: int
) -> Looked:
    """Run the plugins that take part in `job` on each file that is not larger than `max_bytes`, until `stop` speaks."""
    files = [file for file in files if file.result.size_bytes]
    fitting = [file for file in files if file.result.size_bytes <= max_bytes]
    runs: list[PluginRun] = []
    looked_at = 0
    for number, file in enumerate(fitting[:MOST_LOOKED_AT], 1):
        if stop.reason is not None:
            break
        name = f"collected-{number}"
        try:
            await results.lay_out(file.result, bench.inbox / name)
            found = await bench.run(replace(job, sample_name=name, subject=file.path), stop)
        except MalboxError as error:
            log.error("task %d: the plugins can't look at %s: %s", job.task_id, file.path, error)
            continue
        runs += [run for run in found.runs if run.status is not PluginStatus.SKIPPED]
        looked_at += all(run.status not in _CUT for run in found.runs)
    return Looked(tuple(runs), _missing(len(files), looked_at))


_CUT = frozenset({PluginStatus.TIMED_OUT, PluginStatus.CANCELED})


def _missing(files: int, looked_at: int) -> str:
    return "" if looked_at == files else f"plugins looked at {looked_at} of {files} collected files"
