"""The part of an attempt that happens in a guest: the sample is brought in and run beside the guest plugins, and what comes of it is
collected.

1. The run ends with the sample, with its machine or guest, or when the attempt's time is over; whoever asks for the whole time goes on
   watching after the sample's end. What is collected then has a time of its own (`GuestTimes.collecting_s`).
2. A person's cancel, or a lost lease, collects nothing. A shutdown leaves a sample that has ended the grace period to be collected.
3. What can't be had of the machine or its guest is noted in words, and the rest is kept: the run is degraded. A guest that is lost
   while the sample runs, or that never comes back after it started anew, ends it as lost, with what there is.

It counts as one more plugin's run, so that its end, time and results stand beside the others'. (Longer than most modules: it is one
sequence, from the first look at the guest to the account of the run, and its parts are in modules of their own.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import msgspec

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelReason, CancelToken, Interrupted
from malbox_tui.engine.guest_bounds import GuestBounds
from malbox_tui.engine.guest_end import MAX_OUTPUT_BYTES, RunEnd, broken, end_before_start, end_of, end_of_watch
from malbox_tui.engine.guest_files import MOST_LISTED, GuestFiles, watched_folders
from malbox_tui.engine.guest_order import ASK_S, GuestFindings, GuestOrder, GuestTimes
from malbox_tui.engine.guest_plugins import GuestPlugins
from malbox_tui.engine.guest_report import MEMORY_RESULT, NETWORK_RESULT, ProcessFacts, Seen, report_of
from malbox_tui.engine.guest_screen import Screen
from malbox_tui.engine.guest_shelf import Shelf, as_text, plain_text
from malbox_tui.engine.guest_steps import Steps
from malbox_tui.engine.together import together
from malbox_tui.engine.tracker import was_cancelled
from malbox_tui.model.errors import GuestRefused, GuestUnreachable, MachineError, StoreError
from malbox_tui.model.events import ScreenshotTaken
from malbox_tui.model.report import REPORT_RESULT, PluginIdentity, PluginRun, PluginStatus, ResultRef, degraded
from malbox_tui.ports import (
    GuestEnd,
    GuestProcess,
    GuestProgram,
    GuestView,
    MachineCapture,
    ResultStore,
)

GUEST_RUN = "guest-run"
VERSION = "1"
GOODBYE_S = 2.0
"""How long nothing else is waited for when a run is canceled."""
TEXT_CHARACTERS = 1000

PROCESSES_RESULT = "processes"
RUN_RESULT = "run"


class GuestRun:
    """One run. `doing`: what it does at the moment, or did when it was told to end, in words; `is_over`: it came to its end."""

    def __init__(self, order: GuestOrder, results: ResultStore, times: GuestTimes, bounds: GuestBounds) -> None:
        self.doing = "its run was being prepared"
        self.is_over = False
        self._order = order
        self._times = times
        self._bounds = bounds
        self._began = clock.monotonic()
        self._steps = Steps(order.machine.name)
        self._shelf = Shelf(results, order.job, GUEST_RUN)
        self._screen = Screen(order.hands, self._shelf, self._steps, self._tell_picture)
        self._files = GuestFiles(bounds, self._steps)
        self._plugins = GuestPlugins(order.plugins, order.machine.platform, order.job, results, order.tell)
        self._processes = ProcessFacts()
        self._capture: MachineCapture | None = None
        self._program: GuestProgram | None = None
        self._started = ""
        self._end: RunEnd | None = None
        """As far as it is known; None: the sample was not begun."""
        self._output: tuple[bytes, bool] = (b"", True)
        """What a sample that did not end had printed, and whether that was all."""
        self._not_run = ""
        self._has_watched = False

    async def run(self, sample: Path, time: CancelToken, task: CancelToken) -> GuestFindings:
        """Run the sample that lies at the path `sample` until its end, or until `time` speaks; then collect, unless `task` speaks.

        Whatever goes wrong is in the findings.
        """
        told: CancelReason | None = None
        try:
            async with time.interrupts():
                await self._live(sample)
        except Interrupted as interrupted:
            told = interrupted.reason
            self._has_watched = told is CancelReason.TIMEOUT and self._end is not None and self._end.exit is not None
        if task.reason in _AT_ONCE or (told is CancelReason.SHUTDOWN and not self._has_ended):
            return await self._give_up(told or task.reason)
        await self._collect(task)
        if task.reason in _AT_ONCE:
            return await self._findings(PluginStatus.COMPLETED if self._has_ended else PluginStatus.CANCELED)
        self.is_over = True
        return await self._findings(self._status(told))

    # --- while it runs -----------------------------------------------------------------------------------------------------------

    @property
    def _has_ended(self) -> bool:
        return self._end is not None and self._end.exit is not None

    async def _live(self, sample: Path) -> None:
        """Until the run has ended. Whatever the adapters raise is written down."""
        machine = self._order.machine.name
        async with asyncio.TaskGroup() as beside:
            watching = beside.create_task(self._screen.watch())
            try:
                await self._begin(sample)
                await self._follow()
            except GuestUnreachable as error:
                self._end = RunEnd(lost=error)
                self._end = await end_before_start(error, self._order.hands, machine)
            except (GuestRefused, StoreError) as error:
                self._not_run = str(error)
            except asyncio.CancelledError as error:
                if was_cancelled():
                    raise
                self._end = replace(self._end or RunEnd(), lost=broken(machine, error))
            except Exception as error:  # noqa: BLE001 - whatever an adapter raises, its guest is of no use any more
                self._end = replace(self._end or RunEnd(), lost=broken(machine, error))
            finally:
                watching.cancel()

    async def _begin(self, sample: Path) -> None:
        """Raises what keeps the sample from being begun."""
        order, session = self._order, self._order.session
        self.doing = "the sample was being brought into its guest"
        _, _, path = await together(
            self._record(),
            self._start_plugins(),
            session.push(sample, order.launch.name, executable=True),
        )
        argv = order.launch.argv(path, order.options.arguments)
        self._started = plain_text(" ".join(argv), TEXT_CHARACTERS)
        named = f"{session.folder.rstrip(self._separator)}{self._separator}{order.launch.name}"
        self._files.own |= {path, named, *self._plugins.own}
        self.doing = "the sample was being started"
        self._program = await session.start(argv)
        self._end = RunEnd()
        self.doing = "the sample was running"

    async def _record(self) -> None:
        capture = self._order.hands.capture(self._shelf.place_for(NETWORK_RESULT))
        self._capture = await self._steps.try_to("record its network traffic", capture, ASK_S)

    async def _start_plugins(self) -> None:
        """And see then what there is in the guest."""
        order = self._order
        await self._plugins.start(order.session, self._separator)
        seen = await self._look() if order.seen is None or order.plugins else order.seen
        if seen is not None:
            self._files.begin(seen)
            self._processes = ProcessFacts(before=tuple(map(_told_process, seen.processes)))

    async def _look(self) -> GuestView | None:
        session = self._order.session
        looking = session.look(watched_folders(self._order.machine, session), MOST_LISTED)
        return await self._steps.try_to("look at the files and processes of its guest", looking, ASK_S)

    async def _follow(self) -> None:
        """Until there is nothing more to wait for."""
        order = self._order
        assert self._program is not None, "it was begun"
        self._end = await end_of(self._program, order.hands, order.machine.name)
        if self._end.has_guest and (order.watches or self._end.has_rebooted):
            self.doing = "its guest was being watched"
            self._end = await end_of_watch(self._end, order.session, order.hands, order.machine.name, self._times.back_s)

    def _tell_picture(self, result: ResultRef) -> None:
        order = self._order
        order.tell(ScreenshotTaken(task_id=order.job.task_id, machine=order.machine.name, result=result))
        order.on_picture(result)

    @property
    def _separator(self) -> str:
        return "\\" if self._order.machine.platform == "windows" else "/"

    # --- afterwards --------------------------------------------------------------------------------------------------------------

    async def _give_up(self, reason: CancelReason | None) -> GuestFindings:
        """Collect nothing."""
        if self._capture is not None:
            await self._within(GOODBYE_S, self._end_capture(GOODBYE_S))
        self._plugins.leave(PluginStatus.CANCELED, f"stopped: {reason}")
        return await self._findings(PluginStatus.COMPLETED if self._has_ended else PluginStatus.CANCELED)

    async def _collect(self, task: CancelToken) -> None:
        """What can be had, each part within a time of its own; a cancel ends all of it at once."""
        self.doing = "what the sample left was being collected"
        scope = clock.within(None)

        def told(reason: CancelReason) -> None:
            scope.reschedule(clock.monotonic() + (0.0 if reason in _AT_ONCE else self._times.grace_s))

        try:
            async with scope:
                stop_listening = task.listen(told)
                try:
                    await self._collect_all()
                finally:
                    stop_listening()
        except TimeoutError:
            if not scope.expired():
                raise
            self._steps.note("not all of it was collected: the engine was being stopped")
        self._plugins.leave(PluginStatus.FAILED, "its guest was gone before its results could be collected")

    async def _collect_all(self) -> None:
        end = self._end or RunEnd()
        if end.down is not None:
            if self._order.options.memory_dump:
                self._steps.note("could not dump its memory: its machine was off")
        elif self._order.options.memory_dump:
            await self._screen.look()
            await self._dump_memory()
            await self._collect_from(end)
        else:
            await together(self._screen.look(), self._collect_from(end))
        if self._capture is not None:
            await self._end_capture(ASK_S)
            taking = self._shelf.take_in(NETWORK_RESULT, self._bounds.traffic_bytes)
            if await self._steps.try_to("keep its network traffic", taking, ASK_S) is False:
                self._steps.note(f"only the first {self._bounds.traffic_bytes} bytes of its traffic are kept")

    async def _collect_from(self, end: RunEnd) -> None:
        collecting_s = self._times.collecting_s
        if end.has_guest and not await self._within(collecting_s, self._collect_from_guest()):
            self._steps.note(f"not all of it was collected within {collecting_s:g} s")

    async def _collect_from_guest(self) -> None:
        """A guest that answers no more is asked for nothing else."""
        session = self._order.session
        try:
            if self._program is not None and not self._has_ended:
                output = await self._steps.try_to("read its output", self._program.output(MAX_OUTPUT_BYTES + 1), ASK_S)
                self._output = (output or b"")[:MAX_OUTPUT_BYTES], len(output or b"") <= MAX_OUTPUT_BYTES
            if (seen := await self._look()) is not None:
                await self._keep_processes(seen)
            await self._plugins.end(session)
            if seen is not None:
                await self._files.collect(seen, session, self._shelf)
        except GuestUnreachable as error:
            self._steps.note(f"not all of it was collected: {error.problem}")

    async def _keep_processes(self, seen: GuestView) -> None:
        found, before = tuple(map(_told_process, seen.processes)), self._processes.before
        known = set(before or ())
        new = () if before is None else tuple(process for process in found if process not in known)
        self._processes = ProcessFacts(before, found, new)
        await self._steps.try_to(
            "keep the processes of its guest", self._shelf.keep_json(PROCESSES_RESULT, self._processes), ASK_S
        )

    async def _dump_memory(self) -> None:
        async def dump() -> bool:
            await self._order.hands.dump_memory(self._shelf.place_for(MEMORY_RESULT))
            return await self._shelf.take_in(MEMORY_RESULT, self._bounds.memory_bytes)

        self.doing = "the memory of its machine was being dumped"
        try:
            is_whole = await self._steps.try_to("dump its memory", dump(), self._times.collecting_s)
        except GuestUnreachable as error:
            self._steps.note(f"could not dump its memory: {error.problem}")
            is_whole = None
        if is_whole is False:
            self._steps.note(f"only the first {self._bounds.memory_bytes} bytes of its memory are kept")
        self.doing = "what the sample left was being collected"

    async def _end_capture(self, within_s: float) -> None:
        assert self._capture is not None, "asked only when there is one"
        try:
            await self._steps.try_to("end the recording of its traffic", self._capture.end(), within_s)
        except MachineError as error:
            self._steps.note(f"could not end the recording of its traffic: {error.problem}")

    async def _within(self, seconds: float, work: Awaitable[None]) -> bool:
        """Whether `work` was done in time."""
        scope = clock.within(seconds)
        try:
            async with scope:
                await work
        except TimeoutError:
            if not scope.expired():
                raise
            return False
        return True

    # --- the account -------------------------------------------------------------------------------------------------------------

    def _status(self, told: CancelReason | None) -> PluginStatus:
        if self._not_run or (self._end is not None and self._end.lost is not None):
            return PluginStatus.FAILED
        if self._has_ended:
            return PluginStatus.COMPLETED
        return PluginStatus.TIMED_OUT if told is CancelReason.TIMEOUT else PluginStatus.CANCELED

    async def _findings(self, status: PluginStatus) -> GuestFindings:
        end = self._end or RunEnd()
        how = self._how(status)
        if status is not PluginStatus.CANCELED:
            try:
                await self._keep_account(end, how)
            except StoreError as error:
                # What the plugins on this side found is not to be lost with it.
                status, how = PluginStatus.FAILED, f"What it did could not be kept: {error}"
        reason = how
        if self._steps.notes and status is PluginStatus.COMPLETED:
            reason = degraded("; ".join((*dict.fromkeys(self._steps.notes), f"{how[:1].lower()}{how[1:]}")))
        elif self._steps.notes:
            reason = f"{how.rstrip('.')}; {'; '.join(dict.fromkeys(self._steps.notes))}"
        run = PluginRun(GUEST_RUN, VERSION, status, clock.monotonic() - self._began, self._shelf.kept, reason=reason)
        return GuestFindings(
            runs=(run, *self._plugins.runs()),
            lost=None if self._not_run else end.lost,
            not_run=self._not_run,
            remark=str(end) if status is PluginStatus.COMPLETED and _is_remarkable(end) else "",
            files=tuple(self._files.collected),
            has_watched=self._has_watched and (self._order.watches or end.has_rebooted),
        )

    def _how(self, status: PluginStatus) -> str:
        if self._not_run:
            return f"The sample could not be run: {self._not_run}"
        if self._end is not None and (self._end.exit is not None or self._end.lost is not None):
            return str(self._end)
        if status is PluginStatus.CANCELED:
            return f"It was stopped while {self.doing}."
        return f"Its time was over while {self.doing}." if self._end is None else str(self._end)

    async def _keep_account(self, end: RunEnd, how: str) -> None:
        output, is_whole = self._output if end.exit is None else (end.exit.output[:MAX_OUTPUT_BYTES], end.exit.is_whole)
        text = as_text(output)
        told = RunRecord(
            end=None if end.exit is None else end.exit.end.value,
            exit_code=None if end.exit is None else end.exit.code,
            output=text,
            is_output_whole=is_whole,
            started=self._started,
            notes=tuple(dict.fromkeys(self._steps.notes)),
        )
        await self._shelf.keep_json(RUN_RESULT, told)
        seen = Seen(
            how=how,
            started=self._started,
            output=text,
            is_output_whole=is_whole,
            processes=None if self._processes == ProcessFacts() else self._processes,
            files=self._files.index,
            screenshots=self._screen.count,
            notes=told.notes,
        )
        report = report_of(seen, PluginIdentity(GUEST_RUN, VERSION, "Run in the guest"), self._shelf.kept)
        await self._shelf.keep_json(REPORT_RESULT, report)


class RunRecord(msgspec.Struct, frozen=True):
    """How the sample ended, and what it printed, for programs. `end` None: it did not end, or was not begun."""

    end: str | None
    exit_code: int | None
    output: str
    is_output_whole: bool
    started: str
    notes: tuple[str, ...] = ()


_AT_ONCE = frozenset({CancelReason.USER, CancelReason.LEASE_LOST})


def _told_process(process: GuestProcess) -> GuestProcess:
    return replace(
        process,
        name=plain_text(process.name, TEXT_CHARACTERS),
        command=plain_text(process.command, TEXT_CHARACTERS),
    )


def _is_remarkable(end: RunEnd) -> bool:
    """Whether a person wants to know of it without looking further."""
    return end.exit is not None and (end.exit.end is not GuestEnd.EXITED or end.exit.code != 0)
