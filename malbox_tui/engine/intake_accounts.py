"""Keeps the account of each intake: whatever is offered gets a line, which is kept with the task that it becomes, or by itself.

What one sender hands in in parts is one intake: parts of the same key, or, where a program gives none, those that come without a pause.
A store that takes no line keeps nobody from handing in: that is said in the log file.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable
from uuid import uuid4

from malbox_tui.engine import clock
from malbox_tui.model.errors import StoreError
from malbox_tui.model.intake import Fate, IntakeEntry, IntakeHead, IntakeLine
from malbox_tui.model.submission import Offer, OpenedArchive, Refusal, SubmissionOptions
from malbox_tui.ports import Clock, IntakeBook

log = logging.getLogger(__name__)

PAUSE_S = 10.0
"""Uploads of one program without a key belong together until none has come for so long."""
REMEMBERED = 256
"""So many intakes may be handed in at once in parts; of one more than that, the parts that still come are another intake."""
AHEAD = 64
"""So many lines of refusals are on their way to the store at most."""


class IntakeAccounts:
    """The accounts of one engine. `owner` is who hands in where nobody is named; without a `book` nothing is kept."""

    def __init__(self, book: IntakeBook | None, wall: Clock, owner: str) -> None:
        self._book = book
        self._wall = wall
        self._owner = owner
        self._open: OrderedDict[tuple[str, str], tuple[IntakeHead, float]] = OrderedDict()
        """By who hands in and the key (or from where, without one): the intake, and when its latest part came."""

    def account(self, options: SubmissionOptions) -> IntakeAccount:
        """The account that a submission writes to."""
        return IntakeAccount(self._head(options), self._book, self._wall)

    def _head(self, options: SubmissionOptions) -> IntakeHead:
        label, now = options.intake, clock.monotonic()
        is_in_parts = bool(label.key or options.actor)
        place = (options.actor, f"key {label.key}" if label.key else f"from {options.origin}")
        head, latest = self._open.pop(place, (None, 0.0)) if is_in_parts else (None, 0.0)
        if head is None or (not label.key and now - latest > PAUSE_S):
            head = IntakeHead(
                key=uuid4().hex,
                began_at=self._wall.now(),
                actor=options.actor or self._owner,
                origin=options.origin,
                way=label.way,
                title=label.title,
            )
        if is_in_parts:
            self._open[place] = head, now
            if len(self._open) > REMEMBERED:
                self._open.popitem(last=False)
        return head


class IntakeAccount:
    """One submission's part of an account."""

    def __init__(self, head: IntakeHead, book: IntakeBook | None, wall: Clock) -> None:
        self.head = head
        self._book = book
        self._wall = wall
        self._under_way: list[Awaitable[None]] = []

    async def refused(self, offer: Offer, refusal: Refusal) -> None:
        """Enter that this was not taken."""
        await self._enter(
            IntakeLine(fate=Fate.REFUSED, name=offer.name, at=self._wall.now(), code=refusal.code, reason=refusal.reason)
        )

    async def opened(self, offer: Offer, archive: OpenedArchive) -> None:
        """Enter that this is an archive whose members came in."""
        await self._enter(
            IntakeLine(
                fate=Fate.OPENED,
                name=offer.name,
                at=self._wall.now(),
                sha256=archive.sha256,
                size_bytes=archive.size_bytes if archive.sha256 else None,
                reason=archive.words,
            )
        )

    async def settle(self) -> None:
        """Returns when all lines are kept, or could not be."""
        under_way, self._under_way = self._under_way, []
        for answer in under_way:
            try:
                await answer
            except StoreError as error:
                log.warning("a line of what %s handed in could not be kept: %s", self.head.actor, error)

    async def _enter(self, line: IntakeLine) -> None:
        if self._book is None:
            return
        self._under_way.append(self._book.enter(IntakeEntry(self.head, line)))
        if len(self._under_way) >= AHEAD:
            await self.settle()
