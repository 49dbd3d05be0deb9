"""All watched folders of an engine, looked after until they are closed: each is looked into when its files are due, when the kernel
hints at a change, and now and then in any case.

What goes wrong in one folder, whatever it is, ends neither the others nor the engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from malbox_tui.intake.watching.hints import FolderHints
from malbox_tui.intake.watching.standing import troubles_of
from malbox_tui.intake.watching.watched_folder import TRY_AGAIN_S, WatchedFolder
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.sample import visible
from malbox_tui.model.watching import WatchView

log = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
"""How often a folder is looked into without a hint, where that is quick."""
SHARE_OF_TIME = 0.05
"""How much of the time looking without a hint may take: a folder of many files is looked into less often."""
LEAST_PAUSE_S = 0.05
"""Between two looks, hints or not; as long as the last one took, where that is longer."""


class FolderWatch:
    """Everything but `views` and `troubles` belongs to one event loop."""

    def __init__(self, folders: Sequence[WatchedFolder]) -> None:
        self._folders = folders
        self._closed = asyncio.Event()
        self._wakes: list[asyncio.Event] = []

    @property
    def views(self) -> tuple[WatchView, ...]:
        """How it is with each folder, in order."""
        return tuple(folder.standing.view for folder in self._folders)

    @property
    def troubles(self) -> tuple[str, ...]:
        """What an operator has to know of them."""
        return troubles_of(self.views)

    async def run(self) -> None:
        """Until `close`, or the engine's end."""
        async with asyncio.TaskGroup() as watching:
            for folder in self._folders:
                watching.create_task(self._watch(folder), name=f"watched folder {visible(folder.settings.path)}")

    def reload(self, max_sample_bytes: int) -> None:
        """From now on samples may be so large."""
        for folder in self._folders:
            folder.max_sample_bytes = max_sample_bytes

    def close(self) -> None:
        """Take nothing more; what is being handed in is handed in to its end."""
        self._closed.set()
        for wake in self._wakes:
            wake.set()

    async def _watch(self, folder: WatchedFolder) -> None:
        wake = asyncio.Event()
        self._wakes.append(wake)
        hinting = _Hinting(folder, wake)
        loop = asyncio.get_running_loop()
        try:
            while not self._closed.is_set():
                wake.clear()
                began = loop.time()
                due_s = await self._look(folder, began)
                if hinting.follow():
                    due_s = 0.0  # Something may have come since.
                took_s = loop.time() - began
                await _until(self._closed, max(LEAST_PAUSE_S, took_s))
                every_s = max(LOOK_EVERY_S, took_s / SHARE_OF_TIME)
                rest_s = (every_s if due_s is None else min(due_s, every_s)) - (loop.time() - began)
                if rest_s > 0 and not self._closed.is_set():
                    await _until(wake, rest_s)
        except EngineStopped:
            log.debug("watched folder %s: the engine has ended", visible(folder.settings.path))
        finally:
            hinting.close()

    async def _look(self, folder: WatchedFolder, now: float) -> float | None:
        try:
            return await folder.look(now)
        except EngineStopped:
            raise
        except Exception as error:  # whatever lies in a folder: it must not end the engine, and is told
            log.exception("watched folder %s", visible(folder.settings.path))
            folder.standing.trouble("broken", f"It could not be looked after ({error!r}); it is tried again.")
            return TRY_AGAIN_S


class _Hinting:
    """The hints for one folder, as long as it is the same one."""

    def __init__(self, folder: WatchedFolder, wake: asyncio.Event) -> None:
        self._folder = folder
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._hints: FolderHints | None = None
        self._of: tuple[int, int] | None = None
        self._not_before = 0.0

    def follow(self) -> bool:
        """Listen where the folder is now; whether that is new. A kernel that listens no more is asked again only after a while."""
        now = self._loop.time()
        is_same = self._of == self._folder.identity
        if self._hints is not None and (not is_same or self._hints.is_over):
            self.close()
        if self._hints is not None or self._folder.identity is None or (is_same and now < self._not_before):
            return False
        self._of, self._not_before = self._folder.identity, now + TRY_AGAIN_S
        settings = self._folder.settings
        self._hints = FolderHints(settings.path, self._hint, recursive=settings.recursive)
        return True

    def close(self) -> None:
        """Listen no more."""
        if self._hints is not None:
            self._hints.close()
            self._hints = None

    def _hint(self) -> None:
        with suppress(RuntimeError):  # the loop has closed
            self._loop.call_soon_threadsafe(self._wake.set)


async def _until(event: asyncio.Event, within_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
