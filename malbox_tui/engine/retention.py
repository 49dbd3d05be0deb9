"""Removes what was kept for long enough, or is too much: samples and results, the oldest first, in steps that leave room for others.

Nothing with a task that waits or runs is touched: the store refuses it in the same step in which it would forget it. Each step is one
sample, or the results of some tasks; a stop between two leaves nothing half done.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from malbox_tui.config.retention import DAY_S, MIB, RetentionSettings
from malbox_tui.engine import clock
from malbox_tui.engine.removal import Remover
from malbox_tui.model.errors import SampleInUse, StoreError
from malbox_tui.model.upkeep import Cause, StoreFigures
from malbox_tui.ports import Aged, Clock, Stockroom, UpkeepBook

log = logging.getLogger(__name__)

SWEEP_S = 900.0
"""How often it is looked for what has to go."""
STEP = 200
"""So many are looked up at a time."""
REST_S = 0.05
"""After each step others have the disk for so long."""


@dataclass(slots=True)
class Swept:
    """What one sweep removed."""

    samples: int = 0
    results: int = 0


class Retention:
    """Sweeps one engine's store. `tell` is told what a sweep removed, if anything: samples, tasks whose results alone went, bytes."""

    def __init__(
        self,
        book: UpkeepBook,
        stockroom: Stockroom,
        remover: Remover,
        wall: Clock,
        settings: RetentionSettings,
        tell: Callable[[int, int, int], None],
    ) -> None:
        self._book = book
        self._stockroom = stockroom
        self._remover = remover
        self._wall = wall
        self._settings = settings
        self._tell = tell
        self.figures: StoreFigures | None = None
        """What there was after the latest sweep."""

    def reload(self, settings: RetentionSettings) -> None:
        """From the next sweep on these hold."""
        self._settings = settings

    async def run(self) -> None:
        """Sweep now and then, until cancelled. A store that fails is swept the next time."""
        while True:
            try:
                await self.sweep()
            except StoreError as error:
                log.warning("what is kept for too long could not be removed; it is tried again later: %s", error)
            await clock.sleep(SWEEP_S)

    async def sweep(self) -> None:
        """Remove what has to go now. Raises `StoreError`; what was removed until then is told. Cancelled: likewise."""
        before, swept, settings = self._remover.freed.size_bytes, Swept(), self._settings
        try:
            await self._remover.finish_open()
            if settings.sample_days:
                await self._samples_by_age(self._wall.now() - settings.sample_days * DAY_S, swept)
            if settings.result_days:
                await self._results_by_age(self._wall.now() - settings.result_days * DAY_S, swept)
            self.figures = await self._stockroom.figures(self._wall.now())
            if settings.samples_mb:
                await self._samples_by_size(self.figures.kept_bytes - settings.samples_mb * MIB, swept)
            if settings.results_mb:
                await self._results_by_size(self.figures.result_bytes - settings.results_mb * MIB, swept)
        finally:
            if swept.samples or swept.results:
                self._tell(swept.samples, swept.results, self._remover.freed.size_bytes - before)
        if swept.samples or swept.results:
            self.figures = await self._stockroom.figures(self._wall.now())

    async def _samples_by_age(self, before: float, swept: Swept) -> None:
        async def remove(aged: Aged) -> bool:
            return await self._remove_sample(aged, Cause.AGE, swept)

        await self._each(lambda: self._book.oldest_samples(before, STEP), remove)

    async def _samples_by_size(self, surplus_bytes: int, swept: Swept) -> None:
        async def remove(aged: Aged) -> bool:
            nonlocal surplus_bytes
            if surplus_bytes <= 0:
                return False
            size_bytes = await self._stockroom.kept_bytes(aged.sha256)
            is_gone = await self._remove_sample(aged, Cause.SIZE, swept)
            surplus_bytes -= size_bytes if is_gone else 0
            return is_gone

        await self._each(lambda: self._book.oldest_samples(math.inf, STEP), remove)

    async def _results_by_age(self, before: float, swept: Swept) -> None:
        while aged := await self._book.oldest_results(before, STEP):
            removal = await self._remover.remove_results([found.task_id for found in aged], Cause.AGE)
            if removal is None:
                return
            swept.results += len(removal.task_ids)
            await clock.sleep(REST_S)

    async def _results_by_size(self, surplus_bytes: int, swept: Swept) -> None:
        async def remove(aged: Aged) -> bool:
            nonlocal surplus_bytes
            if surplus_bytes <= 0:
                return False
            size_bytes = await self._stockroom.result_bytes(aged.task_id)
            removal = await self._remover.remove_results((aged.task_id,), Cause.SIZE)
            if removal is None:
                return False
            surplus_bytes -= size_bytes
            swept.results += 1
            return True

        await self._each(lambda: self._book.oldest_results(math.inf, STEP), remove)

    async def _remove_sample(self, aged: Aged, cause: Cause, swept: Swept) -> bool:
        try:
            removal = await self._remover.remove_sample(aged.sha256, cause)
        except SampleInUse:
            return False  # it was handed in again meanwhile
        if removal is not None:
            swept.samples += 1
        return removal is not None

    async def _each(self, look_up: Callable[[], Awaitable[Sequence[Aged]]], remove: Callable[[Aged], Awaitable[bool]]) -> None:
        """Remove what is looked up, and look again, until nothing was removed."""
        while True:
            removed = 0
            for aged in await look_up():
                removed += await remove(aged)
            if not removed:
                return
            await clock.sleep(REST_S)
