"""Small worlds under turned time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import PluginJob
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import World

M1 = MachineSpec(name="m1", provider="simulated", platform="windows")
M2 = MachineSpec(name="m2", provider="simulated", platform="linux")


def world(seed: int = 1, rates: Mapping[Fault, float] | None = None) -> World:
    """A world of two machines whose time is the running loop's."""
    return World(seed, asyncio.sleep, (M1, M2), rates)  # noqa: TID251 - turned time


def job(task_id: int = 1, **kept_out: str) -> PluginJob:
    """One attempt's work; `kept_out` maps plugins to reasons."""
    return PluginJob(task_id, f"token-{task_id}", "sample", kept_out)


@dataclass
class Stop:
    """A stop signal that a test gives."""

    reason: str | None = None

    def __post_init__(self) -> None:
        self._given = asyncio.Event()
        if self.reason is not None:
            self._given.set()

    def give(self, reason: str) -> None:
        self.reason = reason
        self._given.set()

    async def wait(self) -> str:
        await self._given.wait()
        return self.reason or ""


def elapsed_since(began: float) -> float:
    """Seconds of turned time."""
    return asyncio.get_running_loop().time() - began


def now() -> float:
    """The turned clock."""
    return asyncio.get_running_loop().time()
