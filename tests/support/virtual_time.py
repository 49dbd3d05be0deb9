"""An event loop whose clock is turned: when nothing is ready, time jumps to the next timer. Nothing is ever waited for."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _TurningSelector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: nothing is ready and no timer is set")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`loop.time()` moves only when nothing is ready. Calls that leave the loop's thread are refused."""

    def __init__(self) -> None:
        self._turning = _TurningSelector()
        super().__init__(self._turning)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._turning.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        raise RuntimeError("a call left the loop's thread under virtual time")


class LoopClock:
    """Wall time that follows a virtual loop."""

    def now(self) -> float:
        return 1_700_000_000.0 + asyncio.get_running_loop().time()


def run_virtual(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end on a new virtual loop."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


async def settle_loop(turns: int = 50) -> None:
    """Let everything that is ready run; no time passes."""
    for _ in range(turns):
        await asyncio.sleep(0)  # noqa: TID251 - no time passes
