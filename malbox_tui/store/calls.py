"""Counts the calls under way of something that can be closed, so that closing lets them end and refuses later ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from malbox_tui.model.errors import StoreError


class OpenCalls:
    """The calls of one object; `place` names it in the refusal."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._under_way: set[asyncio.Future[None]] = set()
        self._closing = False

    @contextmanager
    def one(self) -> Iterator[None]:
        """A call, from its begin to its end. Raises `StoreError` after `close` was called."""
        if self._closing:
            raise StoreError(f"{self._place} is closed.")
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way.add(ended)
        try:
            yield
        finally:
            self._under_way.discard(ended)
            ended.set_result(None)

    async def close(self) -> None:
        """Refuse further calls and wait for those under way. Cancelled: they are still refused."""
        self._closing = True
        while self._under_way:
            await asyncio.wait(set(self._under_way))
