"""The way to a hypervisor that outlives its connections: opened when it is needed, opened again when it is lost.

1. At most one connection is being opened at a time, whoever waits for it and whoever leaves.
2. Who can't be reached is tried again after `BACK_OFF_S`, twice as long each time; who asks before that is refused with what was
   wrong the last time. After the loss of a connection that worked, calls wait up to `PATIENCE_S` for the next one instead.
3. A call whose connection was lost under it is made again if it may be, and else refused as lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from malbox_tui.machinery.crew import Crew
from malbox_tui.machinery.line import Kind, Line, open_line
from malbox_tui.machinery.refusals import Refusal, Unreachable

T = TypeVar("T")

BACK_OFF_S, MAX_BACK_OFF_S = 0.25, 30.0
PATIENCE_S = 20.0
MAX_TRIES = 3
"""A call that ends the daemon each time is not made for ever."""
IDLE_S = 120.0
"""A link that may close by itself does so when it was not used for so long."""


class Link:
    """A connection to `uri` at any time. `on_change` is told on the loop of each connection that was opened or lost."""

    def __init__(
        self,
        uri: str,
        crew: Crew,
        *,
        on_lifecycle: Callable[[str, int, int], None] | None = None,
        on_change: Callable[[], None] = lambda: None,
        closes_by_itself: bool = False,
    ) -> None:
        self.uri = uri
        self._crew = crew
        self._loop = asyncio.get_running_loop()
        self._on_lifecycle = on_lifecycle
        self._on_change = on_change
        self._idle_s = IDLE_S if closes_by_itself else None
        self._idle: asyncio.TimerHandle | None = None
        self._under_way = 0
        self._line: Line | None = None
        self._opening: asyncio.Future[Line] | None = None
        self._failure: Unreachable | None = None
        self._back_off_s = BACK_OFF_S
        self._try_at = 0.0
        self._patient_until = 0.0
        self._closed = False

    @property
    def was_lost_lately(self) -> bool:
        """A connection of it was lost no longer than `PATIENCE_S` ago."""
        return self._loop.time() < self._patient_until

    async def run(self, work: Callable[[Any], T], kind: Kind = Kind.LOOK, *, again: bool = True) -> T:
        """Make a call with a connection; `again`: it may be made twice. Raises `Refusal`, `Unreachable`, and what `work` raises."""
        self._under_way += 1
        tries_left = MAX_TRIES if again else 1
        try:
            while True:
                line = await self._open_line()
                try:
                    return await line.run(kind, work)
                except Refusal as refusal:
                    if not refusal.lost:
                        raise
                    self._lose(line)
                    tries_left -= 1
                    if not tries_left:
                        raise
        finally:
            self._under_way -= 1
            self._wait_for_use()

    def close(self) -> None:
        """Let go of the connection, in the background; calls from now on are refused."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._line is not None:
            self._line.close()
            self._line = None

    # --- private -----------------------------------------------------------------------------------------------------------------

    async def _open_line(self) -> Line:
        while True:
            if self._closed:
                raise Unreachable(f"{self.uri} is asked nothing any more: malbox-tui lets go of it.")
            if self._line is not None:
                return self._line
            if (wait_s := self._try_at - self._loop.time()) > 0 and self._opening is None:
                if self._failure is not None and not self.was_lost_lately:
                    raise Unreachable(str(self._failure))
                await pause(wait_s)
                continue
            try:
                await asyncio.shield(self._opened())
            except Unreachable as failure:
                if not self.was_lost_lately:
                    raise Unreachable(str(failure)) from None

    def _opened(self) -> asyncio.Future[Line]:
        if self._opening is None:
            self._opening = self._crew.start(
                partial(open_line, self.uri, self._crew, self._on_lifecycle, self._from_thread(self._look_for_dead_line))
            )
            self._opening.add_done_callback(self._take_line)
        return self._opening

    def _take_line(self, opening: asyncio.Future[Line]) -> None:
        self._opening = None
        if opening.cancelled():
            return
        error = opening.exception()
        if error is None:
            self._failure = None
            self._back_off_s = BACK_OFF_S
            if self._closed:
                opening.result().close()
                return
            self._line = opening.result()
            self._on_change()
            return
        self._failure = error if isinstance(error, Unreachable) else Unreachable(f"{self.uri} can't be reached: {error}")
        self._try_at = self._loop.time() + self._back_off_s
        self._back_off_s = min(2 * self._back_off_s, MAX_BACK_OFF_S)

    def _lose(self, line: Line) -> None:
        line.close()
        if self._line is line:
            self._line = None
            self._patient_until = self._loop.time() + PATIENCE_S
            self._on_change()

    def _look_for_dead_line(self) -> None:
        if self._line is not None and self._line.is_dead:
            self._lose(self._line)

    def _from_thread(self, call: Callable[[], None]) -> Callable[[], None]:
        def hand_over() -> None:
            try:
                self._loop.call_soon_threadsafe(call)
            except RuntimeError:
                # The loop was closed: nobody wants to know.
                return

        return hand_over

    def _wait_for_use(self) -> None:
        if self._idle_s is None or self._closed:
            return
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._loop.call_later(self._idle_s, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._under_way == 0 and self._line is not None:
            self._line.close()
            self._line = None


async def pause(seconds: float) -> None:
    """Returns after a while."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()
