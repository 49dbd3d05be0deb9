"""Machines of libvirt (https://libvirt.org), of any number of hosts: where each is, its URI says.

1. Nothing but the configured domain of a machine is touched, and of its snapshots only the configured one is used; none is made,
   changed or deleted. The clean state may also be a saved image (`saved_image.py`).
2. Every call to libvirt is made in a thread (`crew.py`), over connections that others' hanging calls don't block (`line.py`), and that
   are opened again when they are lost (`link.py`). libvirt's own event loop turns in a thread (`binding.py`); libvirt's asyncio
   adapter isn't used: it is not safe with threads.
3. Moves of one machine come one at a time, also after one was cancelled whose thread goes on: the next begins when it is back. Only
   switching off doesn't wait, and then makes sure that what it overtook didn't switch the machine on again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from malbox_tui.machinery import agent
from malbox_tui.machinery.binding import LibvirtNotInstalled, start_event_loop
from malbox_tui.machinery.capture import Capture
from malbox_tui.machinery.claims import Claims
from malbox_tui.machinery.crew import Crew
from malbox_tui.machinery.domain_xml import DomainShape, parse_domain
from malbox_tui.machinery.hypervisor import Hypervisor
from malbox_tui.machinery.line import Kind
from malbox_tui.machinery.link import pause
from malbox_tui.machinery.memory import dump
from malbox_tui.machinery.place import is_local
from malbox_tui.machinery.power import downfall_of, power_of, switch_off, switch_off_gently
from malbox_tui.machinery.refusals import CANT, Code, Refusal, Unreachable
from malbox_tui.machinery.reverting import clean_xml, revert
from malbox_tui.machinery.screen import screenshot
from malbox_tui.machinery.throttling import throttle
from malbox_tui.machinery.warnings import warnings_of
from malbox_tui.model.errors import MachineError, MachineMisconfigured, MachineMissing, MachineUnable
from malbox_tui.model.machine import Downfall, MachineFacts, MachineSpec, Picture, PowerState, Throttle
from malbox_tui.ports import MachineCapture

T = TypeVar("T")

GRACEFUL_S = 5.0
"""So long a domain's process may take to end by itself; then it is killed."""
ASK_AGAIN_S = 1.0
"""How long to wait before a hypervisor that can't be reached is asked again whether a machine runs."""


