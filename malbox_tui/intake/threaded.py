"""Blocking iteration, one step at a time in a thread, that can be abandoned at any moment.

A cancelled wait doesn't stop the step that is under way in its thread. What the iteration holds (file descriptors) is closed when
nothing runs in it any more: at once, or by that last step. So a descriptor's number is never reused under a read.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Closable(Protocol[T_co]):
    """An iterator that holds something until it is closed; a generator is one, once it has been started."""

    def __next__(self) -> T_co: ...

    def close(self) -> None: ...


class ThreadedSteps(Generic[T]):
    """An async iterator over a blocking one. It closes that one at its end, at an error, by `close`, or when it is forgotten."""

    def __init__(self, steps: Closable[T]) -> None:
        self._steps = steps
        self._running = threading.Lock()
        self._closed = False

    def __aiter__(self) -> ThreadedSteps[T]:
        return self

    async def __anext__(self) -> T:
        """The next item. Cancelled, the iteration is over: what its last step finds is lost."""
        try:
            found = await asyncio.to_thread(self._step)
        except BaseException:
            self.close()
            raise
        if not found:
            raise StopAsyncIteration
        return found[0]

    async def aclose(self) -> None:
        """As `close`."""
        self.close()

    def close(self) -> None:
        """End the iteration and let go of what it holds. A second call does nothing."""
        self._closed = True
        if self._running.acquire(blocking=False):
            try:
                self._steps.close()
            finally:
                self._running.release()

    def _step(self) -> tuple[T] | None:
        with self._running:
            if self._closed:
                return None
            try:
                return (next(self._steps),)
            except StopIteration:
                self._closed = True
                return None
            except BaseException:
                self._closed = True
                raise
            finally:
                if self._closed:
                    self._steps.close()

    def __del__(self) -> None:
        self.close()
