"""Counts the calls under way of a simulated disk, so that closing it lets them end and refuses later ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from malbox_tui.model.errors import StoreError
from malbox_tui.simulated.world import World


class OpenCalls:
    """The calls of one adapter of `world`; `place` names it in the refusal."""

    def __init__(self, world: World, place: str) -> None:
        self._world = world
        self._era = world.era
        self._place = place
        self._under_way = 0
        self._none_under_way = asyncio.Event()
        self._none_under_way.set()
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[None]:
        """A call, from its begin to its end. Raises `StoreError` after `close` was called, CancelledError in a dead era."""
        self.check()
        self._under_way += 1
        self._none_under_way.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._none_under_way.set()

    def check(self) -> None:
        """As `one`, for a call that takes no time."""
        self._world.check_era(self._era)
        if self._closed:
            raise StoreError(f"{self._place} is closed.")

    async def close(self) -> None:
        """Refuse further calls and wait for those under way."""
        self._world.check_era(self._era)
        self._closed = True
        await self._none_under_way.wait()
