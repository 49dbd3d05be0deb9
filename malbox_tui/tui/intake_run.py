"""One intake that this console is at: how far it is, and how it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from malbox_tui.model.errors import RefusedContent
from malbox_tui.model.submission import Accepted, Duplicate, Offer, Receipt, Refused

NAMED = 100
"""So many refusals of one intake are kept here; the account has all."""


class IntakeRun:
    """Counts what comes of the offers that go through it, and lets no more of them through once it is stopped.

    `total` is how many there are; None while that isn't known. What is in an archive is beside that: the archive counts.
    """

    def __init__(self, title: str, total: int | None, monotonic: Callable[[], float]) -> None:
        self.title = title
        self.total = total
        self.is_stopped = False
        self.ended = asyncio.Event()
        self.task_ids: list[int] = []
        """The tasks that were made."""
        self.known = 0
        self.refused: list[Refused] = []
        """The first of those that were not taken; `refusals` is how many there are."""
        self.refusals = 0
        self.left_out = 0
        """How many things were not asked for."""
        self.settled = 0
        """For how many of `total` there is a receipt."""
        self._monotonic = monotonic
        self._began = monotonic()

    @property
    def elapsed_s(self) -> float:
        """Since it began."""
        return self._monotonic() - self._began

    @property
    def per_second(self) -> float:
        """How fast it goes."""
        return self.settled / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """How long it will take yet, if it goes on as it did; None: not known."""
        if self.total is None or self.per_second <= 0:
            return None
        return max(0, self.total - self.settled) / self.per_second

    @property
    def not_taken(self) -> int | None:
        """How many had no receipt, of one that has ended; None: not known."""
        return None if self.total is None else max(0, self.total - self.settled)

    def stop(self) -> None:
        """Read nothing more. What has a receipt stays taken."""
        self.is_stopped = True

    def note(self, receipt: Receipt) -> None:
        """What came of one offer."""
        if isinstance(receipt, Refused) and receipt.is_left_out:
            self.settled += receipt.refusal.things
            self.left_out += receipt.refusal.things
            return
        self.settled += not receipt.name.archive
        if isinstance(receipt, Accepted):
            self.task_ids.append(receipt.task_id)
        elif isinstance(receipt, Duplicate):
            self.known += 1
        elif isinstance(receipt, Refused):
            self.refusals += 1
            if len(self.refused) < NAMED:
                self.refused.append(receipt)

    async def through(self, offers: AsyncIterator[Offer]) -> AsyncIterator[Offer]:
        """The offers, until it is stopped; what is being read then is refused."""
        async for offer in offers:
            if self.is_stopped:
                return
            yield offer if offer.content is None else replace(offer, content=self._read(offer.content))

    async def _read(self, content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in content:
            if self.is_stopped:
                raise RefusedContent("stopped", "Adding was stopped before it was read to its end.")
            yield chunk
