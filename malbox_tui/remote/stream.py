"""One reader's stream: the overview first, then what happens after that place, one JSON object a line, until one side ends.

A reader that is too slow for the relay's shelf is told of the gap and begins anew with an overview. Presence is the stream itself: a
console is here while it follows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing
from typing import cast

from starlette.types import Send

from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.model.overview import ConsoleView, Overview
from malbox_tui.ports import Client
from malbox_tui.remote.link import Link
from malbox_tui.remote.presence import Presence
from malbox_tui.remote.protocol import BEAT_S, BeatLine, EndLine, GapLine, OverviewLine
from malbox_tui.remote.relay import Line, Relay, Waiting, event_line, line_text

_BATCH_LINES = 256
_BATCH_BYTES = 64 * 1024


class Stream:
    """What one reader gets. `send` is given whole lines; it waits while the reader takes none."""

    def __init__(self, client: Client, relay: Relay, presence: Presence, link: Link, send: Send) -> None:
        self._client = client
        self._relay = relay
        self._presence = presence
        self._link = link
        self._send = send
        self._known = Position("", 0, 0)
        """The reader knows everything up to here."""

    async def run(
        self, overview: Overview, after: Position | None, console: tuple[str, ConsoleView] | None, beat_s: float | None
    ) -> None:
        """Tell until the engine ends, the connection is lost, or, with `beat_s` None, everything up to `overview` was told."""
        with ExitStack() as here, Waiting(self._relay, self._link.lost) as news:
            if console is not None:
                here.enter_context(self._presence.following(*console))
            try:
                await self._tell_overview(overview)
                if after is not None:
                    await self._catch_up(after, overview.position)
                await self._follow(news, overview.position, beat_s)
            except EngineStopped:
                await self._say(line_text(EndLine()))

    async def _follow(self, news: Waiting, present: Position, beat_s: float | None) -> None:
        number = self._relay.number_after(self._known)
        while not self._link.lost.done():
            ended = self._relay.ended
            lines = self._relay.lines(number, _BATCH_LINES)
            if lines is None or (lines and lines[0].is_gap):
                await self._tell_gap(lines[0].position if lines else self._relay.floor or self._known)
                number = self._relay.number_after(self._known)
            elif lines:
                number += await self._tell(lines)
            elif beat_s is None and self._known.seq >= present.seq:
                return
            elif ended:
                raise EngineStopped
            elif not await news.wait(BEAT_S if beat_s is None else beat_s):
                await self._say(line_text(BeatLine((await self._client.overview()).clock)))

    async def _catch_up(self, after: Position, present: Position) -> None:
        """Tell what the engine has stored since `after`, until the shelf of the relay goes on from there."""
        if after.engine_id != present.engine_id or after.seq > present.seq:
            await self._tell_gap(present)
            return
        self._known = after
        if self._is_on_shelf(after):
            return
        batch: list[Line] = []
        async with aclosing(self._stored(after)) as stored:
            async for item in stored:
                if isinstance(item, Gap):
                    await self._tell(batch)
                    await self._tell_gap(item.resumes_after)
                    return
                batch.append(event_line(item))
                if len(batch) == _BATCH_LINES:
                    await self._tell(batch)
                    batch.clear()
                if self._is_on_shelf(item.position) or self._link.lost.done():
                    break
        await self._tell(batch)

    def _stored(self, after: Position) -> AsyncGenerator[Event | Gap, None]:
        events: AsyncIterator[Event | Gap] = self._client.events(after)
        return cast(AsyncGenerator[Event | Gap, None], events)

    def _is_on_shelf(self, position: Position) -> bool:
        return self._relay.floor is not None and position.seq >= self._relay.floor.seq

    async def _tell(self, lines: list[Line]) -> int:
        """Tell what the reader doesn't know of these, up to a gap; returns how many are done with."""
        texts: list[bytes] = []
        size = done = 0
        for line in lines:
            if line.is_gap or size > _BATCH_BYTES:
                break
            done += 1
            if line.is_after(self._known):
                texts.append(line.text)
                size += len(line.text)
                self._known = line.position
        if texts:
            await self._say(b"".join(texts))
        return done

    async def _tell_gap(self, resumes_after: Position) -> None:
        await self._say(line_text(GapLine(resumes_after)))
        await self._tell_overview(await self._client.overview())

    async def _tell_overview(self, overview: Overview) -> None:
        self._known = overview.position
        await self._say(line_text(OverviewLine(self._presence.in_overview(overview))))

    async def _say(self, text: bytes) -> None:
        await self._send({"type": "http.response.body", "body": text, "more_body": True})
