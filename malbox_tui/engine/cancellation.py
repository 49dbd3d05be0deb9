"""Cancellation tokens: a tree of signals from shutdown over worker and task down to a stage.

1. A token is cancelled at most once; its first reason stays.
2. Cancelling a token cancels all its descendants, before `cancel` returns. It never touches its parent.
3. A child of a cancelled token is born cancelled, with the same reason.
4. A parent holds its children weakly: a stage that ended costs nothing.

A token only *says* that work is to end. Whoever works listens at safe points (`reason`), while waiting (`wait`), or inside
anything awaitable (`interrupts`).
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Any, Self


class CancelReason(StrEnum):
    """Why work is to end. What follows from it is decided where the outcome is decided."""

    USER = "user"
    SHUTDOWN = "shutdown"
    TIMEOUT = "timeout"
    LEASE_LOST = "lease_lost"


class Interrupted(Exception):
    """Work inside `CancelToken.interrupts` was cut because the token was cancelled."""

    def __init__(self, reason: CancelReason) -> None:
        self.reason = reason
        super().__init__(f"interrupted: {reason}")


class CancelToken:
    """One node of the tree. Not thread-safe: it belongs to one event loop."""

    __slots__ = ("__weakref__", "_children", "_listeners", "_parent", "_reason", "detail")

    def __init__(self, parent: CancelToken | None = None) -> None:
        self._parent = parent
        """Held strongly, so that a chain of tokens lives as long as its last listener."""
        self._children: weakref.WeakSet[CancelToken] = weakref.WeakSet()
        self._listeners: dict[object, Callable[[CancelReason], None]] = {}
        self._reason: CancelReason | None = None
        self.detail: str = ""
        """Who or what cancelled, for the sentence on the task."""

    def __repr__(self) -> str:
        return f"<CancelToken {self._reason or 'live'}, {len(self._children)} children, {len(self._listeners)} listening>"

    @property
    def reason(self) -> CancelReason | None:
        """Why to end; None while there is no need to."""
        return self._reason

    def child(self) -> CancelToken:
        """A token that is cancelled with this one, and may be cancelled alone."""
        child = CancelToken(self)
        if self._reason is None:
            self._children.add(child)
        else:
            child._reason, child.detail = self._reason, self.detail
        return child

    def cancel(self, reason: CancelReason, detail: str = "") -> bool:
        """Signal this token and all below it. False, and nothing happens, if it was cancelled before."""
        if self._reason is not None:
            return False
        self._reason, self.detail = reason, detail
        listeners, self._listeners = list(self._listeners.values()), {}
        children, self._children = list(self._children), weakref.WeakSet()
        for listen in listeners:
            listen(reason)
        for child in children:
            child.cancel(reason, detail)
        return True

    def listen(self, listener: Callable[[CancelReason], None]) -> Callable[[], None]:
        """Call `listener` when the token is cancelled (at once if it is); returns how to stop listening."""
        if self._reason is not None:
            listener(self._reason)
            return lambda: None
        key = object()
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    async def wait(self) -> CancelReason:
        """Returns the reason as soon as there is one. Cancelled: nothing is left behind."""
        if self._reason is not None:
            return self._reason
        waiter: asyncio.Future[CancelReason] = asyncio.get_running_loop().create_future()
        stop_listening = self.listen(lambda reason: None if waiter.done() else waiter.set_result(reason))
        try:
            return await waiter
        finally:
            stop_listening()

    def interrupts(self) -> _Interruption:
        """`async with token.interrupts(): …` cuts the body at its next await and raises `Interrupted` when the token is cancelled.

        A cancellation of the surrounding asyncio task goes through as what it is.
        """
        return _Interruption(self)


class _Interruption:
    """Like `asyncio.timeout`, with a token in place of the clock."""

    def __init__(self, token: CancelToken) -> None:
        self._token = token
        self._fired = False
        self._cancelling = 0
        self._task: asyncio.Task[Any] | None = None
        self._stop_listening: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        if (reason := self._token.reason) is not None:
            raise Interrupted(reason)
        self._task = asyncio.current_task()
        if self._task is not None:
            self._cancelling = self._task.cancelling()
        self._stop_listening = self._token.listen(self._fire)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop_listening()
        if not self._fired or self._task is None or self._token.reason is None:
            return
        if kind is None:
            # The body ended in the very step that cancelled it: take the pending cancellation out of the task.
            try:
                await asyncio.sleep(0)  # noqa: TID251 - a checkpoint, no time passes
            except asyncio.CancelledError as pending:
                kind, error = asyncio.CancelledError, pending
        if self._task.uncancel() <= self._cancelling and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise Interrupted(self._token.reason) from error

    def _fire(self, _reason: CancelReason) -> None:
        self._fired = True
        if self._task is not None:
            self._task.cancel()
