"""Everything that can be asked of a running engine: how it is, its tasks, what was done, what came in, what is kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from malbox_tui.engine import dues
from malbox_tui.engine.adapters import Adapters
from malbox_tui.engine.attempt import Attempt
from malbox_tui.engine.disk_floor import DiskFloor
from malbox_tui.engine.identifying import Identifying
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.newsroom import Newsroom
from malbox_tui.engine.profiles import Profiles
from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.engine.upkeep import Upkeep
from malbox_tui.engine.waiting import WaitingRoom
from malbox_tui.engine.worker_pool import WorkerPool
from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.intake import IntakePage, IntakeView, LineQuery
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.upkeep import Freed, SampleForm, StoreFigures


class LookDesk:
    """Answers what changes nothing, as `Client` says. `attempts` are those under way, by task."""

    def __init__(
        self,
        *,
        adapters: Adapters,
        newsroom: Newsroom,
        health: StoreHealth,
        pool: WorkerPool,
        machines: MachinePool,
        waiting: WaitingRoom,
        attempts: Mapping[int, Attempt],
        profiles: Profiles,
        identifying: Identifying,
        floor: DiskFloor,
        upkeep: Upkeep | None,
    ) -> None:
        self._adapters = adapters
        self._newsroom = newsroom
        self._health = health
        self._pool = pool
        self._machines = machines
        self._waiting = waiting
        self._attempts = attempts
        self._profiles = profiles
        self._identifying = identifying
        self._floor = floor
        self._upkeep = upkeep

    def overview(self, stopping: ShutdownMode | None) -> Overview:
        """See `Client`; `stopping` is how the engine ends, if it does."""
        now = self._adapters.wall.now()
        problem = self._health.problem
        return Overview(
            clock=now,
            position=self._newsroom.position,
            counts=self._newsroom.counts.by_state(),
            groups=self._pool.views(),
            workers=dues.of_workers(self._pool.worker_views(), self._attempts, now),
            machines=self._machines.views(),
            paused=self._pool.paused,
            stopping=stopping,
            isolation=self._adapters.runner.isolation,
            ended_per_minute=self._newsroom.throughput.per_minute(now),
            free_bytes=self._adapters.free_bytes(),
            store_failing=problem is not None,
            profiles=self._profiles.views,
            low_disk=self._floor.look(),
            floor_bytes=self._floor.floor_bytes,
            kept=None if self._upkeep is None else self._upkeep.latest,
            freed=Freed() if self._upkeep is None else self._upkeep.freed,
            troubles=(
                *(() if problem is None else (f"The store takes nothing: {problem}",)),
                *self._adapters.runner.troubles,
            ),
        )

    async def query(self, query: TaskQuery) -> TaskPage:
        """See `Client`."""
        page = await self._adapters.store.tasks(query, self._adapters.wall.now())
        return dues.of_tasks(self._identifying.suggest(self._waiting.explain(page)), self._attempts)

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """See `Client`."""
        return () if self._adapters.actions is None else await self._adapters.actions.actions(before, limit)

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """See `Client`."""
        return () if self._adapters.intakes is None else await self._adapters.intakes.intakes(before, limit)

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """See `Client`."""
        return IntakePage(intake=None) if self._adapters.intakes is None else await self._adapters.intakes.intake_lines(query)

    async def content(self, sha256: str, form: SampleForm, actor: str, origin: str) -> AsyncGenerator[bytes, None]:
        """See `Client`."""
        if self._upkeep is None:
            raise RefusedCommand("This engine keeps no contents that could be given out.")
        async with aclosing(self._upkeep.content(sha256, form, actor, origin)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def figures(self) -> StoreFigures:
        """See `Client`."""
        if self._upkeep is None:
            raise RefusedCommand("This engine has no store that could be counted.")
        return await self._upkeep.figures()
