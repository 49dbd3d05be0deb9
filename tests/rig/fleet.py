"""The rig as a fleet, for the contract suites of machines and guests."""

from __future__ import annotations

import asyncio
import itertools
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from malbox_tui.guest.qga import QgaChannel
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestEnd, GuestExit
from tests.rig.host import RigHost
from tests.support.fleets import Fleet


class RigFleet(Fleet):
    """Two machines of a rig; its files are laid out in `folder`. `rejoin_s`: as of `QgaChannel`."""

    deadline_s = 60.0
    cancel_after = (0, 5)

    def __init__(self, host: RigHost, machines: Sequence[MachineSpec], folder: Path, rejoin_s: float) -> None:
        self.machine, self.other = machines
        self.missing = MachineSpec(
            name="none", provider="libvirt", platform="linux", uri=host.uri, snapshot="clean", channel="qga"
        )
        self._held_down = False
        provider = _Provider(self._silence_if_held_down)
        self.provider = provider
        self.channel = QgaChannel(provider, provider.power, rejoin_s)
        self._host = host
        self._folder = folder
        self._numbers = itertools.count()

    def program(self, does: GuestExit, seconds: float = 0.0, drops: Sequence[tuple[str, bytes]] = ()) -> Path:
        """As `Fleet.program`, as a script."""
        lines = ["#!/bin/sh", 'cd "${0%/*}"']
        lines += [f"printf %b {_escaped(content)} >{shlex.quote(name)}" for name, content in drops]
        lines += [f"printf %b {_escaped(does.output)}"] if does.output else []
        lines += [f"sleep {seconds:g}"] if seconds else []
        lines.append(_ending(does))
        return self.lay_out("\n".join(lines).encode() + b"\n")

    def lay_out(self, content: bytes) -> Path:
        """As `Fleet.lay_out`."""
        path = self._folder / f"file-{next(self._numbers)}"
        path.write_bytes(content)
        return path

    def lose_guest(self) -> None:
        """As `Fleet.lose_guest`: its agent is stopped."""
        self._host.silence(self.machine.name)

    def hold_guest_down(self) -> None:
        """As `Fleet.hold_guest_down`: its agent is stopped as soon as the machine is reverted."""
        self._held_down = True

    def check(self) -> None:
        """As `Fleet.check`."""

    def _silence_if_held_down(self, machine: MachineSpec) -> None:
        if self._held_down and machine == self.machine:
            self._held_down = False
            self._host.silence(machine.name)


class _Provider(LibvirtProvider):
    """Calls `after_revert` before anybody else meets a machine that was reverted."""

    def __init__(self, after_revert: Callable[[MachineSpec], None]) -> None:
        super().__init__()
        self._after_revert = after_revert

    async def revert(self, machine: MachineSpec) -> None:
        """As `LibvirtProvider.revert`."""
        await super().revert(machine)
        await asyncio.to_thread(self._after_revert, machine)


def _escaped(content: bytes) -> str:
    return "'" + "".join(f"\\0{byte:03o}" for byte in content) + "'"


def _ending(does: GuestExit) -> str:
    if does.end is GuestEnd.REBOOTED:
        return "reboot -f; sleep 60"
    if does.end is GuestEnd.KILLED:
        return f"kill -{does.code} $$"
    return "poweroff -f; sleep 60" if does.code is None else f"exit {does.code}"
