"""Guest plugins during one run: each is put into the guest and begun before the sample, and ended after it; what it left is kept.

One that fails harms its own run only. Nothing that it leaves is believed: the sample may have written it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from malbox_tui.engine import clock
from malbox_tui.engine.guest_shelf import Shelf
from malbox_tui.engine.guest_steps import Steps
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import EventBody, PluginResultAvailable, PluginStarted, PluginStopped
from malbox_tui.model.report import PluginRun, PluginStatus, degraded
from malbox_tui.ports import GuestEnd, GuestPlugin, GuestProgram, GuestSession, PluginJob, ResultStore

MAX_LOG_BYTES = 64 * 1024
LOG_RESULT = "log"
START_S = 60.0
END_S = 15.0
"""How long it may take to bring one in and begin it, and to end it."""
PULL_S = 30.0

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class GuestPlugins:
    """Those of one run, in a guest of `platform`. `own`: their paths in the guest, once they are there."""

    def __init__(
        self,
        plugins: Sequence[GuestPlugin],
        platform: str,
        job: PluginJob,
        results: ResultStore,
        tell: Callable[[EventBody], None],
    ) -> None:
        self._companions = [_Companion(plugin, platform, job, results, tell) for plugin in plugins]

    @property
    def own(self) -> set[str]:
        """Their paths in the guest, as far as they are there."""
        return {path for companion in self._companions for path in companion.own}

    async def start(self, session: GuestSession, separator: str) -> None:
        """Bring them in and begin them. Raises `GuestUnreachable`."""
        for companion in self._companions:
            await companion.start(session, separator)

    async def end(self, session: GuestSession) -> None:
        """End them, and keep what they left. Raises `GuestUnreachable`; what was kept until then stays."""
        for companion in self._companions:
            await companion.end(session)

    def leave(self, status: PluginStatus, reason: str) -> None:
        """Those that were not ended yet go with their guest."""
        for companion in self._companions:
            companion.conclude(status, reason)

    def runs(self) -> tuple[PluginRun, ...]:
        """How they did, after `leave`."""
        return tuple(companion.run for companion in self._companions if companion.run is not None)


class _Companion:
    def __init__(
        self, plugin: GuestPlugin, platform: str, job: PluginJob, results: ResultStore, tell: Callable[[EventBody], None]
    ) -> None:
        self.own: tuple[str, ...] = ()
        self.run: PluginRun | None = None
        self._plugin = plugin
        self._job = job
        self._tell = tell
        self._shelf = Shelf(results, job, plugin.name)
        self._steps = Steps(plugin.name)
        self._program: GuestProgram | None = None
        self._folder = ""
        self._began = clock.monotonic()
        self._is_told = False
        if (kept_out := _why_not(plugin, platform, job.kept_out)) is not None:
            self.run = PluginRun(plugin.name, plugin.version, PluginStatus.SKIPPED, 0.0, reason=kept_out)

    async def start(self, session: GuestSession, separator: str) -> None:
        if self.run is not None:
            return
        self._began = clock.monotonic()
        self._is_told = True
        self._tell(PluginStarted(task_id=self._job.task_id, plugin=self._plugin.name))
        self._program = await self._steps.try_to("start it in the guest", self._begun(session, separator), START_S)
        if self._program is None:
            self.conclude(PluginStatus.FAILED, "; ".join(self._steps.notes))

    async def end(self, session: GuestSession) -> None:
        if self.run is not None or self._program is None:
            return
        program = self._program
        await self._steps.try_to("end it", program.kill(), END_S)
        ended = await self._steps.try_to("see how it ended", program.wait(MAX_LOG_BYTES), END_S)
        if ended is not None and ended.output:
            await self._keep_log(ended.output)
        await self._collect(session)
        if ended is not None and ended.end is GuestEnd.EXITED and ended.code != 0:
            self.conclude(PluginStatus.FAILED, f"it ended with exit status {ended.code}")
        else:
            self.conclude(PluginStatus.COMPLETED, degraded("; ".join(self._steps.notes)) if self._steps.notes else "")

    def conclude(self, status: PluginStatus, reason: str) -> None:
        if self.run is not None:
            return
        seconds = clock.monotonic() - self._began
        plugin = self._plugin
        self.run = PluginRun(plugin.name, plugin.version, status, seconds, self._shelf.kept, reason=reason)
        if self._is_told:
            self._tell(PluginStopped(task_id=self._job.task_id, plugin=plugin.name, status=status, seconds=seconds))

    async def _begun(self, session: GuestSession, separator: str) -> GuestProgram:
        name = f"{self._plugin.name}{''.join(self._plugin.program.suffixes[-1:])}"
        path = await session.push(self._plugin.program, name, executable=True)
        self._folder = f"{session.folder.rstrip(separator)}{separator}{self._plugin.name}-results"
        self.own = (path, self._folder)
        return await session.start((path, self._folder))

    async def _collect(self, session: GuestSession) -> None:
        plugin = self._plugin
        listed = await self._steps.try_to("list its results", session.list(self._folder, plugin.max_results + 1), PULL_S)
        if listed is None:
            return
        if len(listed) > plugin.max_results:
            self._steps.note(f"only {plugin.max_results} of its results are kept")
        for number, file in enumerate(sorted(listed, key=lambda file: file.path)[: plugin.max_results], 1):
            name = self._result_name(file.path, number)
            pull = self._shelf.pull(session, file.path, name, plugin.max_result_bytes)
            pulled = await self._steps.try_to(f"keep its result {name}", pull, PULL_S)
            if pulled is None:
                continue
            if not pulled[1]:
                self._steps.note(f"only the first {plugin.max_result_bytes} bytes of its result {name} are kept")
            self._tell(PluginResultAvailable(task_id=self._job.task_id, plugin=plugin.name, result_name=name))

    async def _keep_log(self, output: bytes) -> None:
        try:
            await self._shelf.keep(LOG_RESULT, output, "bytes")
        except StoreError as error:
            self._steps.note(f"could not keep its log: {error}")

    def _result_name(self, path: str, number: int) -> str:
        """The file's own name where it is a plain one, and nothing else has it."""
        name = re.split(r"[/\\]", path)[-1]
        return name if _PLAIN_NAME.fullmatch(name) and not self._shelf.has(name) else f"result-{number:03}"


def _why_not(plugin: GuestPlugin, platform: str, kept_out: Mapping[str, str]) -> str | None:
    if plugin.name in kept_out:
        return kept_out[plugin.name]
    if plugin.platforms is not None and platform not in plugin.platforms:
        return f"It is for {', '.join(sorted(plugin.platforms))}, and the machine has {platform}."
    return None
