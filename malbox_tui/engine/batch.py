"""Tasks that one worker runs together. Each is driven like any other, with a state, a token, a clock and an outcome of its own; only
their bench and the run on it are shared.

1. The first one that asks takes the bench; the last one that leaves gives it back.
2. Who has laid its sample out waits (`gather`) until each of the others has done so too, or has left.
3. Those that gathered are given to the plugins in one run, in the order of the queue, and each goes on alone as soon as its findings
   are there.
4. Nobody waits for ever: where one of them has to be cut, since the bench does not end what it was asked to end, the run is cut for
   all, and so is a run in which no plugin has worked for `STUCK_S`, nor waited for those of other tasks, which end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from malbox_tui.engine import clock
from malbox_tui.engine.tracker import TaskTracker
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.ports import BatchMember, Findings, PluginBench, PluginJob, PluginRunner, StopSignal

log = logging.getLogger(__name__)

STUCK_S = 300.0
"""So long the plugins of a batch may take to take a sample up; the clocks of its tasks stand meanwhile."""


class BatchCut(Exception):
    """The run was cut because of another task; this one is to be tried again."""


class Batch:
    """The tasks `task_ids`, in their order, which are handed to one worker in one step."""

    def __init__(self, task_ids: Iterable[int], runner: PluginRunner, tracker: TaskTracker) -> None:
        self._runner = runner
        self._tracker = tracker
        self.task_ids = tuple(task_ids)
        self._present = set(self.task_ids)
        self._gathered: set[int] = set()
        self._members: dict[int, BatchMember] = {}
        self._answers: dict[int, asyncio.Future[Findings | None]] = {}
        """By task id; None: the run was cut."""
        self._acquiring: asyncio.Task[PluginBench] | None = None
        self._all_there: asyncio.Future[None] | None = None
        self._running: asyncio.Task[None] | None = None
        self._worked_on = 0
        """On how many of them plugins work at the moment."""
        self._waiting = 0
        """How many of them wait until plugins of other tasks have done their work."""
        self._stuck_alarm: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Batch of {sorted(self._present)}, {len(self._members)} of them at their plugins>"

    async def take(self, limits: ResourceLimits) -> PluginBench:
        """The bench of all. Raises what `PluginRunner.acquire` does, to each that asks."""
        if self._acquiring is None:
            self._acquiring = self._tracker.spawn(self._runner.acquire(limits), name="bench of a batch")
        return await asyncio.shield(self._acquiring)

    async def gather(self, task_id: int) -> None:
        """Wait until all that are still here have come so far."""
        if self._all_there is None:
            self._all_there = asyncio.get_running_loop().create_future()
        self._gathered.add(task_id)
        self._go_on()
        await asyncio.shield(self._all_there)

    async def run(self, job: PluginJob, stop: StopSignal, on_work: Callable[[bool], None]) -> Findings:
        """One task's part in the run of all, after `take` and `gather`. Cancelled: the run is cut for all that are still in it.

        Raises what keeps its findings from being kept; `BatchCut`.
        """
        answer: asyncio.Future[Findings | None] = asyncio.get_running_loop().create_future()
        self._answers[job.task_id] = answer

        def worked_on(works: bool) -> None:
            self._worked_on += 1 if works else -1
            self._watch()
            on_work(works)

        def waits(for_others: bool) -> None:
            self._waiting += 1 if for_others else -1
            self._watch()

        job = replace(job, on_wait=waits)
        self._members[job.task_id] = BatchMember(job, stop, worked_on, lambda found: _give(answer, found))
        self._go_on()
        try:
            findings = await answer
        except asyncio.CancelledError:
            self._cut()
            raise
        if findings is None:
            raise BatchCut
        return findings

    def leave(self, task_id: int) -> asyncio.Task[None] | None:
        """Nothing of this task is left here; the last one gets the bench on its way back. A second call does nothing."""
        if task_id not in self._present:
            return None
        self._present.discard(task_id)
        self._gathered.discard(task_id)
        if self._running is None:
            self._members.pop(task_id, None)
        if self._present:
            self._go_on()
        elif self._acquiring is not None:
            return self._tracker.spawn(self._give_back(self._acquiring), name="end of a batch")
        return None

    def _go_on(self) -> None:
        """Take the step that everybody who is still here waits for."""
        if self._all_there is not None and not self._all_there.done() and self._gathered >= self._present:
            self._all_there.set_result(None)
        if self._running is None and self._members and self._members.keys() >= self._present and self._acquiring is not None:
            members = [self._members[task_id] for task_id in self.task_ids if task_id in self._members]
            work = self._run(self._acquiring.result(), members)
            self._running = self._tracker.spawn(work, name=f"batch of {len(self._members)}")

    async def _run(self, bench: PluginBench, members: Sequence[BatchMember]) -> None:
        """Whatever happens, nobody waits in vain."""
        self._watch()
        try:
            await bench.run_batch(members)
        except Exception as error:  # noqa: BLE001 - it ends the attempts, each of which raises it
            for answer in self._unanswered():
                answer.set_exception(error)
        finally:
            self._stop_watching()
            for answer in self._unanswered():
                answer.cancel()

    def _unanswered(self) -> list[asyncio.Future[Findings | None]]:
        return [answer for answer in self._answers.values() if not answer.done()]

    def _cut(self) -> None:
        if self._running is not None and not self._running.done():
            for answer in self._unanswered():
                answer.set_result(None)
            self._running.cancel()

    def _watch(self) -> None:
        self._stop_watching()
        if self._worked_on == 0 and self._waiting == 0:
            self._stuck_alarm = clock.alarm(STUCK_S, self._on_stuck)

    def _stop_watching(self) -> None:
        if self._stuck_alarm is not None:
            self._stuck_alarm.cancel()
            self._stuck_alarm = None

    def _on_stuck(self) -> None:
        log.error("no plugin has worked on the batch of tasks %s for %g s", list(self.task_ids), STUCK_S)
        for answer in self._unanswered():
            answer.cancel()
        if self._running is not None:
            self._running.cancel()

    async def _give_back(self, acquiring: asyncio.Task[PluginBench]) -> None:
        """Whatever fails here is no fault of any one of these tasks, and none of them may be lost with it."""
        try:
            await _ended(self._running, acquiring)
        finally:
            # Also when the engine's end cuts this: no bench is given back while something runs on it.
            await _ended(self._running, acquiring)
            if not acquiring.cancelled() and acquiring.exception() is None:
                await self._release(acquiring.result())

    async def _release(self, bench: PluginBench) -> None:
        try:
            await self._runner.release(bench)
        except Exception:
            log.exception("the bench of a batch could not be given back")


async def _ended(*works: asyncio.Task[Any] | None) -> None:
    """Cut what still goes on, and wait until it has ended."""
    for work in works:
        if work is not None and not work.done():
            if not work.cancelling():
                work.cancel()
            await asyncio.wait({work})


def _give(answer: asyncio.Future[Findings | None], found: Findings | MalboxError) -> None:
    if answer.done():
        return
    if isinstance(found, MalboxError):
        answer.set_exception(found)
    else:
        answer.set_result(found)
