"""An engine served on a listening socket: connections in, answers out, and an end that waits for nobody for long.

It belongs to one event loop, which is not the engine's: a burst of requests shares with the engine only what all threads share.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from uvicorn.config import Config

from malbox_tui.remote.application import make_application
from malbox_tui.remote.bounds import Bounds
from malbox_tui.remote.connection import Connection, Door
from malbox_tui.remote.peers import Admission
from malbox_tui.remote.presence import Presence
from malbox_tui.remote.relay import Relay
from malbox_tui.remote.served import Counter, Served

log = logging.getLogger(__name__)

BACKLOG = 512
"""So many may wait to be let in (listen(2))."""
LEAVE_S = 2.0
"""How long answers that are under way may take when the server ends."""


class Server:
    """Lets those in who come to a listening socket, which may be another one later."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._server: asyncio.Server | None = None

    def connections(self) -> int:
        """How many there are."""
        return len(self._door.state.connections)

    async def listen(self, listener: socket.socket) -> None:
        """Let in who comes to `listener` (bound, and closed at the end), and nobody any more who comes to the one before."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self._door), sock=listener, backlog=BACKLOG)
        self.close()
        self._server = server

    def close(self) -> None:
        """Let nobody in any more; the connections stay."""
        if self._server is not None:
            self._server.close()


@asynccontextmanager
async def serving(
    served: Served,
    listener: socket.socket,
    gid: int | None = None,
    bounds: Bounds | None = None,
    presence: Presence | None = None,
) -> AsyncIterator[Server]:
    """While entered, `listener` (bound, and closed at the end) is served.

    Root, this process's user and who is in the group `gid` may ask; `presence` knows who else follows. At the end streams
    are told that the engine ends if it did; what is not done within `LEAVE_S` is cut. Raises `EngineStopped` when there is no engine to
    serve.
    """
    limits = bounds or Bounds()
    relay = Relay(served.client, limits.lines, limits.line_bytes)
    await relay.begin()
    app = make_application(Counter(served, relay, presence or Presence(), limits))
    config = Config(
        app,
        lifespan="off",
        ws="none",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        date_header=False,
        timeout_keep_alive=limits.idle_s,
    )
    config.load()
    door = Door(config, Admission(os.getuid(), gid), limits)
    async with asyncio.TaskGroup() as services:
        following = services.create_task(relay.run(), name="relay")
        server = Server(door)
        try:
            await server.listen(listener)
            yield server
        finally:
            server.close()
            await _leave(door)
            following.cancel()


async def _leave(door: Door) -> None:
    """End all connections: idle ones at once, the others when they have their answer or the time is over."""
    connections: list[Connection] = list(door.state.connections)  # type: ignore[arg-type]
    for connection in connections:
        connection.shutdown()
    await _until_done(door)
    for connection in connections:
        connection.transport.abort()
    await _until_done(door)
    for answering in door.state.tasks:
        answering.cancel()
    await _until_done(door)


async def _until_done(door: Door) -> None:
    """Wait, at most `LEAVE_S`, until every connection is gone and nothing is answered any more."""
    connections: list[Connection] = list(door.state.connections)  # type: ignore[arg-type]
    under_way = {*door.state.tasks, *(connection.gone for connection in connections if connection.gone is not None)}
    if under_way:
        await asyncio.wait(under_way, timeout=LEAVE_S)
