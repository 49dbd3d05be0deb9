"""Programs in simulated guests. What one does to its machine happens while somebody waits for it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from malbox_tui.model.errors import GuestUnreachable
from malbox_tui.ports import GuestEnd, GuestExit
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.guest_calls import GuestCalls
from malbox_tui.simulated.world import Program

_FLOOD_BYTES = 1 << 20
_KILLED = 9


class SimulatedProgram:
    """Implements `GuestProgram`: `program`, which has just begun."""

    def __init__(self, calls: GuestCalls, program: Program, pid: int) -> None:
        self._calls = calls
        self._pid = pid
        self._boots = calls.body.boots
        self._printed = _printed(calls, program.output)
        self._exit: GuestExit | None = None
        self._killed = asyncio.Event()
        self._come_to_its_end, self._ends_at = self._drawn_fate(program)

    @property
    def pid(self) -> int:
        """As `GuestProgram.pid`."""
        return self._pid

    async def wait(self, max_output_bytes: int) -> GuestExit:
        """As `GuestProgram.wait`."""
        calls = self._calls
        with calls.waiting("wait"):
            while (end := self._end()) is None:
                left = self._ends_at - asyncio.get_running_loop().time()
                seconds = None if left == math.inf else max(0.0, left)
                if await calls.world.take_or_until(calls.era, seconds, calls.body.change, self._killed.wait):
                    self._come_to_its_end()
        cut = max(0, max_output_bytes)
        return GuestExit(end.code, end.output[:cut], end.end, is_whole=len(end.output) <= cut)

    async def kill(self) -> None:
        """As `GuestProgram.kill`."""
        with self._calls.one("kill"):
            await self._calls.let_pass(self._calls.world.durations.ask, "while a program was ended")
            if self._exit is None and self._ends_at <= asyncio.get_running_loop().time():
                self._come_to_its_end()
                self._calls.check("while a program was ended")
            if self._exit is None:
                self._over(GuestExit(_KILLED, self._printed, GuestEnd.KILLED))
                self._killed.set()

    async def output(self, max_bytes: int) -> bytes:
        """As `GuestProgram.output`: it prints all that it prints at once."""
        with self._calls.one("output"):
            await self._calls.let_pass(self._calls.world.durations.ask, "while it was asked for output")
        return self._printed[: max(0, max_bytes)]

    def _drawn_fate(self, program: Program) -> tuple[Callable[[], None], float]:
        """What it does at its end, and when that is."""
        calls, now = self._calls, asyncio.get_running_loop().time()

        def at_some_time() -> float:
            return now + calls.world.drawn((0.0, program.seconds))

        if calls.strikes(Fault.GUEST_LOST_IN_EXECUTE):
            return calls.body.lose_guest, at_some_time()
        if calls.strikes(Fault.GUEST_POWERED_OFF) or (program.code is None and not program.reboots):
            return calls.body.switch_off, at_some_time()
        if program.reboots or calls.strikes(Fault.GUEST_REBOOTED):
            return self._start_anew, at_some_time()
        if calls.strikes(Fault.SAMPLE_NEVER_ENDS):
            return lambda: None, math.inf
        return lambda: self._over(GuestExit(program.code, self._printed)), now + program.seconds

    def _start_anew(self) -> None:
        calls = self._calls
        calls.body.reboot(asyncio.get_running_loop().time() + calls.world.drawn(calls.world.durations.boot))

    def _end(self) -> GuestExit | None:
        """How it ended; None: it runs. Raises `GuestUnreachable`."""
        calls = self._calls
        if self._exit is None:
            if calls.is_cut_off and calls.body.running:
                raise GuestUnreachable(calls.name, "its guest was gone while the sample ran")
            if calls.is_cut_off:
                self._over(GuestExit(None, b"", GuestEnd.POWERED_OFF))
            elif calls.body.boots != self._boots:
                self._over(GuestExit(None, b"", GuestEnd.REBOOTED))
        return self._exit

    def _over(self, end: GuestExit) -> None:
        self._exit = end
        if not self._calls.is_cut_off:
            self._calls.body.processes.pop(self._pid, None)


def _printed(calls: GuestCalls, output: bytes) -> bytes:
    if calls.strikes(Fault.OUTPUT_FLOODS):
        return bytes(_FLOOD_BYTES)
    if output and calls.strikes(Fault.OUTPUT_TORN):
        return output[: calls.world.chance.randrange(len(output))]
    return output
