"""The event stream as an answer."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from malbox_tui.model.events import Position
from malbox_tui.model.overview import ConsoleView, Overview
from malbox_tui.remote.answers import ALWAYS, LINES
from malbox_tui.remote.asking import console_of, is_read_only, origin_of
from malbox_tui.remote.link import Link
from malbox_tui.remote.served import Counter
from malbox_tui.remote.stream import Stream


class EventAnswer(Response):
    """Goes on as long as the stream does. One who names its console and follows is counted among those who are here."""

    def __init__(self, counter: Counter, overview: Overview, after: Position | None, follow: bool) -> None:
        super().__init__(None, 200, ALWAYS, LINES)
        self._counter = counter
        self._overview = overview
        self._after = after
        self._follow = follow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        counter = self._counter
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        if scope["method"] != "HEAD":
            stream = Stream(counter.client, counter.relay, counter.presence, Link.of(scope), send)
            beat_s = counter.bounds.beat_s if self._follow else None
            await stream.run(self._overview, self._after, self._console(Request(scope)), beat_s)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _console(self, request: Request) -> tuple[str, ConsoleView] | None:
        name = console_of(request)
        if not name or not self._follow:
            return None
        actor = Link.of(request.scope).peer.name
        since = self._overview.clock
        return name, ConsoleView(actor=actor, origin=origin_of(request), since=since, read_only=is_read_only(request))
