"""What the plugins of a simulated world do with a batch: each one's turns, side by side, on the world's clock.

A member is told once, when every plugin is done with it. A plugin that takes batches gets the members together. A crash, a hang, or
more than half of the shortest time of a member breaks its batch; then it gets them one by one, as the others do from the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.events import PluginStarted
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.ports import BatchMember, Findings
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.plugin_run import (
    CLOSED,
    Ending,
    PluginPlace,
    SimulatedPlugin,
    concluded,
    identified,
    not_run,
    run_plugin,
    skipped,
    stopped,
    until_it_hears,
)

_SHARE_OF_TIME = 0.5
"""How much of the shortest time of its members a batch may take."""

_GAIN = 0.5
"""What a batch takes of the time that its members would take one by one."""


class _Halt:
    """Implements `StopSignal`: speaks when its member is stopped, or lost."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._given = asyncio.Event()

    def give(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
            self._given.set()

    async def wait(self) -> str:
        await self._given.wait()
        assert self.reason is not None
        return self.reason


class MemberState:
    """One task of a batch: which plugins are done with it, and which are at it."""

    def __init__(self, member: BatchMember, plugins: Sequence[SimulatedPlugin], place: PluginPlace, content: bytes) -> None:
        self.job = member.job
        self.content = content
        self.halt = _Halt()
        self.is_told = False
        self._member = member
        self._plugins = plugins
        self._place = place
        self._left = {plugin.name: plugin for plugin in plugins if plugin.name not in member.job.kept_out}
        self._begun: set[str] = set()
        self._at_work: set[str] = set()
        self._runs: dict[str, PluginRun] = {}
        self._error: MalboxError | None = None

    def waits_for(self, plugin: SimulatedPlugin) -> bool:
        """Whether the plugin is not done with it."""
        return plugin.name in self._left

    async def watch(self) -> None:
        """Pass its stop on."""
        self.stop(await self._member.stop.wait())

    def stop(self, reason: str) -> None:
        """What waits for its turn is over; what goes on hears of it."""
        self.halt.give(reason)
        for name, plugin in list(self._left.items()):
            if name not in self._at_work:
                self.end(plugin, self._unstarted(plugin, reason))
        self.tell_if_over()

    def take_up(self, plugin: SimulatedPlugin) -> bool:
        """The plugin works at it from now on; whether it does so for the first time."""
        self._at_work.add(plugin.name)
        if len(self._at_work) == 1:
            self._member.on_work(True)
        is_first = plugin.name not in self._begun
        self._begun.add(plugin.name)
        return is_first

    def put_back(self, plugin: SimulatedPlugin) -> None:
        """The plugin works at it no more."""
        if plugin.name in self._at_work:
            self._at_work.remove(plugin.name)
            if not self._at_work:
                self._member.on_work(False)

    def conclude(self, plugin: SimulatedPlugin, ending: Ending, seconds: float) -> None:
        """The plugin is done with it, and its report is to be written."""
        try:
            self.end(plugin, concluded(plugin, self._place, self.job, self.content, ending, seconds))
        except MalboxError as error:
            self.lose(plugin, error)

    def end(self, plugin: SimulatedPlugin, run: PluginRun) -> None:
        """The plugin is done with it."""
        self._runs[plugin.name] = run
        self._done(plugin)

    def lose(self, plugin: SimulatedPlugin | None, error: MalboxError) -> None:
        """The result store failed it: the other plugins are to end too."""
        self._error = self._error or error
        if plugin is not None:
            self._left.pop(plugin.name, None)
            self.put_back(plugin)
        self.stop("its results can't be kept")

    def leave(self) -> None:
        """The plugins are dead; nobody is told."""
        for plugin in self._plugins:
            self.put_back(plugin)

    def tell_if_over(self) -> None:
        """Say what was found, if that is all there will be."""
        if self.is_told or self._left:
            return
        self.is_told = True
        self._member.on_found(self._error or self._findings())

    def _findings(self) -> Findings:
        taking_part = [plugin for plugin in self._plugins if plugin.name in self._runs]
        runs = [self._runs[plugin.name] for plugin in taking_part]
        found = identified(self._place.world, taking_part, runs, self.content)
        return Findings((*runs, *skipped(self._plugins, self.job)), found)

    def _unstarted(self, plugin: SimulatedPlugin, reason: str) -> PluginRun:
        if plugin.name in self._begun:
            return concluded(plugin, self._place, self.job, self.content, stopped(reason), 0.0)
        return not_run(plugin, reason)

    def _done(self, plugin: SimulatedPlugin) -> None:
        self._left.pop(plugin.name, None)
        self.put_back(plugin)
        self.tell_if_over()


async def serve(plugins: Sequence[SimulatedPlugin], place: PluginPlace, members: Sequence[MemberState]) -> None:
    """Returns when each member was told. Cancelled, or in a dead era: the plugins are dead."""
    try:
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(member.watch()) for member in members]
            async with asyncio.TaskGroup() as side_by_side:
                turns = [side_by_side.create_task(_turns(plugin, place, members)) for plugin in plugins]
            for watch in watches:
                watch.cancel()
        for turn in turns:
            turn.result()
    finally:
        for member in members:
            member.leave()


