"""`malbox-tui actions` and `events`: what was done, and what happened; `events --follow` what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from malbox_tui.cli.command_records import action_record, event_record, gap_record
from malbox_tui.cli.engine_door import needed_engine, open_store
from malbox_tui.cli.options import FLAG, GlobalOptions, whole_number
from malbox_tui.cli.output import tell, write_line, write_record
from malbox_tui.cli.text import sentence, timestamp
from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.events import Event, Gap, MachineChanged
from malbox_tui.model.queries import MAX_ROWS
from malbox_tui.model.sample import visible

Json = Annotated[bool, FLAG]
Limit = Annotated[int, Parameter(metavar="N", converter=whole_number, validator=Number(gte=0))]


def actions(*, limit: Limit = 50, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Say who did what, when, and from where; the latest first. Also beside a running engine.

    Exit code 0: said; 2: there is no store yet.

    Parameters
    ----------
    limit
        At most so many.
    json
        Print one JSON object an action.
    """
    for record in asyncio.run(_actions(options or GlobalOptions(), limit)):
        if json:
            write_record(action_record(record))
        else:
            write_line(_action_line(record))
    return 0


def events(
    *,
    follow: Annotated[bool, Parameter(name=("--follow", "-f"), negative=(), show_default=False)] = False,
    limit: Limit = 20,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Say what happened last, in its order; with --follow, then what happens in a running engine, until it ends.

    Exit code 0: said, and the engine ended in good order; 1: interrupted, or the engine was lost; 2: no store yet, or no engine to
    follow.

    Parameters
    ----------
    follow
        Go on with what happens.
    limit
        At most so many of those that happened before.
    json
        Print one JSON object an event.
    """
    chosen = options or GlobalOptions()
    asyncio.run(_follow(chosen, limit, json) if follow else _show_latest(chosen, limit, json))
    return 0


async def _actions(options: GlobalOptions, limit: int) -> Sequence[ActionRecord]:
    found: list[ActionRecord] = []
    async with open_store(options.folders) as store:
        while len(found) < limit:
            before = found[-1].number if found else None
            page = await store.actions(before, min(MAX_ROWS, limit - len(found)))
            if not page:
                break
            found += page
    return found


async def _show_latest(options: GlobalOptions, limit: int, as_json: bool) -> None:
    async with open_store(options.folders) as store:
        latest = await store.latest_events(limit)
    for event in latest:
        _write(event, as_json)


async def _follow(options: GlobalOptions, limit: int, as_json: bool) -> None:
    async with needed_engine(options) as door, open_store(options.folders) as store:
        latest = await store.latest_events(limit)
        for event in latest:
            _write(event, as_json)
        start = latest[-1].position if latest else (await door.client.overview()).position
        async for item in door.client.events(start):
            if not isinstance(item, Gap):
                _write(item, as_json)
            elif as_json:
                write_record(gap_record(item))
            else:
                tell("Events were dropped here: they came faster than they were read.")


def _write(event: Event, as_json: bool) -> None:
    if as_json:
        write_record(event_record(event))
    else:
        write_line(f"{timestamp(event.at)}  {event_words(event)}")


def event_words(event: Event) -> str:
    """An event on one line: as the console's event log has it, or its kind and what it says."""
    from malbox_tui.tui.event_words import log_line, machine_line

    body = event.body
    line = machine_line(event.at, body, came_back=False) if isinstance(body, MachineChanged) else log_line(event)
    if line is not None:
        return sentence(line.subject) + (f": {sentence(line.detail)}" if line.detail else "")
    said = {name: value for name, value in msgspec.to_builtins(body).items() if value is not None and name != "event"}
    return sentence(" ".join([type(body).__name__, *(f"{name}={value}" for name, value in said.items())]))


def _action_line(record: ActionRecord) -> str:
    from malbox_tui.tui.action_words import action_words

    words = sentence(action_words(record.action, record.done_to, done=record.done))
    origin = f" ({sentence(record.origin)})" if record.origin else ""
    why = "" if record.done else f": {sentence(record.message)}"
    return f"{timestamp(record.at)}  {visible(record.actor)}{origin} {words}{why}"
