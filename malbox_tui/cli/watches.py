"""`malbox-tui watches …`: the watched folders of a running engine, how it is with each, and others while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from cyclopts import App, Parameter

from malbox_tui.cli.command_records import watch_record
from malbox_tui.cli.engine_door import needed_engine
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.plain_table import write_table
from malbox_tui.cli.pool_orders import order
from malbox_tui.cli.text import sentence
from malbox_tui.cli.watch_words import WatchWords, absolute
from malbox_tui.model.commands import AddWatch, RemoveWatch
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.sample import visible
from malbox_tui.model.watching import WatchView

_TITLES = ("folder", "state", "added", "known", "refused", "waiting", "left out", "afterwards")


Json = Annotated[bool, FLAG]
FolderPath = Annotated[str, Parameter(name="PATH")]


def watches(*words: Annotated[str, Parameter(show=False)], json: Json = False, options: GlobalOptions | None = None) -> int:
    """List the folders that a running engine watches: how it is with each, and what came of its files since the engine began.

    Exit code 0: listed, or done; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    json
        Print one JSON object a folder, or the answer as one.
    """
    if words:
        raise MalboxError(f"`malbox-tui watches` has no command {words[0]!r}. There are: {', '.join(ORDERS)}.")
    found = asyncio.run(_watches(options or GlobalOptions()))
    if json:
        for watch in found:
            write_record(watch_record(watch))
        return 0
    if not found:
        write_line("No folder is watched. `malbox-tui watches add PATH` adds one, and [[watch]] in the configuration does.")
        return 0
    write_table(_TITLES, map(_row, found))
    for watch in found:
        if watch.problem:
            write_line(f"{visible(watch.path)}: {sentence(watch.problem)}")
    return 0


def add(
    path: FolderPath,
    /,
    *,
    words: WatchWords | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Have the running engine watch a folder of its host, and keep that for the next start.

    Exit code 0: watched; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    path
        The folder; it may come later.
    json
        Print the answer as one JSON object.
    """
    return order("watches add", AddWatch(watch=(words or WatchWords()).watch(path)), json, options)


def remove(path: FolderPath, /, *, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Watch a folder no more, and keep that for the next start. Nothing of the folder's is touched.

    Exit code 0: done; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    path
        The folder.
    json
        Print the answer as one JSON object.
    """
    options = options or GlobalOptions()
    known = [watch.path for watch in asyncio.run(_watches(options))]
    meant = [watched for watched in known if watched == path or absolute(watched) == absolute(path)]
    return order("watches remove", RemoveWatch(path=meant[0] if meant else visible(absolute(path))), json, options)


ORDERS: Mapping[str, tuple[Callable[..., Any], str]] = MappingProxyType(
    {"add": (add, "PATH [OPTIONS]"), "remove": (remove, "PATH [OPTIONS]")}
)
"""A command behind `watches` → what does it, and how it is used."""


def add_to(group: App) -> None:
    """Add the commands to `watches`."""
    for name, (command, usage) in ORDERS.items():
        group.command(command, name=name, usage=f"Usage: malbox-tui watches {name} {usage}")


async def _watches(options: GlobalOptions) -> tuple[WatchView, ...]:
    async with needed_engine(options) as door:
        return (await door.client.overview()).watches


def _row(watch: WatchView) -> tuple[str, ...]:
    counts = (watch.added, watch.known, watch.refused, watch.waiting, watch.left_out)
    below = "/**" if watch.recursive else ""
    return visible(watch.path) + below, watch.state.value, *map(str, counts), watch.afterwards
