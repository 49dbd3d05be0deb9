"""`malbox-tui plugin`: which plugins there are, when each would run, what is wrong with one, and having them read again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from malbox_tui.cli import plugin_new
from malbox_tui.cli.options import FLAG, GlobalOptions, some_path
from malbox_tui.cli.output import tell, write_line, write_record
from malbox_tui.cli.plain_table import write_table
from malbox_tui.cli.pool_orders import order
from malbox_tui.cli.text import counted, sentence
from malbox_tui.model.commands import ReloadPlugins
from malbox_tui.model.errors import MalboxError

if TYPE_CHECKING:
    from malbox_tui.runtime.plugins import PluginLine

EXIT_OK = 0
EXIT_FAULTY = 1

Json = Annotated[bool, FLAG]

_TITLES = ("plugin", "version", "from", "type", "state", "execution", "runs")


def make_app() -> App:
    """The group of commands."""
    group = App(
        name="plugin", help="See which plugins there are and when each runs, make one, check one, and have them read again."
    )
    group.command(list_, name="list")
    group.command(check)
    group.command(plugin_new.new)
    group.command(reload)
    return group


def list_(*, json: Json = False, options: GlobalOptions | None = None) -> int:
    """List all plugins in the order in which they run, with where they come from, when they run, and what is wrong with them.

    They come from the built-in folder, from `plugins/` in the data folder and beside the configuration, and from installed packages.
    Exit code 0: all can be used; 1: something is wrong with one, and no engine starts; 2: wrong usage.

    Parameters
    ----------
    json
        Print one JSON object a plugin.
    """
    from malbox_tui.runtime.plugins import list_plugins

    chosen = options or GlobalOptions()
    lines = list(list_plugins(chosen.source.load().plugins, chosen.folders, chosen.source.shown))
    faulty = [line for line in lines if line.fault]
    if json:
        for line in lines:
            write_record(_record(line))
    else:
        write_table(_TITLES, [_row(line) for line in lines if line.name])
        for line in lines:
            for remark in line.remarks:
                write_line(sentence(f"{line.name}: {remark}"))
        for line in faulty:
            write_line(sentence(f"wrong: {line.fault}"))
    return EXIT_FAULTY if faulty else EXIT_OK


def check(
    folder: Annotated[Path, Parameter(name="DIR", converter=some_path)],
    /,
    *,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Say whether the plugin in the folder DIR can be used, by itself and beside those that are there, and when it would run.

    Exit code 0: it can; 1: it can't, and what is wrong is said with file and key; 2: wrong usage.

    Parameters
    ----------
    folder
        The folder that holds its `plugin.toml`.
    json
        Print the answer as one JSON object.
    """
    from malbox_tui.runtime.plugins import PluginLine, check_plugin

    chosen = options or GlobalOptions()
    try:
        line = check_plugin(folder, chosen.source.load().plugins, chosen.folders)
    except MalboxError as fault:
        line = PluginLine(str(folder), "", fault=str(fault))
    if json:
        write_record(_record(line))
    elif line.fault:
        tell(f"malbox-tui: {sentence(line.fault)}")
    else:
        for text in _told(line):
            write_line(sentence(text))
    return EXIT_FAULTY if line.fault else EXIT_OK


def reload(*, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Have a running engine read all plugins again, new, changed and given-up ones; tasks that run go on with those they began with.

    Exit code 0: done; 1: refused, nothing was changed, and the answer says why; 2: no engine runs.

    Parameters
    ----------
    json
        Print the answer as one JSON object.
    """
    return order("plugins", ReloadPlugins(), json, options)


def _row(line: PluginLine) -> list[str]:
    required = ", required" if line.is_required else ""
    cells = (line.name, line.version, line.origin, line.type, line.state, line.execution, f"{line.when}{required}")
    return [sentence(cell) for cell in cells]


def _told(line: PluginLine) -> Iterator[str]:
    yield f"{line.name} {line.version}: OK"
    yield f"  {line.type}, {line.state}, {line.execution}; it runs {line.when}"
    if line.results:
        yield f"  {counted(len(line.results), 'result')}: {', '.join(line.results)}"
    for remark in line.remarks:
        yield f"  {remark}"


def _record(line: PluginLine) -> dict[str, Any]:
    told = dataclasses.asdict(line)
    return {"record": "plugin", **told, "fault": line.fault or None}
