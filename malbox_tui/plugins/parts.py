"""The tasks that a bench has at one time, and in each a part for every plugin: what is over, what goes on, and who is told.

1. A member is told once what was found: when all its parts are over, and by then nobody works on its sample.
2. A part is over once. After that nothing changes it.
3. A stop ends at once the parts that wait for their turn; one that goes on is ended by whoever works on it.
4. A plugin's start and end are told once for each task, also when it took the task up twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.events import PluginStarted, PluginStopped
from malbox_tui.model.report import Identification, Named, PluginRun, PluginStatus
from malbox_tui.plugins.ending import Ending, status_of, stopped
from malbox_tui.plugins.registry import FoundPlugin
from malbox_tui.plugins.surroundings import Surroundings
from malbox_tui.plugins.tray import ResultTray
from malbox_tui.ports import BatchMember, Findings

_UNKEPT = "its results can't be kept"


class Member:
    """One task. `parts`: by the name of the plugin, those that take part, in the order in which findings name them."""

    def __init__(self, member: BatchMember, plugins: Sequence[FoundPlugin], around: Surroundings) -> None:
        kept_out = member.job.kept_out
        self.job = member.job
        self.parts = {plugin.name: Part(self, plugin, around) for plugin in plugins if plugin.name not in kept_out}
        self._member = member
        self._skipped = [
            _account(plugin, PluginStatus.SKIPPED, kept_out[plugin.name], member.job.subject)
            for plugin in plugins
            if plugin.name in kept_out
        ]
        self._workers = 0
        self._waiting = 0
        """How many plugins wait for their turn among those of other tasks."""
        self._stands = False
        self._error: MalboxError | None = None
        self._told = False

    @property
    def identification(self) -> Identification | None:
        """What kind of content it is, as far as that is known by now."""
        parts = self.parts.values()
        return next((part.identification for part in parts if part.identification is not None), self.job.identification)

    async def watch(self) -> None:
        """End its parts when its stop signal speaks."""
        self.halt(await self._member.stop.wait())

    def halt(self, reason: str) -> None:
        """Its parts are to end."""
        for part in self.parts.values():
            part.halt(reason)

    def lose(self, error: MalboxError) -> None:
        """The result store failed it: nothing of it can be kept, so its parts are to end."""
        self._error = self._error or error
        self.halt(_UNKEPT)

    def taken_up(self) -> None:
        """One plugin more works on its sample."""
        self._workers += 1
        if self._workers == 1:
            self._member.on_work(True)
        self._tell_wait()

    def put_down(self) -> None:
        """One plugin less does."""
        self._workers -= 1
        if not self._workers:
            self._member.on_work(False)
        self._tell_wait()

    def waits(self, more: int) -> None:
        """So many plugins more wait for their turn among those of other tasks."""
        self._waiting += more
        self._tell_wait()

    def leave(self) -> None:
        """The bench leaves it as it is; nobody works on its sample any more."""
        if self._workers:
            self._workers = 0
            self._member.on_work(False)
        self._waiting = 0
        self._tell_wait()

    def tell_if_over(self) -> None:
        """Say what was found, if that is all there will be."""
        if self._told or not all(part.is_over for part in self.parts.values()):
            return
        self._told = True
        self._member.on_found(self._error or self._findings())

    def _tell_wait(self) -> None:
        stands = self._waiting > 0 and not self._workers
        if stands is not self._stands:
            self._stands = stands
            self.job.on_wait(stands)

    def _findings(self) -> Findings:
        parts = self.parts.values()
        return Findings(
            runs=(*(part.run for part in parts if part.run is not None), *self._skipped),
            identification=next((part.identification for part in parts if part.identification is not None), None),
        )


class Part:
    """What one plugin has to do with one task.

    `run` is None until it is over, and stays so when the result store failed. `log` is what came before its turn and belongs into the
    plugin's log. `given`: what others gave that its plugin needs, by thing the name in the inbox. `when_over` is called at its end,
    before anybody is told.
    """

    def __init__(self, member: Member, plugin: FoundPlugin, around: Surroundings) -> None:
        self.job = member.job
        self.name = plugin.name
        self.given: Mapping[str, str] = {}
        self.is_over = False
        self.run: PluginRun | None = None
        self.identification: Identification | None = None
        self.log = b""
        self.when_over: Callable[[], None] = lambda: None
        self.options: Mapping[str, str] = member.job.options.get(plugin.name, {})
        """Those that the plugin has for this task, in place of its own."""
        self._member = member
        self._plugin = plugin
        self._around = around
        self._on_halt: Callable[[str], None] | None = None
        self._started = False
        self._waits = False

    def take_up(self, on_halt: Callable[[str], None]) -> None:
        """The plugin works on it from now on; `on_halt` is told the reason when it is to end."""
        self._on_halt = on_halt
        if not self._started:
            self._started = True
            self._around.on_news(PluginStarted(task_id=self.job.task_id, plugin=self._plugin.name))
        self._member.taken_up()

    def skip(self, reason: str) -> None:
        """The plugin doesn't look at it. Nothing happens when it is over."""
        if not self.is_over:
            self.run = _account(self._plugin, PluginStatus.SKIPPED, reason, self.job.subject)
            told = PluginStopped(
                task_id=self.job.task_id, plugin=self.name, status=PluginStatus.SKIPPED, seconds=0.0, reason=reason
            )
            self._around.on_news(told)
            self._over()

    def wait(self) -> None:
        """The plugin waits for its turn among those of other tasks."""
        if not self._waits and not self.is_over:
            self._waits = True
            self._member.waits(1)

    def wait_no_more(self) -> None:
        """Its turn has come, or will not. A second call does nothing."""
        if self._waits:
            self._waits = False
            self._member.waits(-1)

    def put_back(self, log: bytes) -> None:
        """The plugin works on it no more, and nothing is found yet: it waits for a turn of its own."""
        self._on_halt = None
        self.log = log
        self._member.put_down()

    def halt(self, reason: str) -> None:
        """It is to end."""
        if self.is_over:
            return
        if self._on_halt is not None:
            self._on_halt(reason)
        elif self._started:
            self._end(stopped(reason), 0.0)
        else:
            self.run = _account(self._plugin, status_of(reason), "it was not started", self.job.subject)
            self._over()

    def end(self, ending: Ending, seconds: float, tray: ResultTray) -> None:
        """It is over, with what is in `tray`."""
        self.identification = tray.identification
        self._end(ending, seconds, tray)

    def lose(self, error: MalboxError) -> None:
        """It is over, and its member lost: the result store failed."""
        self._over(lambda: self._member.lose(error))

    def _end(self, ending: Ending, seconds: float, tray: ResultTray | None = None) -> None:
        self.run = PluginRun(
            name=self._plugin.name,
            version=self._plugin.version,
            status=ending.status,
            seconds=seconds,
            results=() if tray is None else tray.results,
            verdict=None if tray is None else tray.verdict,
            reason=ending.reason,
            subject=self.job.subject,
            named=Named() if tray is None else tray.named,
        )
        told = PluginStopped(task_id=self.job.task_id, plugin=self._plugin.name, status=ending.status, seconds=seconds)
        self._around.on_news(told)
        self._over()

    def _over(self, before_it_is_told: Callable[[], None] = lambda: None) -> None:
        self.is_over = True
        self.wait_no_more()
        if self._on_halt is not None:
            self._on_halt = None
            self._member.put_down()
        self.when_over()
        before_it_is_told()
        self._member.tell_if_over()


def _account(plugin: FoundPlugin, status: PluginStatus, reason: str, subject: str) -> PluginRun:
    """Of a run that did not take place."""
    return PluginRun(plugin.name, plugin.version, status, 0.0, reason=reason, subject=subject)
