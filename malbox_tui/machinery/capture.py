"""A running machine's network traffic, recorded by QEMU's filter-dump: for one run, without touching the snapshot's XML.

Each network card's packets come through a pipe whose write end is handed to QEMU's monitor; all are merged into one file here. QEMU
opens the pipe by its own descriptor, `/proc/self/fd/N`, so no path has to be reachable for it, and no rule of a security module
stands in the way. When QEMU ends, the pipe does, and the file is whole.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path
from typing import Any

from malbox_tui.machinery.binding import libvirt_module, qemu_module
from malbox_tui.machinery.crew import Crew
from malbox_tui.machinery.domain_xml import NetworkCard, parse_domain
from malbox_tui.machinery.domains import find_domain
from malbox_tui.machinery.drain import Drain, new_file
from malbox_tui.machinery.link import Link
from malbox_tui.machinery.monitor import MonitorRefused, pass_file, run_command, take_file_back
from malbox_tui.machinery.pcap import PcapFile, PcapStream
from malbox_tui.machinery.refusals import Refusal, Unreachable
from malbox_tui.model.errors import MachineError, MachineUnable
from malbox_tui.model.machine import MachineSpec

MAX_BYTES = 1024**3
"""A recording ends there: how much a machine sends is the sample's choice."""
DETACH_S = 10.0
"""How long the hypervisor may take to end a recording; without its help the rest is left out."""
REST_S = 2.0
"""How long what is in the pipes may take to be written."""


class Capture:
    """Implements `MachineCapture`."""

    def __init__(self, machine: MachineSpec, target: Path, link: Link, crew: Crew) -> None:
        self._machine = machine
        self._target = target
        self._link = link
        self._crew = crew
        self._file: PcapFile | None = None
        self._filters: dict[str, Drain] = {}
        self._ended = False
        self._given_up = False

    def begin(self, connection: Any, machine: MachineSpec) -> None:
        """Record all network cards. Raises `MachineUnable`, and `MachineError`, also when it is given up; nothing is left then."""
        domain = find_domain(connection, machine)
        if not hasattr(qemu_module(), "qemuMonitorCommandWithFiles"):
            raise MachineUnable(machine.name, "its traffic can't be recorded: that takes libvirt 8.2 or newer")
        if not domain.isActive():
            raise MachineError(machine.name, "its traffic can't be recorded: it is off")
        cards = parse_domain(domain.XMLDesc(0)).cards
        if not cards:
            raise MachineUnable(machine.name, "its traffic can't be recorded: it has no network card")
        try:
            self._file = PcapFile(new_file(self._target), MAX_BYTES)
        except OSError as error:
            raise MachineError(machine.name, f"its traffic can't be recorded: {error}") from None
        try:
            for card in cards:
                self._attach(domain, card, self._file)
            if self._given_up:
                raise MachineError(machine.name, "the recording of its traffic was given up before it began")
        except BaseException:
            self.give_up()
            self.remove()
            raise

    async def end(self) -> None:
        """As `MachineCapture.end`. Cancelled: what is not written yet is left out."""
        if self._ended:
            return
        self._ended = True
        try:
            async with asyncio.timeout(DETACH_S):
                await self._link.run(self._detach)
                await self._crew.run(self._write_rest)
        except (TimeoutError, Refusal, Unreachable, MachineError):
            # It can't be asked, or it is gone with its filters: the pipes end here then.
            return
        finally:
            self.give_up()

    def give_up(self) -> None:
        """End it here; QEMU notices at the next packet, and stops recording."""
        # Set before the drains are looked through: who adds one looks at it afterwards.
        self._given_up = True
        for drain in list(self._filters.values()):
            drain.give_up()
        if self._file is not None:
            self._file.close()

    def remove(self) -> None:
        """Remove what was recorded, if it was this capture that made the file."""
        if self._file is not None:
            self._target.unlink(missing_ok=True)

    def _attach(self, domain: Any, card: NetworkCard, file: PcapFile) -> None:
        name = f"malbox-{secrets.token_hex(6)}"
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        self._filters[name] = Drain(read_end, PcapStream(file).take)
        try:
            # The pipe can be reached by who has its descriptors, and QEMU may run as another user.
            os.fchmod(write_end, 0o622)
            passed = pass_file(domain, write_end)
            try:
                run_command(
                    domain,
                    "object-add",
                    {"qom-type": "filter-dump", "id": name, "netdev": f"host{card.alias}", "file": f"/proc/self/fd/{passed.fd}"},
                )
            finally:
                take_file_back(domain, passed)
        except MonitorRefused as refused:
            remedy = (
                "; write <driver name='qemu'/> into its <interface>, and take the snapshot again" if card.is_offloaded else ""
            )
            raise MachineUnable(
                self._machine.name, f"the traffic of its network card {card.mac} can't be recorded: {refused}{remedy}"
            ) from None
        finally:
            os.close(write_end)

    def _detach(self, connection: Any) -> None:
        domain = find_domain(connection, self._machine)
        libvirt = libvirt_module()
        for name in self._filters:
            try:
                run_command(domain, "object-del", {"id": name})
            except (MonitorRefused, libvirt.libvirtError):
                # It ended with the process that it was in, or will at the next packet.
                continue

    def _write_rest(self) -> None:
        for drain in self._filters.values():
            drain.join(REST_S)
