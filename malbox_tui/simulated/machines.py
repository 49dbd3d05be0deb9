"""The hypervisor of a simulated world."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from malbox_tui.model.errors import MachineError, MachineMissing
from malbox_tui.model.machine import MachineSpec
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.machine_body import MachineBody
from malbox_tui.simulated.world import Span, World


class SimulatedProvider:
    """Implements `MachineProvider` for the machines of `world`; one that the world doesn't hold is missing.

    A cancelled revert or stop has its effect, or a part of it, or none, as the seed says.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._era = world.era

    async def open(self) -> None:
        """Nothing to get ready."""

    async def check(self, machine: MachineSpec) -> None:
        """As `MachineProvider.check`."""
        with self._call(machine, "check"):
            await self._take(machine, self._world.durations.check)
            self._existing(machine)
            if self._strikes(Fault.CHECK_FAILS, machine):
                raise MachineError(machine.name, "its hypervisor does not answer")

    async def revert(self, machine: MachineSpec) -> None:
        """As `MachineProvider.revert`. Failed or cut short: the machine is off, and as dirty as before."""
        with self._call(machine, "revert"):
            body = self._existing(machine)
            if body.busy:
                self._world.violations.append(f"machine {machine.name} was reverted while its guest was at work")
            body.switch_off()
            if self._strikes(Fault.REVERT_HANGS, machine):
                await self._world.hang(self._era)
            await self._unless_cancelled(machine, self._world.durations.revert, lambda: self._come_up(body))
            if self._strikes(Fault.REVERT_FAILS, machine):
                raise MachineError(machine.name, "its snapshot could not be loaded")
            self._come_up(body)

    async def stop(self, machine: MachineSpec) -> None:
        """As `MachineProvider.stop`. Failed: the machine runs on."""
        with self._call(machine, "stop"):
            body = self._existing(machine)
            if self._strikes(Fault.STOP_HANGS, machine):
                await self._world.hang(self._era)
            await self._unless_cancelled(machine, self._world.durations.stop, body.switch_off)
            if self._strikes(Fault.STOP_FAILS, machine):
                raise MachineError(machine.name, "it could not be switched off")
            body.switch_off()

    async def close(self) -> None:
        """Nothing to let go of."""

    def _strikes(self, fault: Fault, machine: MachineSpec) -> bool:
        return self._world.faults.strikes(fault, machine.name)

    @contextmanager
    def _call(self, machine: MachineSpec, name: str) -> Iterator[None]:
        self._world.check_era(self._era)
        body = self._world.machines.get(machine.name)
        if body is None:
            yield
            return
        if body.call is not None:
            self._world.violations.append(f"machine {machine.name} got the calls {body.call} and {name} at once")
        body.call = name
        try:
            yield
        finally:
            if self._era == self._world.era:
                body.call = None

    def _existing(self, machine: MachineSpec) -> MachineBody:
        body = self._world.machines.get(machine.name)
        if body is None or self._strikes(Fault.MACHINE_MISSING, machine):
            raise MachineMissing(machine.name, "the hypervisor knows no machine of this name")
        return body

    async def _take(self, machine: MachineSpec, span: Span) -> None:
        slow = self._strikes(Fault.MACHINE_SLOW, machine)
        await self._world.take(self._era, self._world.durations.slow if slow else span)

    async def _unless_cancelled(self, machine: MachineSpec, span: Span, effect: Callable[[], None]) -> None:
        """Take the time; a cancellation may come too late to stop the effect."""
        try:
            await self._take(machine, span)
        except asyncio.CancelledError:
            if self._era == self._world.era and self._world.chance.random() < 0.5:
                effect()
            raise

    def _come_up(self, body: MachineBody) -> None:
        name = body.spec.name
        if self._world.faults.strikes(Fault.REVERT_LEAVES_OFF, name):
            return
        up_at = asyncio.get_running_loop().time() + self._world.drawn(self._world.durations.boot)
        if self._world.faults.strikes(Fault.GUEST_NEVER_UP, name):
            up_at = math.inf
        if body.dirt and self._world.faults.strikes(Fault.REVERT_LEAVES_DIRT, name):
            body.pretend_revert(up_at)
        else:
            body.revert(up_at)
