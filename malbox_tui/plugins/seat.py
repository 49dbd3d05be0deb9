"""One plugin's seat on a bench: its process, started at need, kept between tasks, replaced when it broke.

Whatever the plugin does ends in its `PluginRun`. Only errors of the result store and cancellation leave `Seat.run` as exceptions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from malbox_tui.config.settings import PluginSettings
from malbox_tui.confine.control_groups import BenchGroups, Strikes
from malbox_tui.confine.endings import BrokenWire, ConfinedProcessError, ProcessEnded
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.confine.work import Limits, Walls, Work
from malbox_tui.model.events import EventBody, PluginStarted, PluginStopped
from malbox_tui.model.report import Identification, PluginRun, PluginStatus
from malbox_tui.plugins import replies
from malbox_tui.plugins.conversation import Conversation
from malbox_tui.plugins.ending import Ending, NotBegun, last_line, status_of
from malbox_tui.plugins.limit_hits import counted_hits, disk_limit, hit_by_end, hit_by_traceback
from malbox_tui.plugins.registry import HostPlugin
from malbox_tui.plugins.replies import REPLIES, BadResult, shortened
from malbox_tui.plugins.tray import ResultTray
from malbox_tui.ports import PluginJob, ResultStore

READY_TIMEOUT_S = 60.0
"""How long `on_start` may take."""

STOP_TIMEOUT_S = 1.0
"""How long `on_stop` may take."""

_FULL_SCRATCH_PARTS = 64
"""A scratch with less than this part of it free is full: the next write would tell."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all seats of a runner share."""

    walls: Walls
    settings: PluginSettings
    cancel_grace_s: float
    results: ResultStore
    on_news: Callable[[EventBody], None]


