"""Blocking calls in threads of their own, so that no event loop waits on them and nobody waits for threads that hang.

1. Threads are daemons and are never joined: one that hangs keeps neither `close` nor the process.
2. A cancelled call's thread goes on until the call returns; what it returns then is dropped. A call that did not begin never does.
3. A `Lane` lets no more calls than its width be under way, counting those whose callers have left.
4. What is handed back, value or error, is handed over on the caller's loop; a loop that is closed by then is no error.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

IDLE_S = 30.0
"""A thread without work ends after so long."""


class _Job(Generic[T]):
    """One call: `back` is told on the loop when its thread has returned."""

    def __init__(self, work: Callable[[], T], back: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self.work = work
        self._back = back

    def run(self) -> None:
        """In a thread."""
        value: T | None = None
        error: BaseException | None = None
        try:
            value = self.work()
        except BaseException as caught:  # noqa: BLE001 - whatever it is, it is the caller's
            error = caught
        try:
            self.loop.call_soon_threadsafe(self._deliver, value, error)
        except RuntimeError:
            # The loop was closed: nobody waits for the call any more.
            return

    def _deliver(self, value: Any, error: BaseException | None) -> None:
        self._back()
        if self.future.done():
            return
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class Crew:
    """As many threads as there are calls under way; idle ones are used again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._jobs: deque[_Job[Any]] = deque()
        self._idle = 0
        self._hired = 0

    def start(self, work: Callable[[], T], back: Callable[[], None] = lambda: None) -> asyncio.Future[T]:
        """Begin a call; `back` is called on the loop when it has returned, whether or not anybody still waits for the future."""
        job = _Job(work, back)
        with self._changed:
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._changed.notify()
                return job.future
            self._hired += 1
            name = f"{self._name}-{self._hired}"
        threading.Thread(target=self._serve, daemon=True, name=name).start()
        return job.future

    async def run(self, work: Callable[[], T]) -> T:
        """Make a call and wait for it."""
        return await self.start(work)

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._jobs:
                    self._idle += 1
                    self._changed.wait(IDLE_S)
                    self._idle -= 1
                if not self._jobs:
                    return
                job = self._jobs.popleft()
            job.run()
            del job


class Lane:
    """At most `width` calls at once, the others in the order in which they came."""

    def __init__(self, crew: Crew, width: int) -> None:
        self._crew = crew
        self._free = width
        self._waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()

    async def run(self, work: Callable[[], T]) -> T:
        """Make a call as soon as there is room for it, and wait for it."""
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, turn))
        self._begin()
        return await turn

    def _begin(self) -> None:
        while self._free and self._waiting:
            work, turn = self._waiting.popleft()
            if turn.done():
                continue
            self._free -= 1
            call = self._crew.start(work, self._end)
            call.add_done_callback(lambda call, turn=turn: _hand_over(call, turn))  # type: ignore[misc]

    def _end(self) -> None:
        self._free += 1
        self._begin()


def _hand_over(call: asyncio.Future[Any], turn: asyncio.Future[Any]) -> None:
    error = None if call.cancelled() else call.exception()
    if turn.done():
        return
    if call.cancelled():
        turn.cancel()
    elif error is not None:
        turn.set_exception(error)
    else:
        turn.set_result(call.result())
