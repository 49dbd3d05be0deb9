"""One HTTP connection: who is there, how many there are, and how slow and how large a request may be before it has a name.

uvicorn's protocol reads HTTP and drives the application; here is what it doesn't do: peer credentials, a time limit on headers, sizes
of headers and trailers, a bound on connections that answers those beyond it, and cutting who doesn't take the last of an answer.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from malbox_tui.model.sample import visible
from malbox_tui.remote.answers import ALWAYS, JSON, Unanswered, refusal
from malbox_tui.remote.bounds import Bounds
from malbox_tui.remote.link import Link
from malbox_tui.remote.peers import Admission, Peer, PeerBook

log = logging.getLogger(__name__)

_MOST_PIPELINED = 8


@dataclass(frozen=True, slots=True)
class Door:
    """What all connections of a server share."""

    config: Config
    admission: Admission
    bounds: Bounds
    state: ServerState = field(default_factory=ServerState)
    book: PeerBook = field(default_factory=PeerBook)


class Connection(HttpToolsProtocol):
    """One connection of `door`."""

    def __init__(self, door: Door) -> None:
        super().__init__(door.config, door.state, {}, asyncio.get_running_loop())
        self._door = door
        self._link: Link | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._idle_bytes = 0
        """That came since the latest headers were complete or the latest piece of a body came."""

    @property
    def gone(self) -> asyncio.Future[None] | None:
        """Resolved when the connection is lost; None for one that was never let in."""
        return None if self._link is None else self._link.lost

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        try:
            peer = self._door.book.peer_of(transport.get_extra_info("socket"))
        except OSError as error:
            log.warning("a connection is cut: who is there can't be told: %s", error)
            transport.abort()
            return
        if len(self.connections) > self._door.bounds.connections + self._door.bounds.told:
            transport.abort()
            return
        self._link = Link(peer, transport.abort)
        self.app_state = self._link.state()
        if (refused := self._refused(peer)) is not None:
            self.app = _refusing(refused)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_alarm()
        super().connection_lost(exc)
        if self._link is not None and not self._link.lost.done():
            self._link.lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._idle_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            self._abort_later()
        elif self._idle_bytes > self._door.bounds.header_bytes + len(data):
            self._refuse_headers()
        elif self._alarm is None and not self._answering:
            self._await_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        # After the body they are trailers; nobody reads them.
        if self.scope.get("path") is None:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_alarm()
        self._idle_bytes = 0
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self._door.bounds.header_bytes:
            self._refuse_headers()
            return
        super().on_headers_complete()
        if len(self.pipeline) > _MOST_PIPELINED:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        if self._answering:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._answering:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()

    def send_400_response(self, msg: str) -> None:
        self._say(Unanswered(HTTPStatus.BAD_REQUEST, "malformed", f"This is no HTTP request: {msg}"))

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._abort_later()

    # --- private -----------------------------------------------------------------------------------------------------------------

    @property
    def _answering(self) -> bool:
        """A request is known and not answered to its end."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _refused(self, peer: Peer) -> Unanswered | None:
        if not self._door.admission.admits(peer):
            log.warning("%s (uid %d, process %d) is refused", visible(peer.name), peer.uid, peer.pid)
            return Unanswered(HTTPStatus.FORBIDDEN, "foreign_user", f"{peer.name} may not use this engine.", closes=True)
        if len(self.connections) > self._door.bounds.connections:
            problem = f"There are {self._door.bounds.connections} connections already. Close some, or try again soon."
            return Unanswered(HTTPStatus.SERVICE_UNAVAILABLE, "too_many_connections", problem, closes=True)
        return None

    def _refuse_headers(self) -> None:
        limit = self._door.bounds.header_bytes
        problem = f"What stands before the content is larger than {limit} bytes."
        self._say(Unanswered(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", problem))

    def _await_headers(self) -> None:
        self._alarm = self.loop.call_later(self._door.bounds.header_s, self._headers_late)

    def _headers_late(self) -> None:
        self._alarm = None
        if not self._answering:
            problem = f"The request was not complete within {self._door.bounds.header_s:g} s."
            self._say(Unanswered(HTTPStatus.REQUEST_TIMEOUT, "too_slow", problem))

    def _stop_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _say(self, error: Unanswered) -> None:
        """A last word outside of any request. In the middle of an answer it would be taken for a part of it, so nothing is said."""
        if self.transport.is_closing():
            return
        if not self._answering or not self.cycle.response_started:
            self.transport.write(_raw(error))
            self.transport.close()
            self._abort_later()
        else:
            self.transport.abort()

    def _abort_later(self) -> None:
        """A closing connection lives until everything was taken; who doesn't take it is not waited for without end."""
        self.loop.call_later(self._door.bounds.stall_s, self.transport.abort)


def _refusing(error: Unanswered) -> ASGIApp:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await refusal(error)(scope, receive, send)

    return answer


def _raw(error: Unanswered) -> bytes:
    body = msgspec.json.encode(error.problem)
    fields = {**ALWAYS, "content-type": JSON, "content-length": str(len(body)), "connection": "close"}
    lines = [f"HTTP/1.1 {error.status.value} {error.status.phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body
