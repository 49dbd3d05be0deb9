"""The part of an attempt that happens in a guest: the sample is brought in, run, and what came of it is kept as a result.

It counts as one more plugin's run, so that its end, time and results stand beside the others'.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelReason, CancelToken, Interrupted
from malbox_tui.model.errors import GuestUnreachable
from malbox_tui.model.report import PluginRun, PluginStatus, ResultRef
from malbox_tui.ports import GuestExit, GuestSession, PluginJob, ResultStore

GUEST_RUN = "guest-run"
VERSION = "1"
MAX_OUTPUT_BYTES = 256 * 1024
"""How much of what a sample prints is kept."""


@dataclass(frozen=True, slots=True)
class GuestFindings:
    """The run, and why the guest was lost in it; None when it wasn't."""

    run: PluginRun
    lost: GuestUnreachable | None = None


class GuestRun:
    """Runs one sample in one guest."""

    def __init__(self, session: GuestSession, results: ResultStore) -> None:
        self._session = session
        self._results = results
        self._began = clock.monotonic()

    async def run(self, sample: Path, name: str, job: PluginJob, stop: CancelToken) -> GuestFindings:
        """Bring `sample` in under `name`, run it until its end or until `stop` speaks. Raises `StoreError`."""
        try:
            async with stop.interrupts():
                path = await self._session.put(sample, name)
                end = await self._session.execute(path, MAX_OUTPUT_BYTES)
        except Interrupted as interrupted:
            status = PluginStatus.TIMED_OUT if interrupted.reason is CancelReason.TIMEOUT else PluginStatus.CANCELED
            return GuestFindings(self._as_run(status, f"The sample was still running ({interrupted.reason})."))
        except GuestUnreachable as error:
            return GuestFindings(self._as_run(PluginStatus.FAILED, str(error)), error)
        return GuestFindings(self._as_run(PluginStatus.COMPLETED, _end_in_words(end), self._keep(end, job)))

    def _keep(self, end: GuestExit, job: PluginJob) -> ResultRef:
        text = end.output.decode("utf-8", "backslashreplace")
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
