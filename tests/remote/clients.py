"""Clients of engines at odd servers, and how one follows events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from malbox_tui.model.events import Event, Gap
from malbox_tui.model.queries import TaskPage
from malbox_tui.remote.client import RemoteClient

PAGE = TaskPage(rows=(), total=0, offset=0, clock=1.0)
Make = Callable[..., RemoteClient]


class StandingClock:
    """It is always the same time."""

    def now(self) -> float:
        return 1000.0


@asynccontextmanager
async def following(remote: RemoteClient, after: Any = None) -> AsyncIterator[AsyncGenerator[Event | Gap, None]]:
    """What a client tells of events, for a minute at most."""
    events = cast(AsyncGenerator[Event | Gap, None], remote.events(after))
    try:
        async with asyncio.timeout(60):
            yield events
    finally:
        await events.aclose()