class Seat:
    """One plugin on one bench, its process limited by `limits` and by groups made in those of the bench."""

    def __init__(
        self, plugin: HostPlugin, around: Surroundings, inbox: Path, scratch: Path, limits: Limits, groups: BenchGroups
    ) -> None:
        self.plugin = plugin
        self._around = around
        self._work = Work(
            name=plugin.name,
            code=plugin.folder,
            entry=plugin.entry,
            inbox=inbox,
            scratch=scratch,
            limits=limits,
            readable=plugin.host_paths(),
            variables={"MALBOX_LOG_LEVEL": plugin.manifest.runtime.log_filter, "MALBOX_PLUGIN_NAME": plugin.name},
            bench=groups,
        )
        self._process: ConfinedProcess | None = None
        self._weakness = ""
        self._scope: asyncio.Timeout | None = None
        self._halted: Ending | None = None
        self._run_number = 0
        self._running = False
        self._strikes = Strikes()
        """Of the run that goes on, until they were last noted."""
        self._noted = Strikes()
        """All of the process by then."""
        self._timers: list[asyncio.TimerHandle] = []

    async def run(self, job: PluginJob) -> tuple[PluginRun, Identification | None]:
        """One task. Cancelled: the process is killed, results that are whole stay in the store."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._around.on_news(PluginStarted(task_id=job.task_id, plugin=self.plugin.name))
        tray = ResultTray(self._around.results, job, self.plugin.name, self._around.settings)
        warnings: list[str] = []
        self._note_strikes()
        self._strikes = Strikes()
        try:
            ending = await self._work_on(job, tray, warnings)
            tray.abort()
            self._keep_log(tray, ending, warnings)
            ending = await self._with_hits(ending)
        except BaseException:
            tray.abort()
            await self._kill()
            raise
        finally:
            self._over()
        seconds = loop.time() - began
        self._around.on_news(PluginStopped(task_id=job.task_id, plugin=self.plugin.name, status=ending.status, seconds=seconds))
        return self._account(ending, seconds, tray), tray.identification

    def not_run(self, reason: str) -> PluginRun:
        """The account of a run that a stop prevented."""
        return PluginRun(self.plugin.name, self.plugin.version, status_of(reason), 0.0, reason="it was not started")

    def halt(self, reason: str) -> None:
        """Ask the run that goes on to end, and make it end after the grace period. Without a run it does nothing."""
        in_words = "the time limit of the task ended it" if reason == "timeout" else f"stopped: {shortened(reason, 200)}"
        self._halt(Ending(status_of(reason), in_words))

    async def close(self) -> None:
        """End the process, politely first. A run that goes on fails."""
        self._cut()
        process, self._process = self._process, None
        if process is None:
            return
        process.ask_to_stop()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            pass
        finally:
            await process.kill()

    async def _work_on(self, job: PluginJob, tray: ResultTray, warnings: list[str]) -> Ending:
        try:
            async with asyncio.timeout(None) as self._scope:
                try:
                    return await self._attempt(job, tray, warnings)
                except NotBegun:
                    await self._kill()
                    return await self._attempt(job, tray, warnings)
        except TimeoutError:
            await self._kill()
            return self._halted or Ending(PluginStatus.CANCELED, "the plugins are being closed")
        except (ConfinedProcessError, BadResult, NotBegun) as exc:
            return await self._broken(exc)

    async def _attempt(self, job: PluginJob, tray: ResultTray, warnings: list[str]) -> Ending:
        process = await self._ready_process()
        process.take_output()
        self._run_number += 1
        process.send(
            {
                "kind": "run",
                "run": self._run_number,
                "task_id": job.task_id,
                "sample": f"{process.places.inbox}/{job.sample_name}",
            }
        )
        self._running = True
        if limit_s := self.plugin.manifest.runtime.analysis_timeout:
            ending = Ending(PluginStatus.TIMED_OUT, f"it took longer than its own limit of {limit_s} s")
            self._timers.append(asyncio.get_running_loop().call_later(limit_s, self._halt, ending))
        around = self._around
        talk = Conversation(job, self.plugin.name, self._run_number, tray, around.on_news, around.settings.max_results)
        try:
            word, payload = await talk.last_word(process)
        finally:
            warnings += talk.warnings
        match word:
            case replies.Done():
                return Ending(PluginStatus.COMPLETED, self._weakness)
            case replies.Failed(error=error):
                return self._failed(error, payload)
            case replies.Canceled():
                return self._halted or Ending(PluginStatus.FAILED, "it says that it was canceled, which nobody asked for")

    async def _ready_process(self) -> ConfinedProcess:
        if self._process is not None and not self._process.alive:
            await self._kill()
        if self._process is None:
            self._process = await ConfinedProcess.start(self._work, self._around.walls, self._around.settings.max_output_bytes)
            self._noted = Strikes()
            await self._get_ready(self._process)
        return self._process

    async def _get_ready(self, process: ConfinedProcess) -> None:
        config = {**self.plugin.config, **process.places.readable}
        process.send({"kind": "start", "config": config})
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                reply, payload = await process.receive(REPLIES)
        except TimeoutError:
            raise ConfinedProcessError(f"it was not ready within {READY_TIMEOUT_S:g} s") from None
        if isinstance(reply, replies.NotReady):
            raise ConfinedProcessError(f"it is not ready: {shortened(reply.reason or last_line(payload))}")
        if not isinstance(reply, replies.Ready):
            raise BrokenWire("the process did not say that it is ready")
        self._weakness = "" if reply.state == "healthy" else f"degraded: {shortened(reply.reason)}"

    def _halt(self, ending: Ending) -> None:
        if self._halted is not None or self._scope is None:
            return
        self._halted = ending
        if not self._running or self._process is None:
            self._cut()
            return
        try:
            self._process.send({"kind": "cancel", "run": self._run_number})
        except ConfinedProcessError:
            self._cut()
            return
        self._timers.append(asyncio.get_running_loop().call_later(self._around.cancel_grace_s, self._cut))

    def _cut(self) -> None:
        """Kill, and make the run return."""
        if self._process is not None and self._scope is not None:
            self._process.destroy()
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    def _failed(self, error: str, traceback: bytes) -> Ending:
        allowed = self._around.walls.processes_allowed(self._work.limits)
        hit = hit_by_traceback(traceback.decode("utf-8", "replace"), self._work.limits, allowed)
        return Ending(PluginStatus.FAILED, shortened(last_line(traceback) or error), traceback, hit)

    async def _broken(self, error: Exception) -> Ending:
        output = self._process.take_output() if self._process is not None else b""
        await self._kill()
        if self._halted is not None:
            return self._halted
        reason = str(error)
        if isinstance(error, ProcessEnded | NotBegun):
            hit = hit_by_end(reason, output.decode("utf-8", "replace"), self._work.limits)
            reason += f", probably at its {hit}" if hit else ""
        return Ending(PluginStatus.FAILED, shortened(reason), output)

    async def _with_hits(self, ending: Ending) -> Ending:
        """With the limits that it reached for a reason. A process that reached one is replaced: what it left would be in the way."""
        self._note_strikes()
        limits = self._work.limits
        told = (ending.hit,) if ending.hit is not None else ()
        hits = dict.fromkeys((*(counted_hits(self._strikes, limits) or told), *self._full_scratch()))
        if not hits:
            return ending
        await self._kill()
        reached = f"it reached its {' and its '.join(hits)}"
        stopped = ending.status not in (PluginStatus.COMPLETED, PluginStatus.FAILED)
        return replace(ending, reason=f"{ending.reason}; {reached}" if stopped else reached)

    def _full_scratch(self) -> tuple[str, ...]:
        free_bytes = None if self._process is None else self._process.scratch_free_bytes()
        full = free_bytes is not None and free_bytes * _FULL_SCRATCH_PARTS < self._work.limits.scratch_mb * 1024 * 1024
        return (disk_limit(self._work.limits),) if full else ()

    def _note_strikes(self) -> None:
        if self._process is not None:
            strikes = self._process.strikes()
            self._strikes += strikes.since(self._noted)
            self._noted = strikes

    async def _kill(self) -> None:
        self._note_strikes()
        process, self._process = self._process, None
        if process is not None:
            await process.kill()

    def _keep_log(self, tray: ResultTray, ending: Ending, warnings: list[str]) -> None:
        printed = self._process.take_output() if self._process is not None else b""
        warned = "".join(f"WARN  {shortened(warning, 2000)}\n" for warning in warnings).encode()
        if text := warned + printed + ending.traceback:
            tray.keep_log(text)

    def _over(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._scope = None
        self._halted = None
        self._running = False

    def _account(self, ending: Ending, seconds: float, tray: ResultTray) -> PluginRun:
        return PluginRun(
            name=self.plugin.name,
            version=self.plugin.version,
            status=ending.status,
            seconds=seconds,
            results=tray.results,
            verdict=tray.verdict,
            reason=ending.reason,
        )
