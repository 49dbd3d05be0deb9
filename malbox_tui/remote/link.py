"""One connection as those see it who answer its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from starlette.types import Scope

from malbox_tui.remote.peers import Peer

_PLACE = "malbox.link"


class Link:
    """`peer` holds the other end. `lost` is resolved when the connection is gone; `abort` cuts it, with what was not sent yet."""

    def __init__(self, peer: Peer, abort: Callable[[], None]) -> None:
        self.peer = peer
        self.abort = abort
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def state(self) -> dict[str, object]:
        """What the scope of each request on this connection is to hold."""
        return {_PLACE: self}

    @classmethod
    def of(cls, scope: Scope) -> Link:
        """The connection that a request came on."""
        return cast(Link, scope["state"][_PLACE])


class ConnectionGone(Exception):
    """Nobody is there any more to be answered."""
