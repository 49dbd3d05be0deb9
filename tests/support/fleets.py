"""Two machines with what moves them, for the contract suites of machines and guests: each kind of machinery brings a fleet.

`on_every_fleet` makes a test of them; a kind that runs under turned time brings its own loop.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestChannel, GuestEnd, GuestExit, MachineProvider
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.guests import SimulatedChannel
from malbox_tui.simulated.machines import SimulatedProvider
from malbox_tui.simulated.world import Program, World
from tests.support.virtual_time import run_virtual


class Fleet(ABC):
    """`machine` and `other` exist and are off; `missing` doesn't exist. Nothing here takes longer than `deadline_s`."""

    provider: MachineProvider
    channel: GuestChannel
    machine: MachineSpec
    other: MachineSpec
    missing: MachineSpec
    deadline_s: float
    cancel_after: Sequence[int] = range(8)
    """How many turns of the loop calls are given that are to be cancelled."""

    @abstractmethod
    def program(self, does: GuestExit, seconds: float = 0.0, drops: Sequence[tuple[str, bytes]] = ()) -> Path:
        """A file that comes to this end when it is run in a guest, after having written `drops` beside itself, by name."""

    @abstractmethod
    def lay_out(self, content: bytes) -> Path:
        """A file of this host with this content."""

    @abstractmethod
    def lose_guest(self) -> None:
        """From now on the guest of `machine` answers nothing."""

    @abstractmethod
    def hold_guest_down(self) -> None:
        """After its next revert, the guest of `machine` does not come up."""

    @abstractmethod
    def check(self) -> None:
        """What must hold at the end of every test."""


FleetTest = Callable[[Fleet], Awaitable[None]]


class SimulatedFleet(Fleet):
    """Machines of a simulated world."""

    deadline_s = 200.0

    def __init__(self) -> None:
        self.machine, self.other, self.missing = (
            MachineSpec(name=name, provider="simulated", platform="linux") for name in ("m1", "m2", "none")
        )
        self.world = World(1, asyncio.sleep, (self.machine, self.other))  # noqa: TID251 - turned time
        self.provider = SimulatedProvider(self.world)
        self.channel = SimulatedChannel(self.world)

    def program(self, does: GuestExit, seconds: float = 0.0, drops: Sequence[tuple[str, bytes]] = ()) -> Path:
        path = self.lay_out(b"program %d" % len(self.world.files))
        reboots = does.end is GuestEnd.REBOOTED
        self.world.programs[self.world.files[path]] = Program(seconds, does.code, does.output, tuple(drops), reboots)
        return path

    def lay_out(self, content: bytes) -> Path:
        path = Path(f"/host/{len(self.world.files)}")
        self.world.files[path] = content
        return path

    def lose_guest(self) -> None:
        self.world.machines["m1"].lose_guest()

    def hold_guest_down(self) -> None:
        self.world.faults.inject(Fault.GUEST_NEVER_UP, "m1")

    def check(self) -> None:
        assert self.world.violations == []


def _simulated(test: FleetTest) -> None:
    fleet = SimulatedFleet()
    run_virtual(_passed(test, fleet))


async def _passed(test: FleetTest, fleet: Fleet) -> None:
    await fleet.provider.open()
    await test(fleet)
    await fleet.provider.close()
    fleet.check()


FLEETS: dict[str, Callable[[FleetTest], None]] = {"simulated": _simulated}
"""kind → how it runs a test of a fleet."""


def on_every_fleet(test: Callable[[Fleet], Coroutine[Any, Any, None]]) -> Callable[[str], None]:
    """Run `test` on a new fleet of each kind."""

    @pytest.mark.parametrize("kind", FLEETS)
    @functools.wraps(test)
    def on_one(kind: str) -> None:
        FLEETS[kind](test)

    on_one.__signature__ = inspect.signature(lambda kind: None)  # type: ignore[attr-defined]
    return on_one
