"""An engine's events over one connection, and where to go on over the next one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from urllib.parse import quote

import msgspec

from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.remote.contact import Contact
from malbox_tui.remote.protocol import BEAT_S, EndLine, EventLine, GapLine, OverviewLine, StreamLine, position_text
from malbox_tui.remote.reading import Declined, body_of, check_protocol, error_of
from malbox_tui.remote.wire import Answer, ConnectionLost, Request, Wire, Wires

SILENCE_S = 3 * BEAT_S
"""A stream that is silent for so long is dead."""
MAX_LINE_BYTES = 16 * 1024 * 1024

_DECODER: msgspec.json.Decoder[StreamLine] = msgspec.json.Decoder(StreamLine)


class Ended(Exception):
    """The engine said that it ends."""


class Following:
    """Follows the engine at `where`. `place` is what is known already (None: only what comes is asked for); `contact` is told when the
    stream begins, and of each sign of life in it."""

    def __init__(
        self,
        wires: Wires,
        headers: Sequence[tuple[str, str]],
        where: str,
        place: Position | None,
        contact: Contact,
    ) -> None:
        self._wires = wires
        self._headers = headers
        self._where = where
        self._place = place
        self._contact = contact

    async def run(self) -> AsyncIterator[Event | Gap]:
        """What happens after the place that is known, over a new connection, until that is lost. Raises `ConnectionLost`, `Ended`,
        and whatever the answer says instead of the events."""
        query = "?follow=true" + ("" if self._place is None else f"&after={quote(position_text(self._place))}")
        async with self._wires.fresh() as wire:
            head = await wire.begin(Request("GET", f"/v1/events{query}", self._headers, stall_s=SILENCE_S))
            check_protocol(head, self._where)
            if head.status >= 400:
                body = b"".join([piece async for piece in wire.body(SILENCE_S)])
                try:
                    body_of(Answer(head, body), self._where)
                except Declined as declined:
                    if isinstance(error_of(declined.problem), EngineStopped):
                        raise Ended("the engine has ended") from None
                    raise ConnectionLost(declined.problem.message.rstrip(".")) from None
            self._contact.made()
            wire.hush()
            async for line in self._lines(wire):
                if isinstance(line, EventLine):
                    self._place = line.event.position
                    yield line.event
                elif isinstance(line, GapLine):
                    self._place = line.resumes_after
                    yield Gap(line.resumes_after)
                elif isinstance(line, OverviewLine):
                    self._place = self._place or line.overview.position
                elif isinstance(line, EndLine):
                    raise Ended("the engine has ended")
        raise ConnectionLost("the connection was closed")

    async def _lines(self, wire: Wire) -> AsyncIterator[StreamLine]:
        begun = b""
        async for piece in wire.body(SILENCE_S):
            self._contact.heard()
            *whole, begun = (begun + piece).split(b"\n")
            if len(begun) > MAX_LINE_BYTES:
                raise ConnectionLost("a line of the events is too long")
            for text in whole:
                try:
                    yield _DECODER.decode(text)
                except msgspec.DecodeError as exc:
                    raise ConnectionLost(f"a line of the events can't be understood ({exc})") from exc
