"""Where an attempt works: on one bench, its own or that of its batch, and with at most one machine; left once, whatever happened."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from malbox_tui.engine.attempt_time import AttemptTime
from malbox_tui.engine.batch import Batch
from malbox_tui.engine.goodbye import say_goodbye
from malbox_tui.engine.machine import MachineLease
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.ports import Findings, GuestSession, PluginBench, PluginJob, PluginRunner

log = logging.getLogger(__name__)

SAMPLE_NAME = "sample"
"""What a sample is called where plugins and guests see it: its own name never becomes part of a path."""


class Place:
    """The place of one attempt at the task `task_id`. `machine_failure` is why its machine failed it; None if it didn't."""

    def __init__(
        self, runner: PluginRunner, machines: MachinePool, lease: MachineLease | None, batch: Batch | None, task_id: int
    ) -> None:
        self.session: GuestSession | None = None
        self.machine_failure: str | None = None
        self._runner = runner
        self._machines = machines
        self._lease = lease
        self._batch = batch
        self._task_id = task_id
        self._bench: PluginBench | None = None

    @property
    def bench(self) -> PluginBench:
        """What `take` took."""
        assert self._bench is not None, "a place is taken before it is used"
        return self._bench

    @property
    def sample_name(self) -> str:
        """What the sample is called in the inbox. On a shared bench each task's has a name of its own."""
        return SAMPLE_NAME if self._batch is None else f"{SAMPLE_NAME}-{self._task_id}"

    @property
    def sample_path(self) -> Path:
        """Where the sample is laid out."""
        return self.bench.inbox / self.sample_name

    async def take(self, limits: ResourceLimits) -> None:
        """Get a bench."""
        self._bench = await (self._runner.acquire(limits) if self._batch is None else self._batch.take(limits))

    async def gather(self, time: AttemptTime) -> None:
        """Wait for the others of the batch, if there is one; the clock stands meanwhile, and until plugins take the sample up."""
        if self._batch is not None:
            time.stand()
            await self._batch.gather(self._task_id)

    async def bring_up(self, limits: ResourceLimits) -> None:
        """Get the machine up and answering, its network within these limits."""
        if self._lease is not None:
            self.session = await self._machines.start(self._lease, limits)

    async def run_plugins(self, job: PluginJob, time: AttemptTime) -> Findings:
        """Run the plugins on this host, with those of the others of the batch, if there is one."""
        if self._batch is None:
            return await self.bench.run(job, time.token)
        return await self._batch.run(job, time.token, lambda works: time.go() if works else time.stand())

    async def leave_machine(self) -> None:
        """Give the machine back, in one step before anything else. A second call does nothing."""
        if self._lease is not None:
            self._machines.release(self._lease, self.machine_failure)
        session, self.session = self.session, None
        if session is not None:
            await say_goodbye(session)

    async def leave(self) -> None:
        """Give everything back; the machine first, since nothing that follows may keep it."""
        bench, self._bench = self._bench, None
        try:
            await self.leave_machine()
        finally:
            if self._batch is not None:
                if (given_back := self._batch.leave(self._task_id)) is not None:
                    await asyncio.shield(given_back)
            elif bench is not None:
                await self._runner.release(bench)
