"""Who may work at the moment, over all tasks and benches: what `execution` of a manifest promises beyond its own task.

1. While an exclusive plugin works, no other plugin does.
2. A sequential plugin works on one task (or one batch) at a time, in the order in which they asked.
3. Nobody starves: who asks later than an exclusive plugin waits behind it.
4. Who works asks for nothing more until it has given back, so nobody waits in a circle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from malbox_tui.model.plan import Execution


class Ticket:
    """A wish to work. Either `withdraw` while it waits or `give_back` afterwards ends it; a second call does nothing."""

    def __init__(self, floor: Floor, plugin: str, execution: Execution) -> None:
        self.plugin = plugin
        self.execution = execution
        self._floor = floor
        self._answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @property
    def waits(self) -> bool:
        """It is neither granted nor withdrawn."""
        return not self._answer.done()

    async def granted(self) -> bool:
        """Whether it may work now; False when it was withdrawn before. Cancelled: it is withdrawn, or given back."""
        try:
            return await asyncio.shield(self._answer)
        except asyncio.CancelledError:
            self.give_back()
            raise

    def withdraw(self) -> None:
        """Wait no more."""
        if self.waits:
            self._answer.set_result(False)
            self._floor.drop(self)

    def give_back(self) -> None:
        """It works no more."""
        self.withdraw()
        self._floor.take_back(self)

    def grant(self) -> None:
        """To be called by the floor."""
        self._answer.set_result(True)


class Floor:
    """Grants tickets, first come, first served as far as that may be."""

    def __init__(self) -> None:
        self._working: set[Ticket] = set()
        self._waiting: list[Ticket] = []

    def ask(self, plugin: str, execution: Execution) -> Ticket:
        """A ticket, which may be granted already."""
        ticket = Ticket(self, plugin, execution)
        self._waiting.append(ticket)
        self._go_on()
        return ticket

    def drop(self, ticket: Ticket) -> None:
        """It waits no more."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            self._go_on()

    def take_back(self, ticket: Ticket) -> None:
        """It works no more."""
        if ticket in self._working:
            self._working.discard(ticket)
            self._go_on()

    def _go_on(self) -> None:
        for ticket in list(self._grantable()):
            self._waiting.remove(ticket)
            ticket.grant()

    def _grantable(self) -> Iterator[Ticket]:
        """Those that may work, each of which works from here on."""
        if any(ticket.execution is Execution.EXCLUSIVE for ticket in self._working):
            return
        in_turn = {ticket.plugin for ticket in self._working if ticket.execution is Execution.SEQUENTIAL}
        for ticket in self._waiting:
            if ticket.execution is Execution.EXCLUSIVE:
                if not self._working:
                    self._working.add(ticket)
                    yield ticket
                return
            if ticket.execution is Execution.SEQUENTIAL:
                if ticket.plugin in in_turn:
                    continue
                in_turn.add(ticket.plugin)
            self._working.add(ticket)
            yield ticket
