"""`malbox-tui workers` and `stats`: what a running engine has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Annotated

from malbox_tui.cli.command_records import group_record, stats_record, worker_record
from malbox_tui.cli.engine_door import needed_engine, open_store, running_engine
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.plain_table import write_table
from malbox_tui.cli.text import counted, duration, sentence, size, tallied
from malbox_tui.model.overview import GroupView, Overview
from malbox_tui.model.sample import visible
from malbox_tui.model.task import TaskState
from malbox_tui.model.worker import WorkerView

Json = Annotated[bool, FLAG]


def workers(*, json: Json = False, options: GlobalOptions | None = None) -> int:
    """List the worker groups of a running engine, and its workers with the tasks they hold.

    Exit code 0: listed; 2: no engine runs.

    Parameters
    ----------
    json
        Print one JSON object a group and a worker.
    """
    overview = asyncio.run(_overview(options or GlobalOptions()))
    if json:
        _write_records([*map(group_record, overview.groups), *map(worker_record, overview.workers)])
        return 0
    for group in overview.groups:
        write_line(_group_line(group))
    write_table(("id", "group", "kind", "state", "for", "tasks"), (_worker_row(row, overview.clock) for row in overview.workers))
    return 0


def stats(*, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Count the tasks by state, and say how a running engine is.

    Exit code 0: counted; 2: there is no store yet.

    Parameters
    ----------
    json
        Print one JSON object.
    """
    from malbox_tui.runtime import pause_of

    chosen = options or GlobalOptions()
    counts, overview = asyncio.run(_stats(chosen))
    paused = pause_of(chosen.folders) if overview is None else overview.paused
    if json:
        write_record(stats_record(counts, overview, paused))
        return 0
    write_line(f"Tasks: {tallied({state.value: count for state, count in counts.items()}) or 'none'}.")
    for line in _engine_lines(overview):
        write_line(line)
    if paused is not None:
        write_line(f"No task is taken: {sentence(paused)}.")
    return 0


async def _overview(options: GlobalOptions) -> Overview:
    async with needed_engine(options) as door:
        return await door.client.overview()


async def _stats(options: GlobalOptions) -> tuple[dict[TaskState, int], Overview | None]:
    async with running_engine(options) as client:
        if client is not None:
            overview = await client.overview()
            return overview.counts, overview
    async with open_store(options.folders) as store:
        return await store.counts(), None


def _engine_lines(overview: Overview | None) -> Iterator[str]:
    if overview is None:
        yield "No engine is served here."
        return
    busy = sum(group.busy for group in overview.groups)
    ended = sum(overview.ended_per_minute)
    minutes = len(overview.ended_per_minute)
    rate = f", {counted(ended, 'task', 'tasks')} of its run ended in the last {counted(minutes, 'minute')}" if minutes else ""
    yield f"Engine: {counted(len(overview.workers), 'worker')}, {busy} busy{rate}."
    if overview.stopping is not None:
        yield f"It is stopping ({overview.stopping.replace('_', ' ')})."
    for trouble in overview.troubles:
        yield sentence(trouble)
    if overview.free_bytes is not None:
        yield f"Free on its disk: {size(overview.free_bytes)}."


def _group_line(group: GroupView) -> str:
    takes = f", takes {sentence(group.takes)}" if group.takes else ""
    return f"{visible(group.name)}: {group.busy} busy, {group.active} of {group.min_workers}-{group.max_workers} workers{takes}"


def _worker_row(worker: WorkerView, clock: float) -> tuple[str, ...]:
    tasks = ", ".join(f"#{task_id}" for task_id in worker.task_ids) or "-"
    return worker.id[:8], visible(worker.group), worker.kind.value, worker.state.value, duration(clock - worker.since), tasks


def _write_records(records: Iterable[dict[str, object]]) -> None:
    for record in records:
        write_record(record)
