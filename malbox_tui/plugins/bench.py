"""A bench: one inbox, and a seat for each plugin. It serves one task at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from malbox_tui.confine.control_groups import BenchGroups
from malbox_tui.confine.removal import remove_tree
from malbox_tui.confine.work import Limits
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.report import Identification, PluginRun, PluginStatus
from malbox_tui.plugins.manifest import Execution
from malbox_tui.plugins.registry import HostPlugin
from malbox_tui.plugins.seat import Seat, Surroundings
from malbox_tui.ports import BatchMember, Findings, PluginJob, StopSignal

log = logging.getLogger(__name__)

_Outcome = tuple[PluginRun, Identification | None]


class HostBench:
    """Implements `PluginBench`. Processes are started at the first task, and kept.

    `asked` is what the bench was acquired for; `limits` and `groups` are what became of it on this host.
    """

    def __init__(
        self,
        folder: Path,
        plugins: Sequence[HostPlugin],
        around: Surroundings,
        asked: ResourceLimits,
        limits: Limits,
        groups: BenchGroups,
    ) -> None:
        self.asked = asked
        self.inbox = folder / "inbox"
        self._folder = folder
        self._groups = groups
        self._seats = [Seat(plugin, around, self.inbox, folder / f"scratch-{plugin.name}", limits, groups) for plugin in plugins]
        self._halted: str | None = None

    def prepare(self) -> None:
        """Make the folders and the control groups. Blocking. Raises OSError; `close` removes what was made.

        The inbox can be read by the user that sandboxes run as; its parent by the engine alone.
        """
        self._folder.mkdir(mode=0o700, parents=True)
        self.inbox.mkdir()
        self.inbox.chmod(0o755)
        self._groups.make()

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        """Plugins that may run together do; then the sequential ones, one at a time, by name."""
        self._halted = stop.reason
        taking_part = [seat for seat in self._seats if seat.plugin.name not in job.kept_out]
        together = [seat for seat in taking_part if seat.plugin.manifest.runtime.execution is not Execution.SEQUENTIAL]
        in_turn = [seat for seat in taking_part if seat.plugin.manifest.runtime.execution is Execution.SEQUENTIAL]
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(stop))
                outcomes = await self._together(together, job)
                outcomes += [await self._one(seat, job) for seat in in_turn]
                watch.cancel()
        except BaseExceptionGroup as failures:
            if (error := _ours(failures)) is not None:
                raise error from failures
            raise
        skipped = [_skipped(seat, job.kept_out[seat.plugin.name]) for seat in self._seats if seat.plugin.name in job.kept_out]
        return Findings(
            runs=(*(run for run, _identification in outcomes), *skipped),
            identification=next((found for _run, found in outcomes if found is not None), None),
        )

    async def run_batch(self, members: Sequence[BatchMember]) -> None:
        """As `PluginBench.run_batch`, one task after the other."""
        for member in members:
            found: Findings | MalboxError
            member.on_work(True)
            try:
                found = await self.run(member.job, member.stop)
            except MalboxError as error:
                found = error
            finally:
                member.on_work(False)
            member.on_found(found)

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

    async def _together(self, seats: Sequence[Seat], job: PluginJob) -> list[_Outcome]:
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(self._one(seat, job)) for seat in seats]
        return [run.result() for run in runs]

    async def _one(self, seat: Seat, job: PluginJob) -> _Outcome:
        if self._halted is not None:
            return seat.not_run(self._halted), None
        return await seat.run(job)

    async def _watch(self, stop: StopSignal) -> None:
        self._halted = await stop.wait()
        for seat in self._seats:
            seat.halt(self._halted)

    def _remove(self) -> None:
        self._groups.remove()
        try:
            remove_tree(self._folder)
        except OSError as error:
            log.error("the folder %s of a bench can't be removed: %s", self._folder, error)

    def _clear(self) -> None:
        for entry in self.inbox.iterdir():
            entry.unlink()


def _skipped(seat: Seat, reason: str) -> PluginRun:
    return PluginRun(seat.plugin.name, seat.plugin.version, PluginStatus.SKIPPED, 0.0, reason=reason)


def _ours(failures: BaseExceptionGroup[BaseException]) -> MalboxError | None:
    """The first of our own errors (the result store's), which is what a caller expects instead of a group."""
    for failure in failures.exceptions:
        found = _ours(failure) if isinstance(failure, BaseExceptionGroup) else failure
        if isinstance(found, MalboxError):
            return found
    return None
