"""The calls of one conversation with a simulated guest: while they go on the guest may be lost, and what no engine may do is noted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from malbox_tui.model.errors import GuestUnreachable
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.machine_body import MachineBody
from malbox_tui.simulated.world import Span, World


class GuestCalls:
    """Conversation `number` with the guest of one machine; it ends with the run of the machine that it began in."""

    def __init__(self, world: World, body: MachineBody, number: int) -> None:
        self.world = world
        self.era = world.era
        self.body = body
        self.name = body.spec.name
        self.number = number
        self.is_closed = False
        self._run_number = body.run_number
        self._under_way = 0

    @property
    def is_cut_off(self) -> bool:
        """The machine was switched on or off since it began, or its guest was lost."""
        return self._run_number != self.body.run_number

    def strikes(self, fault: Fault) -> bool:
        """Whether the fault strikes this machine now."""
        return self.world.faults.strikes(fault, self.name)

    @contextmanager
    def one(self, doing: str) -> Iterator[None]:
        """The body is one call. Raises `GuestUnreachable` when the guest was gone before."""
        with self.waiting(doing):
            self.check("before it was asked")
            yield

    @contextmanager
    def waiting(self, doing: str) -> Iterator[None]:
        """The body is a call that is answered also when the machine is off."""
        self.world.check_era(self.era)
        if self.is_closed:
            self.world.violations.append(f"machine {self.name}: {doing} in a conversation that was closed")
            raise GuestUnreachable(self.name, "the conversation was closed")
        if self.body.in_use - {self.number}:
            self.world.violations.append(f"machine {self.name}: {doing} while another conversation used it")
        run_number = self.body.run_number
        self._under_way += 1
        self.body.busy.add(self.number)
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way and run_number == self.body.run_number:
                self.body.busy.discard(self.number)

    def check(self, when: str) -> None:
        """Raises `GuestUnreachable` when the guest is gone, or starts."""
        if self.is_cut_off:
            raise GuestUnreachable(self.name, f"its guest was gone {when}")
        if self.body.answers_in(asyncio.get_running_loop().time()) > 0:
            raise GuestUnreachable(self.name, f"its guest was starting {when}")

    async def let_pass(self, span: Span, when: str) -> None:
        """Take the time that a call takes. Raises `GuestUnreachable`."""
        boots = self.body.boots
        await self.world.take_or_until(self.era, self.world.drawn(span), self.body.change)
        self.check(when)
        if boots != self.body.boots:
            raise GuestUnreachable(self.name, f"its guest started anew {when}")

    async def lose_guest(self, within: Span, when: str) -> None:
        """From some moment on it answers nothing. Raises `GuestUnreachable`."""
        await self.let_pass(within, when)
        self.body.lose_guest()
        self.check(when)

    def blame(self, what: str) -> None:
        """On the engine, unless the hypervisor lied to it."""
        (self.world.deceptions if self.body.lied else self.world.violations).append(f"machine {self.name}: {what}")
