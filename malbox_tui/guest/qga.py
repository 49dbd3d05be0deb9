"""Talking to guests through the QEMU guest agent, which needs no network in the guest.

Another agent, CAPE's over HTTP for one, is another `GuestChannel` under its own name in `MachineSpec.channel`: it reaches its guest by
`MachineSpec.address` instead of a line of the hypervisor, and can use `guest/linux.py` and `guest/windows.py` for what its own
commands can't do. Nothing above this package would know the difference.
"""

from __future__ import annotations

from collections.abc import Callable

from malbox_tui.guest.agent import Agent
from malbox_tui.guest.linux import Linux
from malbox_tui.guest.pause import patience, pause
from malbox_tui.guest.session import PowerOf, QgaSession
from malbox_tui.guest.system import GuestSystem
from malbox_tui.guest.windows import Windows
from malbox_tui.model.errors import GuestUnreachable
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import AgentLine, GuestSession

_KNOCK_S = 2.0
_KNOCK_EVERY_S = 0.25

_SYSTEMS: dict[str, Callable[[], GuestSystem]] = {"windows": Windows}
"""platform → its system; any other is taken for one like Linux."""


class QgaChannel:
    """Implements `GuestChannel`. `power` tells whether a machine runs: a guest that is silent because its machine went down, and one
    that starts anew, are no lost guests. One that is silent for `rejoin_s` under a running
    program is."""

    def __init__(self, line: AgentLine, power: PowerOf, rejoin_s: float) -> None:
        self._line = line
        self._power = power
        self._rejoin_s = rejoin_s

    async def connect(self, machine: MachineSpec) -> GuestSession:
        """As `GuestChannel.connect`. Raises `GuestRefused` for a guest that can't be used through its agent."""
        agent = Agent(self._line, machine)
        await _until_it_answers(agent)
        system = _SYSTEMS.get(machine.platform, Linux)()
        session = QgaSession(agent, machine, system, self._power, self._rejoin_s)
        await session.begin()
        return session


async def _until_it_answers(agent: Agent) -> None:
    for seconds in patience(_KNOCK_EVERY_S):
        try:
            return await agent.ping(_KNOCK_S)
        except GuestUnreachable:
            await pause(seconds)
    raise AssertionError("patience has no end")
