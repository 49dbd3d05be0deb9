"""The engine's events, taken once and kept as lines for any number of readers.

1. There is one subscription, whatever the number of readers; each event is encoded once.
2. The latest lines are kept in one bounded shelf. A reader is a number: the place of the line that it reads next. So a slow one costs
   nothing, and one that fell off the shelf's end finds a gap.
3. From `floor` on, the shelf holds every event; what is older is read from the engine.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import cast

import msgspec

from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.ports import Client
from malbox_tui.remote.protocol import EventLine, StreamLine

FEW_READERS = 4
PAUSE_S = 0.0001
MOST_PAUSE_S = 0.01
"""More readers than a few are told of news together, so that each is sent more lines at once, and fewer times: with 48 of them and 500
events a second this took 27 % of a processor here instead of 35 %, and the slowest line came in 33 ms instead of 121."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line for readers. `follows` is true of news that is told twice without harm: passing ones, and the engine's own gaps."""

    position: Position
    text: bytes
    is_gap: bool = False
    is_passing: bool = False

    def is_after(self, position: Position) -> bool:
        """Whether one who knows everything up to `position` has yet to read it."""
        return self.position.seq > position.seq or (self.is_passing and self.position.seq == position.seq)


def line_text(line: StreamLine) -> bytes:
    """A line as it goes out."""
    return msgspec.json.encode(line) + b"\n"


def event_line(event: Event) -> Line:
    """An event, encoded."""
    return Line(event.position, line_text(EventLine(event)), is_passing=not event.durable)


class Relay:
    """Follows `client` while `run` runs; readers ask for lines by their number."""

    def __init__(self, client: Client, most_lines: int, most_bytes: int) -> None:
        self._client = client
        self._most_lines = most_lines
        self._most_bytes = most_bytes
        self._lines: deque[Line] = deque()
        self._bytes = 0
        self._first = 0
        self._wakes: set[Callable[[], None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self.floor: Position | None = None
        """Everything after it is on the shelf; None before there is anything to follow."""
        self.ended = False
        """The engine has: nothing will be added."""

    @property
    def readers(self) -> int:
        """How many follow."""
        return len(self._wakes)

    @property
    def next_number(self) -> int:
        """The number that the next line will have."""
        return self._first + len(self._lines)

    async def begin(self) -> Position:
        """Find out where the engine is; to be called before `run`. Raises `EngineStopped`."""
        self.floor = (await self._client.overview()).position
        return self.floor

    async def run(self) -> None:
        """Follow until the engine ends."""
        try:
            async with aclosing(cast(AsyncGenerator[Event | Gap, None], self._client.events(self.floor))) as events:
                async for item in events:
                    self._put(Line(item.resumes_after, b"", is_gap=True) if isinstance(item, Gap) else event_line(item))
        finally:
            self.ended = True
            if self._alarm is not None:
                self._alarm.cancel()
            self._wake_all()

    def number_after(self, position: Position) -> int:
        """The number of the first line that one who knows everything up to `position` has yet to read."""
        number = self.next_number
        for line in reversed(self._lines):
            if not line.is_after(position):
                break
            number -= 1
        return number

    def lines(self, number: int, most: int) -> list[Line] | None:
        """At most `most` lines from that number on, none when there is none yet; None when that line is not kept any more."""
        if number < self._first:
            return None
        start = number - self._first
        if start < len(self._lines) // 2:
            return list(islice(self._lines, start, start + most))
        from_end = list(islice(reversed(self._lines), len(self._lines) - start))
        from_end.reverse()
        return from_end[:most]

    def on_news(self, wake: Callable[[], None]) -> None:
        """Call `wake` after each addition, and at the end."""
        self._wakes.add(wake)

    def forget(self, wake: Callable[[], None]) -> None:
        """Call it no more."""
        self._wakes.discard(wake)

    def _put(self, line: Line) -> None:
        self._lines.append(line)
        self._bytes += len(line.text)
        while len(self._lines) > self._most_lines or (self._bytes > self._most_bytes and len(self._lines) > 1):
            dropped = self._lines.popleft()
            self._bytes -= len(dropped.text)
            self._first += 1
            self.floor = dropped.position
        if len(self._wakes) <= FEW_READERS:
            self._wake_all()
        elif self._alarm is None:
            pause_s = min(MOST_PAUSE_S, len(self._wakes) * PAUSE_S)
            self._alarm = asyncio.get_running_loop().call_later(pause_s, self._wake_all)

    def _wake_all(self) -> None:
        self._alarm = None
        for wake in self._wakes:
            wake()


class Waiting:
    """Wakes one reader: at news, and when its connection is lost."""

    def __init__(self, relay: Relay, lost: asyncio.Future[None]) -> None:
        self._relay = relay
        self._lost = lost
        self._event = asyncio.Event()

    def __enter__(self) -> Waiting:
        self._relay.on_news(self._event.set)
        self._lost.add_done_callback(self._on_lost)
        return self

    def __exit__(self, *_: object) -> None:
        self._relay.forget(self._event.set)
        self._lost.remove_done_callback(self._on_lost)

    async def wait(self, seconds: float) -> bool:
        """True at news since the latest call or the loss of the connection, at once if there was any; False when the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def _on_lost(self, _: asyncio.Future[None]) -> None:
        self._event.set()