class LibvirtProvider:
    """Implements `MachineProvider` and `AgentLine` for machines whose `uri` is libvirt's. Used on one event loop at a time."""

    def __init__(self) -> None:
        self._crew = Crew("libvirt")
        self._claims = Claims()
        self._hypervisors: dict[str, Hypervisor] = {}

    async def open(self) -> None:
        """As `MachineProvider.open`."""

    async def check(self, machine: MachineSpec) -> MachineFacts:
        """As `MachineProvider.check`."""
        self._claims.check_domain(machine)
        shape = await self._run(machine, _shape, control=True)
        if machine.channel == "qga" and not shape.has_agent_channel:
            raise MachineMisconfigured(machine.name, NO_AGENT)
        self._claims.take(machine, tuple(card.mac for card in shape.cards))
        return MachineFacts(memory_mb=shape.memory_mb, vcpus=shape.vcpus, warnings=warnings_of(shape))

    async def revert(self, machine: MachineSpec) -> None:
        """As `MachineProvider.revert`. Cancelled: it is reverted still, before anything else moves it."""
        self._claims.check_domain(machine)
        await self._run(machine, revert, Kind.MOVE)

    async def stop(self, machine: MachineSpec) -> None:
        """As `MachineProvider.stop`."""
        self._claims.check_domain(machine)
        try:
            await self._switch_off(machine)
        finally:
            self._claims.leave(machine)

    async def power(self, machine: MachineSpec) -> PowerState:
        """As `MachineProvider.power`."""
        return await self._run(machine, power_of, control=True)

    async def until_down(self, machine: MachineSpec) -> Downfall:
        """As `MachineProvider.until_down`."""
        watch = self._hypervisor(machine).watch
        while True:
            with watch.listening(machine.domain_name) as news:
                try:
                    downfall = await self._asked(machine, downfall_of, control=True)
                except (Unreachable, Refusal) as problem:
                    if isinstance(problem, Refusal) and not problem.lost:
                        raise self._in_words(machine, problem) from problem
                    await pause(ASK_AGAIN_S)
                    continue
                downfall = downfall or await news
            if downfall is not None:
                return downfall

    async def screenshot(self, machine: MachineSpec) -> Picture:
        """As `MachineProvider.screenshot`; of at most 16 MiB."""
        return await self._run(machine, screenshot)

    async def dump_memory(self, machine: MachineSpec, target: Path) -> None:
        """As `MachineProvider.dump_memory`. Cancelled: the machine goes on soon, and the file is removed."""
        given_up = threading.Event()
        try:
            await self._run(machine, lambda connection, machine: dump(connection, machine, target, given_up), again=False)
        finally:
            given_up.set()

    async def capture(self, machine: MachineSpec, target: Path) -> MachineCapture:
        """As `MachineProvider.capture`: of all its network cards, up to 1 GiB."""
        if not is_local(machine.uri):
            raise MachineUnable(machine.name, f"its traffic can't be recorded from this host: it runs on {machine.uri}")
        capture = Capture(machine, target, self._hypervisor(machine).link(machine.domain_name, Kind.LOOK), self._crew)
        try:
            await self._run(machine, capture.begin, again=False)
        except BaseException:
            capture.give_up()
            capture.remove()
            raise
        return capture

    async def throttle(self, machine: MachineSpec, limits: Throttle) -> None:
        """As `MachineProvider.throttle`. Of several limits that one can't be set of, the others are."""
        await self._run(machine, lambda connection, machine: throttle(connection, machine, limits))

    async def ask(self, machine: MachineSpec, request: str, limit_s: float) -> str:
        """As `AgentLine.ask`."""
        return await agent.ask(self._hypervisor(machine).link(machine.domain_name, Kind.AGENT), machine, request, limit_s)

    async def close(self) -> None:
        """As `MachineProvider.close`."""
        hypervisors = list(self._hypervisors.values())
        self._hypervisors.clear()
        for hypervisor in hypervisors:
            hypervisor.close()

    # --- private -----------------------------------------------------------------------------------------------------------------

    async def _switch_off(self, machine: MachineSpec) -> None:
        try:
            async with asyncio.timeout(GRACEFUL_S):
                await self._run(machine, switch_off_gently)
        except TimeoutError:
            await self._run(machine, switch_off, Kind.STOP)
        await self._run(machine, switch_off, Kind.MOVE)

    def _hypervisor(self, machine: MachineSpec) -> Hypervisor:
        if not machine.uri:
            raise MachineMisconfigured(machine.name, 'it has no uri: write uri = "qemu:///system", say, and its domain')
        try:
            start_event_loop()
        except LibvirtNotInstalled as error:
            raise MachineMisconfigured(machine.name, str(error)) from error
        if machine.uri not in self._hypervisors:
            self._hypervisors[machine.uri] = Hypervisor(machine.uri, self._crew)
        return self._hypervisors[machine.uri]

    async def _run(
        self,
        machine: MachineSpec,
        work: Callable[[Any, MachineSpec], T],
        kind: Kind = Kind.LOOK,
        *,
        control: bool = False,
        again: bool = True,
    ) -> T:
        """Make a call for a machine over its own connection, or the one for control. Raises `MachineError`."""
        try:
            return await self._asked(machine, work, kind, control=control, again=again)
        except (Refusal, Unreachable) as problem:
            raise self._in_words(machine, problem) from problem

    async def _asked(
        self,
        machine: MachineSpec,
        work: Callable[[Any, MachineSpec], T],
        kind: Kind = Kind.LOOK,
        *,
        control: bool = False,
        again: bool = True,
    ) -> T:
        hypervisor = self._hypervisor(machine)
        link = hypervisor.control if control else hypervisor.link(machine.domain_name, kind)
        return await link.run(lambda connection: work(connection, machine), kind, again=again)

    def _in_words(self, machine: MachineSpec, problem: Refusal | Unreachable) -> MachineError:
        if isinstance(problem, Unreachable):
            return MachineError(machine.name, str(problem))
        if problem.lost:
            return MachineError(machine.name, f"the connection to {machine.uri} was lost: {problem.words}")
        if problem.code == Code.NO_DOMAIN:
            return MachineMissing(machine.name, f"{machine.uri} has no domain {machine.domain_name!r} any more")
        if problem.code in CANT:
            return MachineUnable(machine.name, f"its hypervisor can't do that: {problem.words}")
        return MachineError(machine.name, problem.words)


NO_AGENT = (
    "it has no channel to a guest agent. Add <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel> "
    "to its devices, start qemu-ga in the guest, and take the snapshot again"
)


def _shape(connection: Any, machine: MachineSpec) -> DomainShape:
    return parse_domain(clean_xml(connection, machine))
