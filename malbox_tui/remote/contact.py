"""Whether there is a connection to an engine elsewhere: since when not, why, and when it is tried again.

One who follows the engine's events tells here of each loss and each contact, and waits here between two tries.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from malbox_tui.model.errors import Disconnected
from malbox_tui.ports import Away, Clock


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long is waited before each try: `first_s`, then twice as long each time, at most `most_s`, less up to a quarter by chance, so
    that many consoles don't all come back in the same moment."""

    first_s: float = 0.25
    most_s: float = 8.0

    def wait_s(self, tries: int) -> float:
        """Before the try after `tries` that failed."""
        return min(self.most_s, self.first_s * 2.0 ** min(tries, 16)) * random.uniform(0.75, 1.0)


class Contact:
    """With the engine at `where`, a name for a person."""

    def __init__(self, where: str, clock: Clock, time_of_day: Callable[[float], str], back_off: BackOff) -> None:
        self._where = where
        self._clock = clock
        self._time_of_day = time_of_day
        self._back_off = back_off
        self._since: float | None = None
        self._heard_at: float | None = None
        self._problem = ""
        self._tries = 0
        self._retry_at: float | None = None
        self._hurry = asyncio.Event()
        self._was_there = False
        self._waiting: set[asyncio.Timeout] = set()
        self.count = 0
        """How often a connection was made that lasts."""

    @property
    def away(self) -> Away | None:
        """None while there is a connection, and before it was found out that there is none."""
        if self._since is None:
            return None
        left_s = None if self._retry_at is None else max(0.0, self._retry_at - time.monotonic())
        return Away(self._since, self._problem, left_s)

    def made(self) -> None:
        """There is a connection that lasts."""
        self.count += 1
        self.answered()
        self.heard()

    def heard(self) -> None:
        """Something came over the connection that lasts."""
        self._heard_at = self._clock.now()

    def answered(self) -> None:
        """There is somebody."""
        self._was_there = True
        self._since, self._tries, self._retry_at = None, 0, None

    def lost(self, problem: str, *, gives_up: bool = True, was_silent: bool = False) -> None:
        """There is none, or it could not be made again. What is `needed` is given up, unless that makes it itself.

        One that `was_silent` is lost since something came last: so old is what is known, also when this process itself stood still.
        """
        if self._since is None:
            heard_at = self._heard_at if was_silent else None
            self._since = self._clock.now() if heard_at is None else heard_at
        self._problem = problem
        for patience in self._waiting if gives_up else ():
            patience.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def needed(self) -> AsyncIterator[None]:
        """What is waited for while entered is given up when the connection is lost. Raises `Disconnected` then."""
        try:
            async with asyncio.timeout(None) as patience:
                self._waiting.add(patience)
                try:
                    yield
                finally:
                    self._waiting.discard(patience)
        except TimeoutError:
            raise self.error() from None

    def error(self, problem: str = "") -> Disconnected:
        """What a call raises that could not be made."""
        since = "" if self._since is None or not self._was_there else self._time_of_day(self._since)
        return Disconnected(self._where, problem or self._problem, since)

    async def wait_to_retry(self) -> None:
        """Returns when it is time for another try, or when `hurry` was called."""
        wait_s = self._back_off.wait_s(self._tries)
        self._tries += 1
        self._retry_at = time.monotonic() + wait_s
        self._hurry.clear()
        try:
            async with asyncio.timeout(wait_s):
                await self._hurry.wait()
        except TimeoutError:
            pass
        finally:
            self._retry_at = None

    def hurry(self) -> None:
        """Wait no longer."""
        self._hurry.set()
