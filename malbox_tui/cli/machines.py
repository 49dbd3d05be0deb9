"""`malbox-tui machines …`: the machines of a running engine, and what is done to them while it runs."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from cyclopts import App, Parameter

from malbox_tui.cli.command_records import machine_page_record, machine_record
from malbox_tui.cli.engine_door import needed_engine
from malbox_tui.cli.machine_changes import MachineWords, added, changed
from malbox_tui.cli.machine_page import TITLES, machine_lines, machine_row
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.plain_table import write_table
from malbox_tui.cli.pool_orders import order
from malbox_tui.model.commands import DisableMachines, EnableMachines, ProbeMachines, RemoveMachines, SetMachine
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.machine import MachineView
from malbox_tui.model.overview import Overview

Json = Annotated[bool, FLAG]
Name = Annotated[str, Parameter(name="NAME")]


def machines(*words: Annotated[str, Parameter(show=False)], json: Json = False, options: GlobalOptions | None = None) -> int:
    """List the machines of a running engine, or do something to them: see the commands.

    Exit code 0: listed, or done; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    json
        Print one JSON object a machine, or the answer as one.
    """
    if words:
        raise MalboxError(_unknown_command(words[0]))
    overview = asyncio.run(_overview(options or GlobalOptions()))
    if json:
        for machine in overview.machines:
            write_record(machine_record(machine))
    elif not overview.machines:
        write_line("No machine is configured.")
    else:
        write_table(TITLES, (machine_row(machine, overview.clock) for machine in overview.machines))
    return 0


def show(name: Name, /, *, json: Json = False, options: GlobalOptions | None = None) -> int:
    """All about one machine: what it is and is at, why, what its hypervisor says of it, and its history.

    Exit code 0: shown; 2: there is no such machine, or no engine runs.

    Parameters
    ----------
    name
        The machine.
    json
        Print one JSON object.
    """
    overview = asyncio.run(_overview(options or GlobalOptions()))
    machine = _known(overview, name)
    if json:
        write_record(machine_page_record(machine))
        return 0
    for line in machine_lines(machine, overview.clock):
        write_line(line)
    return 0


def add(
    name: Name,
    /,
    *,
    words: MachineWords | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Add a machine to the running engine, and keep it for the next start. It serves as soon as it is proven clean.

    Exit code 0: added; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    name
        What it is to be called.
    json
        Print the answer as one JSON object.
    """
    words, options = words or MachineWords(), options or GlobalOptions()
    machine = added(name, words)
    if any(known.name == name for known in asyncio.run(_overview(options)).machines):
        raise MalboxError(f"There is a machine {name} already. `{options.command('machines edit')} {name} KEY=VALUE` changes it.")
    return order("machines add", SetMachine(machine=machine), json, options)


def edit(
    name: Name,
    /,
    *pairs: Annotated[str, Parameter(name="KEY=VALUE")],
    words: MachineWords | None = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Change a machine of the running engine, and keep that for the next start. One that serves a task is changed when that is done.

    Exit code 0: changed, or will be; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    name
        The machine.
    pairs
        A key of `[[machines]]` with its new value, such as `tags=office,word`; without a value the key is taken away.
    json
        Print the answer as one JSON object.
    """
    options = options or GlobalOptions()
    known = _known(asyncio.run(_overview(options)), name)
    if known.spec is None:
        raise MalboxError(f"The engine does not say what machine {name} is; it is an older one.")
    return order("machines edit", SetMachine(machine=changed(known.spec, pairs, words or MachineWords())), json, options)


def remove(*names: Name, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Take machines out of the pool for good; one that serves a task when that is done. The hypervisor keeps them.

    Exit code 0: done, or will be; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    names
        The machines.
    json
        Print the answer as one JSON object.
    """
    return _order("remove", RemoveMachines, names, json, options)


def disable(*names: Name, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Take machines out for maintenance; one that serves a task when that is done.

    Exit code 0: done, or will be; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    names
        The machines.
    json
        Print the answer as one JSON object.
    """
    return _order("disable", DisableMachines, names, json, options)


def enable(*names: Name, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Bring disabled, quarantined or missing machines back: each serves again as soon as it is proven clean.

    Exit code 0: done; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    names
        The machines.
    json
        Print the answer as one JSON object.
    """
    return _order("enable", EnableMachines, names, json, options)


def bring_back(*names: Name, json: Json = False, options: GlobalOptions | None = None) -> int:
    """The same as `enable`.

    Exit code 0: done; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    names
        The machines.
    json
        Print the answer as one JSON object.
    """
    return _order("return", EnableMachines, names, json, options)


def probe(*names: Name, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Try machines that no task holds, now: each is reverted and has to answer.

    Exit code 0: they are being tried; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    names
        The machines.
    json
        Print the answer as one JSON object.
    """
    return _order("probe", ProbeMachines, names, json, options)


ORDERS: Mapping[str, tuple[Callable[..., Any], str]] = MappingProxyType(
    {
        "show": (show, "NAME"),
        "add": (add, "NAME [OPTIONS]"),
        "edit": (edit, "NAME KEY=VALUE..."),
        "remove": (remove, "NAME..."),
        "disable": (disable, "NAME..."),
        "enable": (enable, "NAME..."),
        "return": (bring_back, "NAME..."),
        "probe": (probe, "NAME..."),
    }
)
"""A command behind `machines` → what does it, and how it is used."""


def add_to(group: App) -> None:
    """Add the commands to `machines`."""
    for name, (command, usage) in ORDERS.items():
        group.command(command, name=name, usage=f"Usage: malbox-tui machines {name} {usage}")


def _order(name: str, action: Callable[..., Any], names: tuple[str, ...], json: bool, options: GlobalOptions | None) -> int:
    options = options or GlobalOptions()
    if not names:
        raise MalboxError(f"Say which machines: `{options.command('machines')}` lists them.")
    return order(f"machines {name}", action(machines=names), json, options)


async def _overview(options: GlobalOptions) -> Overview:
    async with needed_engine(options) as door:
        return await door.client.overview()


def _known(overview: Overview, name: str) -> MachineView:
    for machine in overview.machines:
        if machine.name == name:
            return machine
    names = [machine.name for machine in overview.machines]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names) or 'none'}."
    raise MalboxError(f"There is no machine {name!r}{hint}")


def _unknown_command(word: str) -> str:
    near = difflib.get_close_matches(word, ORDERS, n=1, cutoff=0.5)
    hint = f"Did you mean `malbox-tui machines {near[0]}`?" if near else f"There are: {', '.join(ORDERS)}, discover."
    return f"`malbox-tui machines` has no command {word!r}. {hint}"