async def _turns(plugin: SimulatedPlugin, place: PluginPlace, members: Sequence[MemberState]) -> None:
    waiting = [member for member in members if member.waits_for(plugin)]
    if plugin.takes_batches and len(waiting) > 1:
        await _Together(plugin, place, waiting).run()
    for member in waiting:
        if member.waits_for(plugin):
            await _alone(plugin, place, member)


async def _alone(plugin: SimulatedPlugin, place: PluginPlace, member: MemberState) -> None:
    begins = member.take_up(plugin)
    if place.closing.is_set():
        member.conclude(plugin, CLOSED, 0.0)
        return
    try:
        run = await run_plugin(plugin, place, member.job, member.content, member.halt, begins=begins)
    except MalboxError as error:
        member.lose(plugin, error)
    else:
        member.end(plugin, run)


class _Together:
    """A plugin's turn with several members at once."""

    def __init__(self, plugin: SimulatedPlugin, place: PluginPlace, members: Sequence[MemberState]) -> None:
        self._plugin = plugin
        self._place = place
        self._members = members
        self._all_over = asyncio.Event()
        self._began = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Members that still wait for the plugin afterwards are to be run one by one."""
        for member in self._members:
            if member.take_up(self._plugin):
                self._place.on_news(PluginStarted(task_id=member.job.task_id, plugin=self._plugin.name))
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(self._drop_when_halted(member)) for member in self._members]
            is_whole = await self._work()
            for watch in watches:
                watch.cancel()
        if is_whole:
            self._conclude_all(Ending(PluginStatus.COMPLETED))
        elif self._place.closing.is_set():
            self._conclude_all(CLOSED)

    async def _work(self) -> bool:
        """Whether the plugin gave its last word. If it did not, those members that are not over were put back."""
        world, place, name = self._place.world, self._place, self._plugin.name
        alone = (world.fortune("seconds", name, member.content).uniform(*self._plugin.seconds) for member in self._members)
        seconds = sum(alone) * _GAIN
        crashes = world.faults.strikes(Fault.PLUGIN_CRASHES, name)
        hangs = not crashes and world.faults.strikes(Fault.PLUGIN_HANGS, name)
        if crashes:
            seconds = world.drawn((0.0, seconds))
        limit_s = min(member.job.timeout_s for member in self._members) * _SHARE_OF_TIME
        is_too_long = hangs or seconds > limit_s
        rested = await world.take_or_until(
            place.era, limit_s if is_too_long else seconds, self._all_over.wait, place.closing.wait
        )
        if rested and not crashes and not is_too_long:
            return True
        if not place.closing.is_set():
            for member in self._open():
                self._put_back(member)
        if not crashes or not rested:
            await until_it_hears(self._plugin, place, place.cancel_grace_s)
        return False

    async def _drop_when_halted(self, member: MemberState) -> None:
        reason = await member.halt.wait()
        if member in self._open():
            member.conclude(self._plugin, stopped(reason), self._share_s())
        if not self._open():
            self._all_over.set()

    def _put_back(self, member: MemberState) -> None:
        member.put_back(self._plugin)
        if member.halt.reason is not None:
            member.stop(member.halt.reason)

    def _conclude_all(self, ending: Ending) -> None:
        for member in self._open():
            member.conclude(self._plugin, ending, self._share_s())

    def _open(self) -> list[MemberState]:
        return [member for member in self._members if member.waits_for(self._plugin)]

    def _share_s(self) -> float:
        return (asyncio.get_running_loop().time() - self._began) / len(self._members)
