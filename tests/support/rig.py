"""A real engine on the in-memory store under turned time, with plugins and disks that a test scripts and machines that are simulated.

`with_engine(test)` runs `test(rig)` against a running engine and checks afterwards what must always hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from malbox_tui.config.settings import (
    AnalysisSettings,
    GeneralSettings,
    MachinerySettings,
    PluginSettings,
    ProfileSettings,
    RetentionSettings,
    Settings,
    WorkerSettings,
)
from malbox_tui.config.workers import ExecutionMode
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.engine import Engine
from malbox_tui.engine.place import SAMPLE_NAME
from malbox_tui.model.commands import Action, Command, CommandOutcome, ShutdownMode
from malbox_tui.model.due import Due
from malbox_tui.model.events import Event, Gap
from malbox_tui.model.machine import MachineSpec, MachineState, MachineView
from malbox_tui.model.overview import GroupView
from malbox_tui.model.queries import TaskQuery, TaskSort, Waiting
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Account, Offer, SubmissionOptions
from malbox_tui.model.task import RequirementClass, Task, TaskState
from malbox_tui.ports import GuestPlugin, Machinery
from malbox_tui.simulated.guests import SimulatedChannel
from malbox_tui.simulated.machines import SimulatedProvider
from malbox_tui.simulated.marks import SimulatedMarks
from malbox_tui.simulated.world import Durations, Program, World
from malbox_tui.store.memory import MemoryStore
from malbox_tui.store.upkeep_book import MemoryUpkeep
from tests.support.scripted import (
    CLEAN_RUN,
    INBOX,
    MALICIOUS,
    BreakableStore,
    JumpingClock,
    ScriptedLimits,
    ScriptedPauses,
    ScriptedQuarantine,
    ScriptedResults,
    ScriptedRunner,
    ScriptedStockroom,
)
from tests.support.virtual_time import run_virtual, settle_loop

__all__ = [
    "CLEAN_RUN",
    "MALICIOUS",
    "BreakableStore",
    "EngineRig",
    "ScriptedQuarantine",
    "ScriptedResults",
    "ScriptedRunner",
    "states",
    "survivor",
    "with_engine",
]

Test = Callable[["EngineRig"], Awaitable[None]]


@dataclass
class EngineRig:
    """A running engine and its scripted surroundings. `store` may outlive the engine, as a disk does."""

    engine: Engine
    store: BreakableStore
    quarantine: ScriptedQuarantine
    results: ScriptedResults
    runner: ScriptedRunner
    world: World
    limits: ScriptedLimits
    wall: JumpingClock
    stockroom: ScriptedStockroom
    events: list[Event] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    """What the engine reported as left, when it has ended; `ended_at`: when that was, on its clock. `life`: its run."""
    ended_at: float = 0.0
    life: asyncio.Task[list[int]] | None = None

    async def add(self, *contents: str, **options: object) -> Account:
        """Submit contents, each named after itself."""

        async def offers() -> AsyncIterator[Offer]:
            for content in contents:
                yield Offer(SampleName(content.encode(), b"/in/" + content.encode()), _chunks(content))

        return await self.engine.submit(offers(), SubmissionOptions(**options))  # type: ignore[arg-type]

    async def do(self, action: Action, **fields: str) -> CommandOutcome:
        return await self.engine.do(Command(action=action, actor="ana", **fields))

    async def tasks(self) -> dict[int, Task]:
        page = await self.engine.query(TaskQuery(sort=TaskSort.OLDEST, limit=1000))
        return {record.task.id: record.task for record in page.rows}

    async def task(self, task_id: int) -> Task:
        return (await self.tasks())[task_id]

    async def waiting(self, task_id: int) -> Waiting:
        """What a pending task waits for."""
        page = await self.engine.query(TaskQuery(sort=TaskSort.OLDEST, limit=1000))
        waiting = next(record.waiting for record in page.rows if record.task.id == task_id)
        assert waiting is not None, f"task {task_id} does not wait"
        return waiting

    async def due(self, task_id: int) -> Due | None:
        """What is due for a task, as both its record and its worker tell it; None when it has no attempt under way."""
        page = await self.engine.query(TaskQuery(sort=TaskSort.OLDEST, limit=1000))
        due = next(record.due for record in page.rows if record.task.id == task_id)
        for worker in (await self.engine.overview()).workers:
            if task_id in worker.task_ids:
                assert worker.dues[worker.task_ids.index(task_id)] == due, "the worker tells the same"
        return due

    async def group(self, name: str = "default") -> GroupView:
        return next(group for group in (await self.engine.overview()).groups if group.name == name)

    async def machine(self, name: str) -> MachineView:
        return next(machine for machine in (await self.engine.overview()).machines if machine.name == name)

    async def until_machine(self, name: str, *states: MachineState, within_s: float = 10_000.0) -> MachineView:
        """Turn time until a machine is in one of `states`."""
        async with asyncio.timeout(within_s):
            while (machine := await self.machine(name)).state not in states:
                await asyncio.sleep(0.1)  # noqa: TID251 - turned time
        return machine

    async def until_state(self, task_id: int, state: TaskState, within_s: float = 10_000.0) -> Task:
        """Turn time until a task is in `state`, which is to last a tenth of a second at least."""
        await self.until(lambda: self.store._tasks[task_id].state is state, within_s)
        return self.store._tasks[task_id]

    async def all_final(self, within_s: float = 10_000.0) -> dict[int, Task]:
        """Turn time until every task is final."""
        async with asyncio.timeout(within_s):
            while not all(task.state.is_final for task in (await self.tasks()).values()):
                await asyncio.sleep(0.1)  # noqa: TID251 - turned time
        return await self.tasks()

    async def until(self, condition: Callable[[], bool], within_s: float = 10_000.0) -> None:
        """Turn time until `condition` holds."""
        async with asyncio.timeout(within_s):
            while not condition():
                await asyncio.sleep(0.1)  # noqa: TID251 - turned time

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # noqa: TID251 - turned time

    def bodies(self, kind: type) -> list[object]:
        return [event.body for event in self.events if isinstance(event.body, kind)]


LINUX = RequirementClass(task_type="dynamic", platform="linux")
"""A task for any Linux machine."""


def spec(name: str, **fields: object) -> MachineSpec:
    """A simulated Linux machine."""
    return MachineSpec(**{"name": name, "provider": "simulated", "platform": "linux", **fields})  # type: ignore[arg-type]


def batching(size: int = 4, wait_s: float = 2.0, **fields: object) -> WorkerSettings:
    """A preferred worker group whose workers run host-only tasks in batches."""
    settings = {
        "name": "batch",
        "priority": 9,
        "execution_mode": ExecutionMode.BATCH,
        "max_batch_size": size,
        "batch_timeout_ms": int(wait_s * 1000),
        "max_workers": 2,
    }
    return WorkerSettings(**{**settings, **fields})  # type: ignore[arg-type]


QUICK = Durations(check=(0.1, 0.1), revert=(1.0, 1.0), boot=(2.0, 2.0), stop=(0.1, 0.1), put=(0.5, 0.5), hang_up=(0.0, 0.0))
"""How long machines take: 3.1 s to be proven clean, 0.1 s to be switched off."""


def with_engine(
    test: Test,
    *,
    min_workers: int = 1,
    max_workers: int = 4,
    idle_s: float = 60.0,
    timeout_s: float = 300.0,
    analysis: AnalysisSettings | None = None,
    groups: Sequence[WorkerSettings] = (),
    machines: Sequence[MachineSpec] = (),
    machinery: MachinerySettings | None = None,
    sample: Program | None = None,
    store: MemoryStore | None = None,
    runner: ScriptedRunner | None = None,
    prepare: Callable[[EngineRig], object] = lambda rig: None,
    stop: ShutdownMode | None = ShutdownMode.GIVE_BACK,
    leaves: bool = False,
    guest_plugins: Sequence[GuestPlugin] = (),
    plugins: PluginSettings | None = None,
    profiles: Sequence[ProfileSettings] = (),
    pauses: ScriptedPauses | None = None,
    retention: RetentionSettings | None = None,
) -> EngineRig:
    """Run `test` against a running engine, stop it (`stop` None: the test does), and check what must always hold.

    `sample` is what every sample does in a guest. `prepare` is called before the engine opens. `leaves`: something is left at the end.
    With `retention` the engine has a stockroom, and sees how much of the disk is free.
    """
    settings = Settings(
        general=GeneralSettings(min_workers=min_workers, max_workers=max_workers, idle_timeout_ms=int(idle_s * 1000)),
        workers=tuple(groups),
        analysis=analysis or AnalysisSettings(timeout_s=timeout_s),
        machinery=machinery or MachinerySettings(),
        plugins=plugins or PluginSettings(),
        profiles=tuple(profiles),
        retention=retention or RetentionSettings(),
    )

    async def live() -> EngineRig:
        rig = built(
            settings,
            machines,
            store or BreakableStore(),
            runner or ScriptedRunner(),
            sample,
            guest_plugins,
            pauses,
            keeps=retention is not None,
        )
        prepare(rig)
        life = rig.life = await started(rig)
        listening = asyncio.get_running_loop().create_task(_listen(rig))
        await settle_loop()
        try:
            await test(rig)
        finally:
            if stop is not None:
                rig.engine.stop(stop)
            rig.left = await life
            rig.ended_at = rig.wall.now()
        await listening
        if not leaves:
            await check_end(rig)
        return rig

    return run_virtual(live())


def built(
    settings: Settings,
    machines: Sequence[MachineSpec],
    store: MemoryStore,
    runner: ScriptedRunner,
    sample: Program | None = None,
    guest_plugins: Sequence[GuestPlugin] = (),
    pauses: ScriptedPauses | None = None,
    *,
    keeps: bool = False,
) -> EngineRig:
    """An engine that does not run yet, with its surroundings; `sample` is what every sample does in a guest."""
    world = World(1, asyncio.sleep, machines, durations=QUICK)  # noqa: TID251 - turned time
    world.files[INBOX / SAMPLE_NAME] = b"any sample"
    world.programs[b"any sample"] = sample or Program(seconds=5.0, output=b"hello")
    machinery = Machinery(machines, {"simulated": SimulatedProvider(world)}, {"simulated": SimulatedChannel(world)})
    quarantine, results, limits, wall = ScriptedQuarantine(), ScriptedResults(), ScriptedLimits(), JumpingClock()
    results.files = world.files
    stockroom = ScriptedStockroom(quarantine, results)
    adapters = Adapters(
        store,
        quarantine,
        results,
        runner,
        wall,
        machinery,
        limits,
        marks=SimulatedMarks(world),
        actions=store,
        intakes=store,
        pauses=pauses or ScriptedPauses(),
        guest_plugins=guest_plugins,
        upkeep=MemoryUpkeep(store) if keeps else None,
        stockroom=stockroom if keeps else None,
        free_bytes=lambda: stockroom.free_bytes if keeps else None,
    )
    engine = Engine(settings, adapters)
    return EngineRig(engine, store, quarantine, results, runner, world, limits, wall, stockroom)


async def started(rig: EngineRig) -> asyncio.Task[list[int]]:
    """The engine's life, when it is ready. Raises what kept it from becoming so."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    life = loop.create_task(rig.engine.run(ready.set))
    readiness = loop.create_task(ready.wait())
    await asyncio.wait({life, readiness}, return_when=asyncio.FIRST_COMPLETED)
    readiness.cancel()
    if life.done() and life.exception() is not None:
        await life
    return life


