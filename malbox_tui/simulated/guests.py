"""Guests of a simulated world, and conversations with them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from malbox_tui.model.errors import GuestUnreachable
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestExit, GuestSession
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.machine_body import MachineBody
from malbox_tui.simulated.world import Span, World

_FLOOD_BYTES = 1 << 20

_FOLDERS = {"windows": "C:\\Users\\Public\\"}
_OTHER_FOLDER = "/tmp/"


class SimulatedChannel:
    """Implements `GuestChannel` for the machines of `world`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._era = world.era

    async def connect(self, machine: MachineSpec) -> GuestSession:
        """As `GuestChannel.connect`. A machine that is off is waited for, too."""
        body = self._world.machines.get(machine.name)
        if body is None:
            raise GuestUnreachable(machine.name, "there is no such machine")
        await self._until_it_answers(body)
        if self._world.faults.strikes(Fault.GUEST_REFUSES, machine.name):
            raise GuestUnreachable(machine.name, "its guest refused the connection")
        if body.in_use:
            self._world.violations.append(f"machine {machine.name} was connected to while a conversation used it")
        return SimulatedSession(self._world, body, next(self._world.numbers))

    async def _until_it_answers(self, body: MachineBody) -> None:
        while True:
            left = body.answers_in(asyncio.get_running_loop().time())
            # At least one step, so that connecting can always be cancelled.
            await self._world.take_or_until(self._era, None if left == math.inf else left, body.change)
            if left == 0.0 and body.answers_in(asyncio.get_running_loop().time()) == 0.0:
                return


class SimulatedSession:
    """Implements `GuestSession`; it ends with the run of the machine that it began in."""

    def __init__(self, world: World, body: MachineBody, number: int) -> None:
        self._world = world
        self._era = world.era
        self._body = body
        self._name = body.spec.name
        self._number = number
        self._run_number = body.run_number
        self._closed = False

    async def put(self, source: Path, name: str) -> str:
        """As `GuestSession.put`. What lies at `source` is what the world's `files` say; else something that is put only once."""
        if not name or "/" in name or "\\" in name:
            raise ValueError(f"{name!r} is not a plain file name")
        with self._at_work("put"):
            if not self._body.fresh and self._number not in self._body.in_use:
                self._blame(f"{source.name} was put into it after {self._body.dirt or 'who knows what'}")
            content = self._world.files.get(source, b"%d" % self._number)
            self._body.touch(f"{source} by conversation {self._number}")
            self._body.in_use.add(self._number)
            if self._strikes(Fault.GUEST_LOST_IN_PUT):
                await self._lose_guest(self._world.durations.put, "while a file was copied")
            await self._let_pass(self._world.drawn(self._world.durations.put), "while a file was copied")
        path = _FOLDERS.get(self._body.spec.platform, _OTHER_FOLDER) + name
        self._body.files[path] = content
        return path

    async def execute(self, path: str, max_output_bytes: int) -> GuestExit:
        """As `GuestSession.execute`. A path at which nothing lies ends with 127."""
        if path not in self._body.files:
            with self._at_work("execute"):
                return GuestExit(127, b"not found"[: max(0, max_output_bytes)])
        program = self._world.program_of(self._body.files[path])
        with self._at_work("execute"):
            self._body.in_use.add(self._number)
            if self._strikes(Fault.GUEST_LOST_IN_EXECUTE):
                await self._lose_guest((0.0, program.seconds), "while the sample ran")
            if program.code is None or self._strikes(Fault.GUEST_POWERED_OFF):
                await self._let_pass(self._world.drawn((0.0, program.seconds)), "while the sample ran")
                self._body.switch_off()
                return GuestExit(None)
            endless = self._strikes(Fault.SAMPLE_NEVER_ENDS)
            await self._let_pass(None if endless else program.seconds, "while the sample ran")
        return GuestExit(program.code, self._printed(program.output)[: max(0, max_output_bytes)])

    async def close(self) -> None:
        """As `GuestSession.close`. Cancelled: it is closed all the same."""
        if self._closed:
            return
        self._closed = True
        self._body.in_use.discard(self._number)
        await self._world.take(self._era, self._world.durations.hang_up)

    def _strikes(self, fault: Fault) -> bool:
        return self._world.faults.strikes(fault, self._name)

    @contextmanager
    def _at_work(self, doing: str) -> Iterator[None]:
        self._world.check_era(self._era)
        if self._closed:
            self._world.violations.append(f"machine {self._name}: {doing} in a conversation that was closed")
        self._check_reachable("before it was asked")
        if self._body.in_use - {self._number}:
            self._world.violations.append(f"machine {self._name}: {doing} while another conversation used it")
        if self._number in self._body.busy:
            self._world.violations.append(f"machine {self._name}: two calls of one conversation at once")
        run_number = self._body.run_number
        self._body.busy.add(self._number)
        try:
            yield
        finally:
            if run_number == self._body.run_number:
                self._body.busy.discard(self._number)

    def _blame(self, what: str) -> None:
        """On the engine, unless the hypervisor lied to it."""
        (self._world.deceptions if self._body.lied else self._world.violations).append(f"machine {self._name}: {what}")

    def _check_reachable(self, when: str) -> None:
        if self._closed or self._run_number != self._body.run_number:
            raise GuestUnreachable(self._name, f"its guest was gone {when}")

    async def _let_pass(self, seconds: float | None, when: str) -> None:
        await self._world.take_or_until(self._era, seconds, self._body.change)
        self._check_reachable(when)

    async def _lose_guest(self, within: Span, when: str) -> None:
        await self._let_pass(self._world.drawn(within), when)
        self._body.lose_guest()
        self._check_reachable(when)

    def _printed(self, output: bytes) -> bytes:
        if self._strikes(Fault.OUTPUT_FLOODS):
            return bytes(_FLOOD_BYTES)
        if output and self._strikes(Fault.OUTPUT_TORN):
            return output[: self._world.chance.randrange(len(output))]
        return output
