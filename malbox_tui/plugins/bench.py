"""A bench: one inbox, and a seat for each plugin. It serves one task, or one batch of tasks, at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from malbox_tui.confine.control_groups import BenchGroups
from malbox_tui.confine.removal import remove_tree
from malbox_tui.confine.work import Limits
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.report import Identification
from malbox_tui.plugins.batch import run_members
from malbox_tui.plugins.identifying import identify
from malbox_tui.plugins.registry import FoundPlugin
from malbox_tui.plugins.seat import Seat
from malbox_tui.plugins.surroundings import Surroundings
from malbox_tui.plugins.tray import IDENTIFYING_PLUGIN
from malbox_tui.ports import BatchMember, Findings, PluginJob, StopSignal

log = logging.getLogger(__name__)


class HostBench:
    """Implements `PluginBench`. Processes are started at the first task, and kept.

    `asked` is what the bench was acquired for; `limits` and `groups` are what became of it on this host; `generation` grows each
    time the plugins are read.
    """

    def __init__(
        self,
        folder: Path,
        plugins: Sequence[FoundPlugin],
        around: Surroundings,
        asked: ResourceLimits,
        limits: Limits,
        groups: BenchGroups,
        generation: int = 0,
    ) -> None:
        self.asked = asked
        self.generation = generation
        self.inbox = folder / "inbox"
        self._folder = folder
        self._groups = groups
        self._around = around
        self._identifying = asyncio.Lock()
        """One sample at a time: the tasks of a batch ask side by side."""
        self._seats = [Seat(plugin, around, self.inbox, folder / f"scratch-{plugin.name}", limits, groups) for plugin in plugins]

    def prepare(self) -> None:
        """Make the folders and the control groups. Blocking. Raises OSError; `close` removes what was made.

        The inbox can be read by the user that sandboxes run as; its parent by the engine alone.
        """
        self._folder.mkdir(mode=0o700, parents=True)
        self.inbox.mkdir()
        self.inbox.chmod(0o755)
        self._groups.make()

    async def identify(self, sample_name: str) -> Identification | None:
        """As `PluginBench.identify`."""
        seat = next((seat for seat in self._seats if seat.plugin.name == IDENTIFYING_PLUGIN), None)
        if seat is None:
            return None
        async with self._identifying:
            return await identify(seat, sample_name)

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        """Plugins that may run together do; then the sequential ones, one at a time, by name. Of a single task none makes a batch."""
        told: list[Findings | MalboxError] = []
        await self.run_batch([BatchMember(job, stop, on_work=lambda _is_worked_at: None, on_found=told.append)])
        (found,) = told
        if isinstance(found, MalboxError):
            raise found
        return found

    async def run_batch(self, members: Sequence[BatchMember]) -> None:
        """As `PluginBench.run_batch`, in the same order of plugins."""
        await run_members(self._seats, members, self._around)

    def listeners(self) -> Iterator[tuple[FoundPlugin, Callable[[dict[str, Any]], None]]]:
        """Its plugins, and how each is told of an event."""
        for seat in self._seats:
            yield seat.plugin, seat.take_event

    async def check_health(self) -> None:
        """Ask the plugins that have nothing to do how they are."""
        async with asyncio.TaskGroup() as group:
            for seat in self._seats:
                group.create_task(seat.check_health())

    async def clear(self) -> None:
        """Empty the inbox. Raises OSError when that can't be done; the bench is then not to be used again."""
        await asyncio.to_thread(self._clear)

    async def close(self) -> None:
        """End all processes and remove the folders. Cancelled: they are killed at once, and the folders removed all the same."""
        try:
            async with asyncio.TaskGroup() as group:
                for seat in self._seats:
                    group.create_task(seat.close())
        finally:
            await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        self._groups.remove()
        try:
            remove_tree(self._folder)
        except OSError as error:
            log.error("the folder %s of a bench can't be removed: %s", self._folder, error)

    def _clear(self) -> None:
        for entry in self.inbox.iterdir():
            entry.unlink()
