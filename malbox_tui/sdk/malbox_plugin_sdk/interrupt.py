"""Interrupting a handler from the outside: the wire's reader makes the main thread raise `TaskCanceled` through a signal.

1. It is raised only between `armed` and its end, so only inside a handler.
2. It is never raised while a frame is being written (`held`): a half-written frame would end the conversation.
3. It is a BaseException, so that `except Exception` in a plugin doesn't swallow it. Code in C can't be interrupted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNAL = signal.SIGUSR1


class TaskCanceled(BaseException):
    """The task is to end now. Results that are pushed in `except` and `finally` blocks are kept, as long as the grace period lasts.

    An async handler sees `asyncio.CancelledError` in its place while it awaits something.
    """


class Interrupts:
    """The main thread's switch. Made and armed in the main thread; `ask` may be called in any."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._armed = False
        self._held = 0
        self._wanted: int | None = None
        self._current: int | None = None
        signal.signal(_SIGNAL, self._on_signal)

    def ask(self, run: int) -> None:
        """End this run if it is the one that goes on, or as soon as it begins."""
        self._wanted = run
        if self._main is not None:
            signal.pthread_kill(self._main, _SIGNAL)

    @contextmanager
    def armed(self, run: int) -> Iterator[None]:
        """`TaskCanceled` may be raised inside, if it is asked for this run."""
        self._current = run
        self._armed = True
        try:
            self._check()
            yield
        finally:
            self._armed = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Not in here; what is asked meanwhile is raised at the end. Other threads are never interrupted."""
        if threading.get_ident() != self._main:
            yield
            return
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        self._check()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._check()

    def _check(self) -> None:
        if self._armed and not self._held and self._wanted is not None and self._wanted == self._current:
            self._wanted = None
            self._armed = False
            raise TaskCanceled