async def check_end(rig: EngineRig) -> None:
    """Nothing is left running, owned or in use."""
    assert rig.left == []
    assert rig.runner.benches_out == 0
    assert not len(rig.engine._tracker), rig.engine._tracker
    assert rig.world.violations == []
    queue, engine = rig.engine._queue, rig.engine
    kept = (engine._tokens, engine._driver.attempts, queue._priorities, queue._ended)
    assert not any(kept), f"books that were not closed: {kept}"
    for machine in rig.engine._machines._machines.values():
        is_ours = machine.state not in (MachineState.DISABLED, MachineState.MISSING)
        assert machine.lease is None
        assert not (is_ours and rig.world.machines[machine.spec.name].running), machine
    await rig.store.open(lambda _events: None)
    assert not await rig.store.owned()
    await rig.store.close()


def survivor(store: MemoryStore) -> MemoryStore:
    """What a disk would hold if the engine were killed at this moment."""
    copy = MemoryStore()
    copy._engine_id = store._engine_id
    for name, value in vars(store).items():
        if isinstance(value, dict | list | set) and name != "_waiting":
            setattr(copy, name, value.copy())
    copy._epoch, copy._last_task_id, copy._removals = store._epoch, store._last_task_id, store._removals
    return copy


async def _listen(rig: EngineRig) -> None:
    async for item in rig.engine.events(None):
        assert not isinstance(item, Gap)
        rig.events.append(item)


async def _chunks(content: str) -> AsyncIterator[bytes]:
    yield content.encode()


def states(tasks: dict[int, Task]) -> list[TaskState]:
    """The states in the order of ids."""
    return [task.state for _, task in sorted(tasks.items())]
