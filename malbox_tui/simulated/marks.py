"""Marks in guests, kept in a simulated world."""

from __future__ import annotations

from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestMark
from malbox_tui.simulated.world import World


class SimulatedMarks:
    """Implements `MarkBook`; what is kept outlives the engine."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def kept(self, machine: MachineSpec) -> GuestMark | None:
        """As `MarkBook.kept`."""
        return self._world.marks.get(machine.name)

    async def keep(self, machine: MachineSpec, mark: GuestMark) -> None:
        """As `MarkBook.keep`."""
        self._world.marks[machine.name] = mark
        body = self._world.machine(machine)
        if body is not None:
            body.kept_mark = mark.word
