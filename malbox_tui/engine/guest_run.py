"""The part of an attempt that happens in a guest: the sample is brought in, run, and what came of it is kept as a result.

It counts as one more plugin's run, so that its end, time and results stand beside the others'.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

import msgspec

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelReason, CancelToken, Interrupted
from malbox_tui.engine.tracker import was_cancelled
from malbox_tui.model.errors import GuestUnreachable, StoreError
from malbox_tui.model.report import PluginRun, PluginStatus, ResultRef
from malbox_tui.ports import GuestExit, GuestSession, PluginJob, ResultStore

log = logging.getLogger(__name__)

GUEST_RUN = "guest-run"
VERSION = "1"
MAX_OUTPUT_BYTES = 256 * 1024
"""How much of what a sample prints is kept."""


@dataclass(frozen=True, slots=True)
class GuestFindings:
    """The run, and why the guest was lost in it; None when it wasn't. `is_up`: the sample has ended, and its machine goes on."""

    run: PluginRun
    lost: GuestUnreachable | None = None
    is_up: bool = False


class GuestRun:
    """Runs one sample in the guest of one machine."""

    def __init__(self, session: GuestSession, results: ResultStore, machine: str) -> None:
        self._session = session
        self._results = results
        self._machine = machine
        self._began = clock.monotonic()

    async def run(self, sample: Path, name: str, job: PluginJob, stop: CancelToken) -> GuestFindings:
        """Bring `sample` in under `name`, run it until its end or until `stop` speaks. Whatever goes wrong is in the findings."""
        try:
            async with stop.interrupts():
                end = await self._execute(sample, name)
        except Interrupted as interrupted:
            status = PluginStatus.TIMED_OUT if interrupted.reason is CancelReason.TIMEOUT else PluginStatus.CANCELED
            return GuestFindings(self._as_run(status, f"The sample was still running ({interrupted.reason})."))
        except GuestUnreachable as error:
            return GuestFindings(self._as_run(PluginStatus.FAILED, str(error)), error)
        try:
            kept = self._keep(end, job)
        except StoreError as error:
            # What the plugins on this side found is not to be lost with it.
            return GuestFindings(self._as_run(PluginStatus.FAILED, f"What it did could not be kept: {error}"))
        return GuestFindings(self._as_run(PluginStatus.COMPLETED, _end_in_words(end), kept), is_up=end.code is not None)

    async def _execute(self, sample: Path, name: str) -> GuestExit:
        """Raises `GuestUnreachable`, whatever the adapter raises: its machine is of no use to this task any more."""
        try:
            path = await self._session.push(sample, name, executable=True)
            program = await self._session.start((path,))
            return await program.wait(MAX_OUTPUT_BYTES)
        except GuestUnreachable:
            raise
        except asyncio.CancelledError as error:
            if was_cancelled():
                raise
            raise self._lost(error) from error
        except Exception as error:
            raise self._lost(error) from error

    def _lost(self, error: BaseException) -> GuestUnreachable:
        log.error("the adapter of machine %s broke", self._machine, exc_info=error)
        return GuestUnreachable(self._machine, f"its adapter broke: {type(error).__name__}: {error}".rstrip(": "))

    def _keep(self, end: GuestExit, job: PluginJob) -> ResultRef:
        text = end.output[:MAX_OUTPUT_BYTES].decode("utf-8", "backslashreplace")
        content = msgspec.json.encode({"exit_code": end.code, "output": text})
        writer = self._results.begin(job.task_id, job.token, GUEST_RUN, "run", "json")
        try:
            writer.write(content)
            return writer.commit()
        except BaseException:
            writer.abort()
            raise

    def _as_run(self, status: PluginStatus, reason: str, *results: ResultRef) -> PluginRun:
        return PluginRun(GUEST_RUN, VERSION, status, clock.monotonic() - self._began, results, reason=reason)


def _end_in_words(end: GuestExit) -> str:
    return "The sample switched its machine off." if end.code is None else f"The sample ended with exit status {end.code}."
