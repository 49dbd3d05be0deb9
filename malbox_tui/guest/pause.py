"""Waiting between two looks at a guest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

_FIRST_S = 0.004
_GROWTH = 1.3


async def pause(seconds: float) -> None:
    """Wait on the loop's clock."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    alarm = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        alarm.cancel()


def patience(longest_s: float) -> Iterator[float]:
    """Pauses for one who waits: a few milliseconds at first, since most of what a guest does is done soon, then up to `longest_s`."""
    seconds = _FIRST_S
    while True:
        yield min(seconds, longest_s)
        seconds = min(seconds * _GROWTH, longest_s)
