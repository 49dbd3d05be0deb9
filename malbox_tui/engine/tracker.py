"""The owner of every asyncio task that may fail without touching the others: attempts, workers, a store's writer.

A `TaskGroup` ends all its tasks when one fails; this doesn't. A cancellation token *signals*, a tracker *waits*. It is the only
place that calls `create_task`, so no task is ever collected half-way or fails unseen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TaskTracker:
    """Holds tasks until they have ended. An error that nobody awaits is reported by the loop's exception handler."""

    def __init__(self) -> None:
        self._handles: set[asyncio.Task[Any]] = set()

    def __repr__(self) -> str:
        return f"<TaskTracker {len(self._handles)} running: {', '.join(sorted(h.get_name() for h in self._handles)[:8])}>"

    def __len__(self) -> int:
        return len(self._handles)

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Start `work` now; the tracker owns it until it has ended, the caller may await it too."""
        handle = asyncio.get_running_loop().create_task(work, name=name)
        self._handles.add(handle)
        handle.add_done_callback(self._handles.discard)
        return handle

    async def wait(self, timeout_s: float | None = None) -> list[str]:
        """Wait until nothing runs, at most `timeout_s` seconds; returns the names of what still does."""
        own = asyncio.current_task()
        handles = {handle for handle in self._handles if handle is not own}
        if handles:
            await asyncio.wait(handles, timeout=timeout_s)
        return sorted(handle.get_name() for handle in self._handles if handle is not own)

    def cancel(self) -> None:
        """Cut everything that still runs."""
        for handle in self._handles:
            handle.cancel()


def was_cancelled() -> bool:
    """Whether somebody cancelled the current task. A CancelledError may come without that: of an adapter whose own task was cut."""
    own = asyncio.current_task()
    return own is not None and own.cancelling() > 0
