"""An event loop whose clock leaves out the time that its process stood still: stopped by a signal or a debugger, or starved by a host.

What runs beside it (plugins, guests, clients) may have done its part meanwhile, and could not be heard. So no time limit counts it.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

TICK_S = 1.0
"""The loop looks at the clock this often at least, and counts no more of a standstill than this."""
STANDSTILL_S = 3.0
"""More than this between two looks is a standstill: a tick, and then a long step."""


class PatientLoop(asyncio.SelectorEventLoop):
    """`on_standstill` is told, on the loop's thread, how many seconds the loop stood still."""

    def __init__(
        self,
        on_standstill: Callable[[float], None] = lambda _seconds: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._on_standstill = on_standstill
        self._looked_at = monotonic()
        self._stood_s = 0.0
        """How much of the time so far isn't counted."""
        super().__init__(_TickingSelector())

    def time(self) -> float:
        """Seconds on a clock that stands when the loop does."""
        now = self._monotonic()
        gap_s, self._looked_at = now - self._looked_at, now
        if gap_s > STANDSTILL_S:
            self._stood_s += gap_s - TICK_S
            self._on_standstill(gap_s)
        return now - self._stood_s


def run_patiently(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on such a loop."""
    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        return runner.run(main)


def log_standstill(seconds: float) -> None:
    """For the loop that an engine lives on."""
    log.warning("The engine stood still for %.0f s: it was stopped, or its host too busy. No time limit counts that.", seconds)


class _TickingSelector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(TICK_S if timeout is None else min(timeout, TICK_S))
