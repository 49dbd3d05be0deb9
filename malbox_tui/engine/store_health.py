"""Whether the store takes writes. While it doesn't, no task is taken, what runs goes on, and what it came to is kept until it can be
written; it resumes by itself, since someone frees the disk or brings the mount back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from malbox_tui.engine import clock
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model import events as news
from malbox_tui.model.errors import StoreError
from malbox_tui.ports import Clock, Store

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""How long to wait before a store that failed is tried again."""
MAX_RETRY_S = 15.0
"""The wait doubles, up to this, when the store fails again as soon as it is used: a disk with room for a note, and for nothing else."""
CHECK_EVERY_S = 5.0
"""How often it is looked whether a store that nobody writes to is still there."""
PROVEN_S = 60.0
"""A store that has worked for so long works."""


class StoreHealth:
    """`on_change` is called when the store begins to fail and when it works again; `tell` gets the passing news of it."""

    def __init__(
        self,
        store: Store,
        wall: Clock,
        tracker: TaskTracker,
        tell: Callable[[news.EventBody], None],
        on_change: Callable[[], None],
    ) -> None:
        self._store = store
        self._wall = wall
        self._tracker = tracker
        self._tell = tell
        self._on_change = on_change
        self._problem: str | None = None
        self._works: asyncio.Future[None] | None = None
        self._worked_at: float | None = None
        self._retry_s = RETRY_S
        self._ended = False

    @property
    def problem(self) -> str | None:
        """What is wrong, for a person; None while the store works."""
        return self._problem

    def failed(self, error: StoreError) -> None:
        """A write failed: from now on the store is tried until it works. Nothing happens at the end: the store is being closed."""
        if self._ended:
            return
        news_to_tell = str(error) != self._problem
        was_well, self._problem = self._problem is None, str(error)
        if news_to_tell:
            log.warning("the store takes nothing: %s", error)
            self._tell(news.StoreFailing(problem=self._problem))
        if was_well:
            relapsed = self._worked_at is not None and clock.monotonic() - self._worked_at < PROVEN_S
            self._retry_s = min(2 * self._retry_s, MAX_RETRY_S) if relapsed else RETRY_S
            self._works = asyncio.get_running_loop().create_future()
            self._tracker.spawn(self._try_until_it_works(), name="store trial")
            self._on_change()

    async def watch(self) -> None:
        """Look after the store for ever, also while nothing is written; ends by cancellation."""
        while True:
            await clock.sleep(CHECK_EVERY_S)
            if self._problem is None:
                try:
                    await self._store.check()
                except StoreError as error:
                    self.failed(error)

    def let_be(self) -> None:
        """Begin no trial any more: the engine ends."""
        self._ended = True

    async def insist(self, write: Callable[[], Awaitable[object]], what: str, waits_out: type[StoreError] = StoreError) -> None:
        """Do `write`, again and again while it fails: what an attempt came to is not to be lost. `what` names it in the log.

        Raises what is no `waits_out`, and at the end of the engine what the store raises.
        """
        while True:
            try:
                await write()
                return
            except waits_out as error:
                if self._ended:
                    raise
                log.warning("%s could not be stored: %s; trying again as soon as that works", what, error)
                self.failed(error)
            await self.until_it_works()

    async def until_it_works(self) -> None:
        """Returns at once while the store works."""
        if self._works is not None:
            await asyncio.shield(self._works)

    async def _try_until_it_works(self) -> None:
        while True:
            await clock.sleep(self._retry_s)
            try:
                await self._store.note(self._wall.now(), news.StoreWorks())
            except StoreError as error:
                self.failed(error)
            else:
                break
        self._problem = None
        self._worked_at = clock.monotonic()
        if self._works is not None:
            self._works.set_result(None)
        self._works = None
        self._on_change()
