"""Host plugins of a simulated world: processes that take time, find things, and break."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from malbox_tui.model.errors import MalboxError, PluginUnavailable, StoreError
from malbox_tui.model.events import EventBody
from malbox_tui.model.limits import UNLIMITED, ResourceLimits
from malbox_tui.model.plan import Plan, PlannedPlugin, plan_of
from malbox_tui.model.profile import Profile
from malbox_tui.model.report import Identification
from malbox_tui.ports import BatchMember, Findings, PluginBench, PluginInfo, PluginJob, PluginsRead, ResultStore, StopSignal
from malbox_tui.simulated.batch import MemberState, serve
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.plugin_run import (
    PLUGINS,
    PluginPlace,
    SimulatedPlugin,
    identified,
    kind_of,
    not_run,
    run_plugin,
    skipped,
)
from malbox_tui.simulated.world import World

_KNOWN_AT_ONCE = 0.2

_INBOXES = Path("/simulated")

_UNWRITABLE = "The results of the plugins could not be written."


class SimulatedRunner:
    """Implements `PluginRunner`.

    `cancel_grace_s`: how long a plugin that doesn't hear a stop is let go on, `flush_grace_s` when its time is over. `results`: where
    reports are written; None: runs refer to reports that nobody wrote. `on_news` is told what the plugins do. `order`: the tasks that
    were run, in order of their begin.
    """

    def __init__(
        self,
        world: World,
        plugins: Sequence[SimulatedPlugin] = PLUGINS,
        *,
        cancel_grace_s: float = 5.0,
        flush_grace_s: float = 10.0,
        results: ResultStore | None = None,
        on_news: Callable[[EventBody], None] = lambda news: None,
    ) -> None:
        self.order: list[int] = []
        self._plugins = tuple(plugins)
        self._place = PluginPlace(world, world.era, cancel_grace_s, flush_grace_s, results, on_news, asyncio.Event())
        self._world = world
        self._era = world.era
        self._idle: list[SimulatedBench] = []
        self._used: set[SimulatedBench] = set()
        self._numbers = itertools.count(1)
        self._opened = False

    @property
    def isolation(self) -> str:
        """As `PluginRunner.isolation`."""
        return "simulated: nothing runs"

    @property
    def plan(self) -> Plan:
        """As `PluginRunner.plan`: all begin at once."""
        return plan_of([PlannedPlugin(name=plugin.name) for plugin in self._plugins])

    @property
    def troubles(self) -> Sequence[str]:
        """As `PluginRunner.troubles`; there are none."""
        return ()

    @property
    def benches_out(self) -> int:
        """How many benches are in use."""
        return len(self._used)

    @property
    def benches(self) -> int:
        """How many benches there are, in use or idle."""
        return len(self._used) + len(self._idle)

    @property
    def running(self) -> frozenset[int]:
        """The tasks that plugins work on now."""
        return frozenset(task_id for bench in self._used for task_id in bench.tasks)

    async def open(self) -> Sequence[PluginInfo]:
        """As `PluginRunner.open`."""
        self._opened = True
        return [PluginInfo(plugin.name, plugin.version, plugin.description, plugin.task_types) for plugin in self._plugins]

    async def acquire(self, limits: ResourceLimits = UNLIMITED) -> PluginBench:
        """As `PluginRunner.acquire`. Raises `PluginUnavailable`."""
        self._check_open()
        bench = self._idle_with(limits) or SimulatedBench(self, self._world, f"bench-{next(self._numbers)}", limits)
        self._used.add(bench)
        try:
            slow = self._strikes(Fault.ACQUIRE_SLOW, bench.name)
            await self._world.take(self._era, self._world.durations.slow if slow else self._world.durations.inbox)
            self._check_open()
            if self._strikes(Fault.ACQUIRE_FAILS, bench.name):
                raise PluginUnavailable("host", "its folder can't be made: no space left on device")
        except BaseException:
            self._take_back(bench, keep=True)
            raise
        if bench.laid_out():
            self._world.violations.append(f"{bench.name} was handed out with something in its inbox")
        return bench

    async def release(self, bench: PluginBench) -> None:
        """As `PluginRunner.release`. One whose inbox can't be emptied is ended.

        Cancelled: it is taken back all the same. A failure (`StoreError`) is none that the port knows of: it is there to show what
        an adapter's own fault would come to.
        """
        self._world.check_era(self._era)
        if not isinstance(bench, SimulatedBench) or bench not in self._used:
            self._world.violations.append("a bench was given back that was not out")
            return
        if bench.tasks:
            self._world.violations.append(f"{bench.name} was given back while {_named(bench.tasks)} ran on it")
        slow = self._strikes(Fault.RELEASE_SLOW, bench.name)
        fails = self._strikes(Fault.RELEASE_FAILS, bench.name)
        try:
            await self._world.take(self._era, self._world.durations.slow if slow or fails else self._world.durations.inbox)
            if fails:
                raise StoreError(f"The inbox of {bench.name} could not be emptied.")
        finally:
            self._take_back(bench, keep=not fails)

    async def trim(self, benches: int) -> None:
        """As `PluginRunner.trim`."""
        self._world.check_era(self._era)
        surplus = max(0, min(len(self._idle), self.benches - benches))
        del self._idle[:surplus]

    async def reload(self, profiles: Sequence[Profile] | None = None) -> PluginsRead:
        """As `PluginRunner.reload`: nothing changes in this world."""
        return PluginsRead(await self.open())

    def tell(self, news: EventBody) -> None:
        """As `PluginRunner.tell`: nobody wants it."""

    async def watch(self) -> None:
        """As `PluginRunner.watch`: nobody is unwell."""
        await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """As `PluginRunner.close`. Runs that go on are cut."""
        self._place.closing.set()
        self._idle.clear()

    async def look_at(self, bench: SimulatedBench, sample_name: str) -> Identification | None:
        """What a bench of this runner does to identify a sample."""
        if (plugin := next((plugin for plugin in self._plugins if plugin.identifies), None)) is None:
            return None
        await self._world.take(self._era, plugin.seconds)
        content = self._world.files.get(bench.inbox / sample_name, sample_name.encode())
        # Few are known at once: most of what is told here is for one platform, and runs nowhere else.
        is_known = self._world.fortune("known", content).random() < _KNOWN_AT_ONCE
        return kind_of(self._world, content) if is_known else None

    async def work(self, bench: SimulatedBench, job: PluginJob, stop: StopSignal) -> Findings:
        """What a bench of this runner does."""
        self._begin(bench, job)
        taking_part = [plugin for plugin in self._plugins if plugin.name not in job.kept_out]
        if stop.reason is not None:
            return Findings(
                (*(not_run(plugin, stop.reason, job.subject) for plugin in taking_part), *skipped(self._plugins, job))
            )
        if self._strikes(Fault.BENCH_BREAKS, bench.name):
            await self._world.take(self._era, self._world.durations.disk)
            raise StoreError(_UNWRITABLE)
        content = self._content(bench, job)
        try:
            async with asyncio.TaskGroup() as group:
                runs = [group.create_task(run_plugin(plugin, self._place, job, content, stop)) for plugin in taking_part]
        except BaseExceptionGroup as failures:
            raise _ours(failures) from failures
        done = [run.result() for run in runs]
        return Findings((*done, *skipped(self._plugins, job)), identified(self._world, taking_part, done, content))

    async def work_on_batch(self, bench: SimulatedBench, members: Sequence[BatchMember]) -> None:
        """What a bench of this runner does with several tasks."""
        states = []
        for member in members:
            self._begin(bench, member.job)
            state = MemberState(member, self._plugins, self._place, self._content(bench, member.job))
            states.append(state)
            if member.stop.reason is not None:
                state.stop(member.stop.reason)
            elif self._strikes(Fault.BENCH_BREAKS, bench.name):
                state.lose(None, StoreError(_UNWRITABLE))
            state.tell_if_over()
        await serve(self._plugins, self._place, states)

    def _begin(self, bench: SimulatedBench, job: PluginJob) -> None:
        if bench not in self._used:
            self._world.violations.append(f"task {job.task_id} ran on {bench.name}, which was given back")
        self.order.append(job.task_id)

    def _content(self, bench: SimulatedBench, job: PluginJob) -> bytes:
        return self._world.files.get(bench.inbox / job.sample_name, b"%d" % job.task_id)

    def _idle_with(self, limits: ResourceLimits) -> SimulatedBench | None:
        for bench in reversed(self._idle):
            if bench.limits == limits:
                self._idle.remove(bench)
                return bench
        return None

    def _check_open(self) -> None:
        if not self._opened or self._place.closing.is_set():
            raise PluginUnavailable("host", "the plugins are not open")

    def _strikes(self, fault: Fault, subject: str) -> bool:
        self._world.check_era(self._era)
        return self._world.faults.strikes(fault, subject)

    def _take_back(self, bench: SimulatedBench, *, keep: bool) -> None:
        if self._era != self._world.era:
            return
        for path in bench.laid_out():
            del self._world.files[path]
        self._used.discard(bench)
        if keep and not self._place.closing.is_set():
            self._idle.append(bench)


class SimulatedBench:
    """Implements `PluginBench`. `tasks`: what runs on it now. `limits`: what it was acquired with. Its inbox is no folder of this
    host."""

    def __init__(self, runner: SimulatedRunner, world: World, name: str, limits: ResourceLimits) -> None:
        self.name = name
        self.limits = limits
        self.tasks: set[int] = set()
        self._runner = runner
        self._world = world

    @property
    def inbox(self) -> Path:
        """As `PluginBench.inbox`."""
        return _INBOXES / self.name

    def laid_out(self) -> list[Path]:
        """What lies in the inbox."""
        return [path for path in self._world.files if path.parent == self.inbox]

    async def identify(self, sample_name: str) -> Identification | None:
        """As `PluginBench.identify`."""
        return await self._runner.look_at(self, sample_name)

    async def run(self, job: PluginJob, stop: StopSignal) -> Findings:
        """As `PluginBench.run`. Raises `StoreError` when the results can't be written."""
        with self._running([job]):
            return await self._runner.work(self, job, stop)

    async def run_batch(self, members: Sequence[BatchMember]) -> None:
        """As `PluginBench.run_batch`."""
        with self._running([member.job for member in members]):
            await self._runner.work_on_batch(self, [self._noting_its_end(member) for member in members])

    @contextmanager
    def _running(self, jobs: Sequence[PluginJob]) -> Iterator[None]:
        wanted = [job.task_id for job in jobs]
        if self.tasks:
            self._world.violations.append(f"{_named(wanted)} ran on {self.name} beside {_named(self.tasks)}")
        if len(set(wanted)) < len(jobs) or len({job.sample_name for job in jobs}) < len(jobs):
            self._world.violations.append(f"a batch on {self.name} has a task or a sample twice")
        self.tasks = set(wanted)
        try:
            yield
        finally:
            self.tasks = set()

    def _noting_its_end(self, member: BatchMember) -> BatchMember:
        def tell(found: Findings | MalboxError) -> None:
            self.tasks.discard(member.job.task_id)
            member.on_found(found)

        return replace(member, on_found=tell)


def _named(tasks: Iterable[int]) -> str:
    numbers = sorted(tasks)
    return f"task{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _ours(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first of our own errors (the result store's), else the first there is."""
    found = list(failures.exceptions)
    return next((failure for failure in found if isinstance(failure, MalboxError)), found[0])
