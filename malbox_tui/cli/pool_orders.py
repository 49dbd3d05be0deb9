"""`malbox-tui resize`, `pause`, `resume` and `drain`: what is done to a pool. A pause holds until somebody resumes, also where no
engine runs; for the others one is needed."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from malbox_tui.cli.command_records import outcome_record
from malbox_tui.cli.engine_door import Door, check_store, needed_engine, some_engine, usable_settings
from malbox_tui.cli.options import FLAG, GlobalOptions, whole_number
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.text import sentence
from malbox_tui.model.commands import Action, PausePool, ResizeGroup, ResumePool, Shutdown, ShutdownMode
from malbox_tui.model.errors import MalboxError

EXIT_OK = 0
EXIT_REFUSED = 1

Json = Annotated[bool, FLAG]
Limit = Annotated[int | None, Parameter(metavar="N", converter=whole_number, validator=Number(gte=0, lte=1024))]


def resize(
    group: Annotated[str, Parameter(name="GROUP")] = "default",
    /,
    *,
    min: Limit = None,
    max: Limit = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Give a worker group other limits at once, until the next start of the engine.

    Exit code 0: done; 1: refused, and the answer says why; 2: wrong usage, or no engine runs.

    Parameters
    ----------
    group
        The worker group.
    min
        So many workers stay, however little there is to do.
    max
        So many workers there may be.
    json
        Print the answer as one JSON object.
    """
    if min is None and max is None:
        raise MalboxError("Say --min, --max, or both.")
    return order("resize", ResizeGroup(group=group, min_workers=min, max_workers=max), json, options)


def pause(*, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Take no more tasks until `resume`, whatever is started anew meanwhile; what runs goes on.

    Exit code 0: done; 2: it can't be done.

    Parameters
    ----------
    json
        Print the answer as one JSON object.
    """
    return order("pause", PausePool(), json, options, at_rest=True)


def resume(*, json: Json = False, options: GlobalOptions | None = None) -> int:
    """Take tasks again after `pause`.

    Exit code 0: done; 2: it can't be done.

    Parameters
    ----------
    json
        Print the answer as one JSON object.
    """
    return order("resume", ResumePool(), json, options, at_rest=True)


def drain(
    *,
    within: Annotated[float | None, Parameter(metavar="SECONDS", validator=Number(gte=0, lte=7 * 86400))] = None,
    json: Json = False,
    options: GlobalOptions | None = None,
) -> int:
    """Let running tasks finish, take no more, and end the engine. This returns at once; what waits is kept for its next start.

    Exit code 0: done; 2: no engine runs.

    Parameters
    ----------
    within
        Give back what still runs after so many seconds. Without it, the engine waits as long as it takes.
    json
        Print the answer as one JSON object.
    """
    return order("drain", Shutdown(mode=ShutdownMode.DRAIN, within_s=within), json, options)


def order(name: str, action: Action, as_json: bool, options: GlobalOptions | None, *, at_rest: bool = False) -> int:
    """Have an engine carry an action out, print its answer, and return the exit code. Raises `NoEngine`, unless it can do so
    `at_rest`, too."""
    chosen = options or GlobalOptions()
    return asyncio.run(_order(name, action, as_json, _some_engine(chosen) if at_rest else needed_engine(chosen)))


def _some_engine(options: GlobalOptions) -> AbstractAsyncContextManager[Door]:
    settings = usable_settings(options)
    check_store(options.folders)  # one that isn't there is not to be made
    return some_engine(options, settings)


async def _order(name: str, action: Action, as_json: bool, engine: AbstractAsyncContextManager[Door]) -> int:
    async with engine as door:
        outcome = await door.do(action)
    if as_json:
        write_record(outcome_record(name, outcome))
    else:
        write_line(sentence(outcome.message))
    return EXIT_OK if outcome.done else EXIT_REFUSED
