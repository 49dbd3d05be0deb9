"""Letting go of adapters at the end: all of them, one after the other, in a bounded time, whatever one of them does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from malbox_tui.engine.tracker import TaskTracker

log = logging.getLogger(__name__)

CLOSE_LIMIT_S = 40.0
"""How long each may take."""


async def close_all(tracker: TaskTracker, closes: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Call each of `closes`; one that takes too long is given up. Raises the first error, when all were called."""
    errors: list[BaseException] = []
    for close in closes:
        closing = tracker.spawn(close(), name="closing")
        await asyncio.wait({closing}, timeout=CLOSE_LIMIT_S)
        if not closing.done():
            closing.cancel()
            log.error("%s did not end within %g s", close.__qualname__, CLOSE_LIMIT_S)
        elif not closing.cancelled() and (error := closing.exception()) is not None:
            errors.append(error)
    if errors:
        raise errors[0]
