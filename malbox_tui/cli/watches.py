"""`malbox-tui watches`: the watched folders of a running engine, and how it is with each."""

from __future__ import annotations

import asyncio
from typing import Annotated

from malbox_tui.cli.command_records import watch_record
from malbox_tui.cli.engine_door import needed_engine
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.plain_table import write_table
from malbox_tui.cli.text import sentence
from malbox_tui.model.sample import visible
from malbox_tui.model.watching import WatchView

_TITLES = ("folder", "state", "added", "known", "refused", "waiting", "left out", "afterwards")


def watches(*, json: Annotated[bool, FLAG] = False, options: GlobalOptions | None = None) -> int:
    """List the folders that a running engine watches: how it is with each, and what came of its files since the engine began.

    Exit code 0: listed; 2: no engine runs.

    Parameters
    ----------
    json
        Print one JSON object a folder.
    """
    found = asyncio.run(_watches(options or GlobalOptions()))
    if json:
        for watch in found:
            write_record(watch_record(watch))
        return 0
    if not found:
        write_line("No folder is watched: the configuration has no [[watch]].")
        return 0
    write_table(_TITLES, map(_row, found))
    for watch in found:
        if watch.problem:
            write_line(f"{visible(watch.path)}: {sentence(watch.problem)}")
    return 0


async def _watches(options: GlobalOptions) -> tuple[WatchView, ...]:
    async with needed_engine(options) as door:
        return (await door.client.overview()).watches


def _row(watch: WatchView) -> tuple[str, ...]:
    counts = (watch.added, watch.known, watch.refused, watch.waiting, watch.left_out)
    below = "/**" if watch.recursive else ""
    return visible(watch.path) + below, watch.state.value, *map(str, counts), watch.afterwards
