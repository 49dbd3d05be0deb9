"""What every engine is given to do, and what is read off it."""

from __future__ import annotations

import asyncio
import resource
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

PRODUCERS = 16
WORKERS = 16
PAUSE_S = 0.005
"""Between two dispatches, so that each finds the pool idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`tasks` that do nothing, from `PRODUCERS` who await each enqueue, for `WORKERS`; then `dispatches` tasks and `cancels` of running
    ones, one at a time."""

    tasks: int
    dispatches: int = 0
    cancels: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a workload. `dispatch_ms`: from the enqueue's call to the task's body being entered. `cancel_ms`: from the cancel's
    call to the body being told. `canceled_ms`: to the final state being stored. Empty where the engine can't do that.
    """

    tasks_per_s: float
    processor_us: float
    """Of the engine's own process, for one task."""
    dispatch_ms: list[float] = field(default_factory=list)
    cancel_ms: list[float] = field(default_factory=list)
    canceled_ms: list[float] = field(default_factory=list)


async def produce(tasks: int, enqueue: Callable[[int], Awaitable[object]]) -> None:
    """`enqueue` the numbers below `tasks`, by several producers who each await one at a time."""
    numbers = iter(range(tasks))

    async def producer() -> None:
        for number in numbers:
            await enqueue(number)

    async with asyncio.TaskGroup() as producers:
        for _ in range(PRODUCERS):
            producers.create_task(producer())


def in_threads(count: int, work: Callable[[int], object]) -> Iterator[threading.Thread]:
    """`work(0)` … `work(count - 1)`, each in a thread that is started already."""
    for number in range(count):
        thread = threading.Thread(target=work, args=(number,), daemon=True)
        thread.start()
        yield thread


def processor_s() -> float:
    """Processor time that this process has used, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
