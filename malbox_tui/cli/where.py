"""`malbox-tui where`: where the engine of a data folder can be reached, and whether it can. `attach ssh://…` asks it there."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Annotated

from malbox_tui.cli.engine_door import QuietTeller
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.screen import host_name, login_name
from malbox_tui.cli.text import sentence
from malbox_tui.config.loading import shown_path
from malbox_tui.model.errors import Disconnected, MalboxError

EXIT_RUNS, EXIT_NOTHING_RUNS = 0, 1


def where(*, json: Annotated[bool, FLAG] = False, options: GlobalOptions | None = None) -> int:
    """Say where the control socket of the engine is, and whether an engine answers on it.

    Exit code 0: one does; 1: none does. With --json always 0.

    Parameters
    ----------
    json
        Print one JSON object.
    """
    from malbox_tui.remote.client import RemoteClient, SocketWay
    from malbox_tui.remote.protocol import PROTOCOL
    from malbox_tui.remote.tunnel import Whereabouts
    from malbox_tui.runtime import SystemClock

    path = (options or GlobalOptions()).folders.control_socket
    way = SocketWay(str(path), shown_path(path))
    client = RemoteClient(way, SystemClock(), on_quiet=QuietTeller(way.shown))

    async def problem_there() -> str:
        try:
            await client.health()
        except Disconnected as error:
            return error.problem
        except MalboxError as error:
            return str(error).rstrip(".")
        finally:
            client.close()
        return ""

    problem = asyncio.run(problem_there())
    if json:
        found = Whereabouts(
            malbox=version("malbox-tui"),
            protocol=PROTOCOL,
            socket=str(path),
            running=not problem,
            problem=problem,
            user=login_name(),
            host=host_name(),
        )
        write_record({name: getattr(found, name) for name in found.__struct_fields__})
        return EXIT_RUNS
    write_line(sentence(shown_path(path)))
    write_line("An engine answers there." if not problem else f"No engine: {sentence(problem)}.")
    return EXIT_NOTHING_RUNS if problem else EXIT_RUNS
