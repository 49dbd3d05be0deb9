"""Removing samples and results: first the store forgets them, then their files go. What is interrupted between is finished later.

1. The store notes what it forgot in the same commit; that note is open until the files are gone, over any end of the process.
2. A content is not removed while it is in hand: stored by a submission whose task is not made yet. Whether it is, is asked when no
   other store of it can end; one that was in hand before that has its task in the store by then, or still is.
3. Ids of tasks are never given twice, so the results of a task that is gone can be removed at any time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence

from malbox_tui.model.errors import StoreError
from malbox_tui.model.upkeep import Cause, Freed
from malbox_tui.ports import Clock, Quarantine, Removal, ResultStore, UpkeepBook

log = logging.getLogger(__name__)


class Hands:
    """The contents that submissions have stored and made no task of yet."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    def take(self, sha256: str) -> None:
        """One more holds it. To be called in the step in which its store returns."""
        self._held[sha256] += 1

    def let_go(self, sha256: str) -> None:
        """One who held it has its task, or gave it up."""
        self._held[sha256] -= 1
        if self._held[sha256] <= 0:
            del self._held[sha256]

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._held


class Remover:
    """Removes, one thing at a time, and counts what it removed."""

    def __init__(self, book: UpkeepBook, quarantine: Quarantine, results: ResultStore, hands: Hands, wall: Clock) -> None:
        self._book = book
        self._quarantine = quarantine
        self._results = results
        self._hands = hands
        self._wall = wall
        self._alone = asyncio.Lock()
        self._samples: Counter[Cause] = Counter()
        self._of_tasks: Counter[Cause] = Counter()
        self._size_bytes = 0

    @property
    def freed(self) -> Freed:
        """What was removed since the start."""
        return Freed(samples=dict(self._samples), results=dict(self._of_tasks), size_bytes=self._size_bytes)

    async def remove_sample(self, sha256: str, cause: Cause) -> Removal | None:
        """A sample with all that hangs on it; None: there is none. Raises `SampleInUse`, `StoreError`; once it is forgotten, files that
        can't be removed are left for later."""
        async with self._alone:
            removal = await self._book.remove_sample(sha256, self._wall.now(), cause)
            if removal is not None:
                self._samples[cause] += 1
                await self._finish(removal)
        return removal

    async def remove_results(self, task_ids: Sequence[int], cause: Cause) -> Removal | None:
        """The results of tasks, as far as they have ended; None: there is nothing to remove. Raises as `remove_sample` does."""
        async with self._alone:
            removal = await self._book.remove_results(task_ids, self._wall.now(), cause)
            if removal is not None:
                self._of_tasks[cause] += len(removal.task_ids)
                await self._finish(removal)
        return removal

    async def finish_open(self) -> None:
        """Finish what was interrupted, or could not be finished, before. Raises `StoreError`."""
        async with self._alone:
            for removal in await self._book.open_removals():
                await self._finish(removal)

    async def _finish(self, removal: Removal) -> None:
        try:
            for task_id in removal.task_ids:
                self._size_bytes += await self._results.remove(task_id)
            if removal.sha256 and not await self._remove_content(removal.sha256):
                return
            await self._book.close_removal(removal.number)
        except StoreError as error:
            log.warning("not all of what was removed is gone from the disk; it is tried again: %s", error)

    async def _remove_content(self, sha256: str) -> bool:
        """False when it is in hand, and it has to be seen later whether a task came of that."""
        was_in_hand = False

        async def is_wanted() -> bool:
            nonlocal was_in_hand
            was_in_hand = sha256 in self._hands  # in this order: see the second rule above
            return was_in_hand or await self._book.holds(sha256)

        self._size_bytes += await self._quarantine.remove(sha256, is_wanted)
        return not was_in_hand
