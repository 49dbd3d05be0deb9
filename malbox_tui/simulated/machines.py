"""The hypervisor of a simulated world."""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from malbox_tui.model.errors import MachineError, MachineMisconfigured, MachineMissing, MachineUnable
from malbox_tui.model.machine import Downfall, MachineFacts, MachineSpec, Picture, PowerState, Throttle
from malbox_tui.simulated import screen
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.machine_body import MachineBody
from malbox_tui.simulated.world import Span, World

_PCAP_HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
"""A capture of Ethernet frames in which there is none (https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-03.html)."""
_FRAME = bytes.fromhex("ffffffffffff525400000001080600010800060400015254000000010a0000020000000000000a000001")
"""Who has 10.0.0.1? Tell 10.0.0.2."""
_PACKET = struct.pack("<IIII", 0, 0, len(_FRAME), len(_FRAME)) + _FRAME
_CORE = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 4, 62, 1, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0)
"""The head of an ELF core file of x86-64 with nothing in it."""
_UNKNOWN = "the hypervisor knows no machine of this name"
_MEMORY_BYTES = 4096
"""How much memory a dump holds."""


class SimulatedProvider:
    """Implements `MachineProvider` for the machines of `world`; one that the world doesn't hold is missing.

    A cancelled revert or stop has its effect, or a part of it, or none, as the seed says.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._era = world.era

    async def open(self) -> None:
        """Nothing to get ready."""

    async def check(self, machine: MachineSpec) -> MachineFacts:
        """As `MachineProvider.check`."""
        with self._call(machine, "check"):
            await self._take(machine, self._world.durations.check)
            body = self._existing(machine)
            if self._strikes(Fault.CHECK_FAILS, machine):
                raise MachineError(machine.name, "its hypervisor does not answer")
            if self._strikes(Fault.MACHINE_MISCONFIGURED, machine):
                raise MachineMisconfigured(machine.name, "its snapshot was taken while it was off; take one while it runs")
            return body.facts

    async def revert(self, machine: MachineSpec) -> None:
        """As `MachineProvider.revert`. Failed or cut short: the machine is off, and as dirty as before."""
        with self._call(machine, "revert"):
            body = self._existing(machine)
            if body.busy:
                self._world.violations.append(f"machine {machine.name} was reverted while its guest was at work")
            body.switch_off(Downfall.SWITCHED_OFF)
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
            await self._unless_cancelled(machine, self._world.durations.stop, lambda: body.switch_off(Downfall.SWITCHED_OFF))
            if self._strikes(Fault.STOP_FAILS, machine):
                raise MachineError(machine.name, "it could not be switched off")
            body.switch_off(Downfall.SWITCHED_OFF)

    async def power(self, machine: MachineSpec) -> PowerState:
        """As `MachineProvider.power`."""
        body = self._known(machine)
        await self._world.take(self._era, self._world.durations.look)
        return PowerState.RUNNING if body.running else PowerState.OFF

    async def until_down(self, machine: MachineSpec) -> Downfall:
        """As `MachineProvider.until_down`."""
        body = self._known(machine)
        while body.running:
            await self._world.take_or_until(self._era, None, body.change)
        return body.downfall

    async def screenshot(self, machine: MachineSpec) -> Picture:
        """As `MachineProvider.screenshot`: a picture that changes while something new runs in the machine, and then stands still."""
        body = self._able(machine, "nobody can look at its screen")
        await self._world.take(self._era, self._world.durations.look)
        if self._strikes(Fault.SCREENSHOT_FAILS, machine):
            raise MachineError(machine.name, "its screen could not be read")
        passed = asyncio.get_running_loop().time() - body.touched_at
        step = 0 if passed < 0 else min(screen.STEPS, 1 + int(passed / screen.STEP_S))
        return Picture("image/png", screen.picture(machine.name, len(body.processes), step))

    async def dump_memory(self, machine: MachineSpec, target: Path) -> None:
        """As `MachineProvider.dump_memory`."""
        body = self._able(machine, "its memory can't be read")
        run_number = body.run_number
        await self._world.take(self._era, self._world.durations.dump)
        if self._strikes(Fault.DUMP_FAILS, machine) or run_number != body.run_number:
            raise MachineError(machine.name, "its memory could not be written")
        self._world.leave_file(target, _CORE + bytes(_MEMORY_BYTES))

    async def capture(self, machine: MachineSpec, target: Path) -> SimulatedCapture:
        """As `MachineProvider.capture`."""
        body = self._able(machine, "its traffic can't be recorded")
        await self._world.take(self._era, self._world.durations.look)
        if self._strikes(Fault.CAPTURE_BREAKS, machine):
            raise MachineError(machine.name, "its traffic could not be recorded")
        self._world.leave_file(target, _PCAP_HEAD)
        return SimulatedCapture(self._world, body, target)

    async def throttle(self, machine: MachineSpec, limits: Throttle) -> None:
        """As `MachineProvider.throttle`."""
        with self._call(machine, "throttle"):
            body = self._known(machine)
            if not body.running:
                self._world.violations.append(f"machine {machine.name} was throttled while it was off")
            await self._world.take(self._era, self._world.durations.look)
            if self._strikes(Fault.MACHINE_UNABLE, machine):
                raise MachineUnable(machine.name, "what it sends can't be bound")
            body.throttle = limits

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

    def _known(self, machine: MachineSpec) -> MachineBody:
        self._world.check_era(self._era)
        if (body := self._world.machine(machine)) is None:
            raise MachineMissing(machine.name, _UNKNOWN)
        return body

    def _existing(self, machine: MachineSpec) -> MachineBody:
        body = self._known(machine)
        if self._strikes(Fault.MACHINE_MISSING, machine):
            raise MachineMissing(machine.name, _UNKNOWN)
        return body

    def _able(self, machine: MachineSpec, problem: str) -> MachineBody:
        """One that runs, and of which its hypervisor can do what is asked."""
        body = self._known(machine)
        if self._strikes(Fault.MACHINE_UNABLE, machine):
            raise MachineUnable(machine.name, problem)
        if not body.running:
            raise MachineError(machine.name, "it does not run")
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


class SimulatedCapture:
    """Implements `MachineCapture`: a packet is caught if something was put into the machine since it was switched on."""

    def __init__(self, world: World, body: MachineBody, target: Path) -> None:
        self._world = world
        self._era = world.era
        self._body = body
        self._target = target
        self._ended = False

    async def end(self) -> None:
        """As `MachineCapture.end`."""
        if self._ended:
            return
        self._ended = True
        await self._world.take(self._era, self._world.durations.look)
        self._world.leave_file(self._target, _PCAP_HEAD + (_PACKET if self._body.dirt else b""))
