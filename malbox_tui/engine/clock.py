"""Time for the engine: the wall clock, sleeping, and alarms. Nothing else in the product sleeps or sets timers.

Durations follow the event loop's own clock (`loop.time()`), so a simulation that owns the loop owns them too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

RESOLUTION_S = 1e-6
"""What is left of a time below this may be rounding: it is over."""


class SystemClock:
    """The machine's wall time."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()  # noqa: TID251 - the adapter of the Clock port


async def sleep(seconds: float) -> None:
    """Wait on the loop's clock."""
    await asyncio.sleep(seconds)  # noqa: TID251 - the one place


def monotonic() -> float:
    """Seconds on the loop's clock, for durations only."""
    return asyncio.get_running_loop().time()


def within(seconds: float | None) -> asyncio.Timeout:
    """`async with within(3): …` raises TimeoutError when the body takes longer; None sets no limit."""
    return asyncio.timeout(seconds)


def alarm(seconds: float, ring: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `ring` on the loop in `seconds`, unless the returned handle is cancelled before."""
    return asyncio.get_running_loop().call_later(seconds, ring)
