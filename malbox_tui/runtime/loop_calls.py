"""Calls from any thread into one event loop, with answers that always come: also when the loop ends first.

`asyncio.run_coroutine_threadsafe` leaves its future open for ever when the loop closes before the coroutine began.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from malbox_tui.engine.tracker import TaskTracker

T = TypeVar("T")


class LoopCalls:
    """Runs coroutines on `loop`. After `close`, and when the loop has closed, every answer is a cancelled future."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tracker = TaskTracker()
        self._open_answers: set[Future[Any]] = set()
        self._closed = False

    def start(self, make: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Begin `make()` on the loop; cancelling the answer cancels it there."""
        answer: Future[T] = Future()
        self._open_answers.add(answer)
        answer.add_done_callback(self._open_answers.discard)
        try:
            self._loop.call_soon_threadsafe(self._begin, make, answer)
        except RuntimeError:
            answer.cancel()
        if self._closed:
            answer.cancel()
        return answer

    def close(self) -> None:
        """Cancel what is not answered; called when the loop runs no more."""
        self._closed = True
        for answer in list(self._open_answers):
            answer.cancel()

    def _begin(self, make: Callable[[], Coroutine[Any, Any, T]], answer: Future[T]) -> None:
        if answer.cancelled():
            return
        handle = self._tracker.spawn(make(), name="call from another loop")
        handle.add_done_callback(lambda done: _answer(answer, done))
        answer.add_done_callback(lambda _: self._cancel(handle))

    def _cancel(self, handle: asyncio.Task[Any]) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(handle.cancel)


def _answer(answer: Future[T], done: asyncio.Task[T]) -> None:
    if done.cancelled():
        answer.cancel()
    elif answer.set_running_or_notify_cancel():
        if (error := done.exception()) is not None:
            answer.set_exception(error)
        else:
            answer.set_result(done.result())
    elif not done.cancelled():
        done.exception()
