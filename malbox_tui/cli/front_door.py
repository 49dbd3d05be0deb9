"""An engine's door in the file system: its control socket, served as long as it is entered.

Who takes the socket's file away doesn't shut the engine off: it is made again, and consoles that are attached stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from importlib.metadata import version

from malbox_tui.cli.options import GlobalOptions
from malbox_tui.config.loading import shown_path
from malbox_tui.config.settings import Settings
from malbox_tui.engine.clock import sleep
from malbox_tui.model.errors import SocketUnavailable
from malbox_tui.ports import Client
from malbox_tui.remote.presence import Presence
from malbox_tui.remote.served import Served
from malbox_tui.remote.server import Server, serving
from malbox_tui.remote.socket_file import Place, group_id, listening

LOOK_S = 2.0
"""How often it is looked whether the socket is still in its place."""


@asynccontextmanager
async def open_door(
    client: Client,
    options: GlobalOptions,
    settings: Callable[[], Settings],
    say: Callable[[str], None],
    presence: Presence | None = None,
) -> AsyncIterator[None]:
    """While entered, `client` is served at the data folder's socket, for the group that the settings name, too.

    What happens to the socket is said in sentences. Raises `SocketUnavailable`, and `EngineStopped` when there is no engine any more.
    """
    group = settings().serve.group
    gid = group_id(group) if group else None
    served = Served(client, version("malbox-tui"), lambda: settings().intake.max_sample_bytes)
    with ExitStack() as places:
        place = places.enter_context(listening(options.folders.control_socket, gid))
        async with serving(served, place.listener, gid, presence=presence) as server, asyncio.TaskGroup() as beside:
            keeping = beside.create_task(_keep(places, place, server, gid, say), name="place of the socket")
            try:
                yield
            finally:
                keeping.cancel()


async def _keep(places: ExitStack, place: Place, server: Server, gid: int | None, say: Callable[[str], None]) -> None:
    """Listen anew when the socket's file was taken away or replaced; what prevents it is told once."""
    shown, told = shown_path(place.path), ""
    while True:
        await sleep(LOOK_S)
        if place.is_kept:
            continue
        try:
            place = places.enter_context(listening(place.path, gid))
        except SocketUnavailable as error:
            if str(error) != told:
                told = str(error)
                say(f"The socket {shown} was taken away, and nobody can attach any more. {told}")
            continue
        await server.listen(place.listener)
        told = ""
        say(f"The socket {shown} was taken away; it was made again.")
