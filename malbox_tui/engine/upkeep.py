"""The upkeep of a store as operators meet it: removing a sample, giving one out, and figures. Not every engine has it."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from malbox_tui.config.retention import RetentionSettings
from malbox_tui.engine.action_log import ActionLog
from malbox_tui.engine.removal import Remover
from malbox_tui.engine.retention import Retention
from malbox_tui.model.actions import SampleTaken
from malbox_tui.model.commands import CommandOutcome, PurgeSample, TargetResult
from malbox_tui.model.errors import MalboxError, RefusedCommand, SampleMissing, StoreError
from malbox_tui.model.queries import MAX_ROWS
from malbox_tui.model.sample import visible
from malbox_tui.model.upkeep import Cause, Freed, SampleForm, StoreFigures
from malbox_tui.ports import Clock, Stockroom, UpkeepBook

log = logging.getLogger(__name__)

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Upkeep:
    """What one engine does for its store."""

    def __init__(
        self, book: UpkeepBook, stockroom: Stockroom, remover: Remover, log: ActionLog, wall: Clock, settings: RetentionSettings
    ) -> None:
        self._book = book
        self._stockroom = stockroom
        self._remover = remover
        self._log = log
        self._wall = wall
        self._retention = Retention(book, stockroom, remover, wall, settings, log.retained)

    async def finish_open(self) -> None:
        """Finish what the end of the last epoch interrupted. What can't be finished now is tried again later."""
        try:
            await self._remover.finish_open()
        except StoreError as error:
            log.warning("what was removed is not all gone from the disk; it is tried again: %s", error)

    async def run(self) -> None:
        """Remove what is kept for too long, now and then, until cancelled."""
        await self._retention.run()

    def reload(self, settings: RetentionSettings) -> None:
        """From now on these hold."""
        self._retention.reload(settings)

    async def close(self) -> None:
        """Let go of the files."""
        await self._stockroom.close()
        await self._book.close()

    @property
    def freed(self) -> Freed:
        """What was removed since the start."""
        return self._remover.freed

    async def purge(self, action: PurgeSample, _actor: str) -> CommandOutcome:
        """Remove a sample with all that hangs on it. Raises `RefusedCommand`, `StoreError`."""
        if _SHA256.fullmatch(action.sha256) is None:
            raise _no_such(action.sha256)
        removal = await self._remover.remove_sample(action.sha256, Cause.PURGE)
        if removal is None:
            raise _no_such(action.sha256)
        targets = tuple(TargetResult(task_id, True, f"Task {task_id} is gone.") for task_id in removal.task_ids[:MAX_ROWS])
        count = len(removal.task_ids)
        tasks = f"its {count} tasks" if count > 1 else "its task"
        return CommandOutcome(
            done=True, message=f"Sample {action.sha256[:12]} is gone, with {tasks} and all results.", targets=targets
        )

    async def content(self, sha256: str, form: SampleForm, actor: str, origin: str) -> AsyncGenerator[bytes, None]:
        """See `Client.content`. That it was given out, or why not, is in the log of actions before the first byte goes."""
        taken = SampleTaken(sha256=sha256[:64], form=form)
        try:
            if _SHA256.fullmatch(sha256) is None or not await self._book.holds(sha256):
                raise SampleMissing(visible(sha256[:64]))
            chunks = cast(AsyncGenerator[bytes, None], self._stockroom.packed(sha256, form))
            async with aclosing(chunks):
                first = await anext(chunks, b"")
                await self._log.entry(taken, actor, origin, done=True, message=f"Sample {sha256[:12]} was given out.")
                yield first
                async for chunk in chunks:
                    yield chunk
        except MalboxError as error:
            await self._log.entry(taken, actor, origin, done=False, message=str(error))
            raise

    async def figures(self) -> StoreFigures:
        """What there is, counted now. Raises `StoreError`."""
        return await self._stockroom.figures(self._wall.now())

    @property
    def latest(self) -> StoreFigures | None:
        """What there was when it was counted last."""
        return self._retention.figures


def _no_such(sha256: str) -> RefusedCommand:
    return RefusedCommand(f"There is no sample {visible(sha256[:64])!r}.")
