"""The agent of a real guest, through the product's own provider and channel: what the contract suites don't ask."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from malbox_tui.guest.qga import QgaChannel
from malbox_tui.guest.session import QgaSession
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import GuestUnreachable
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestEnd, GuestSession
from tests.rig.host import RigHost

DEADLINE_S = 90.0
REBOOT_S = 60.0


@asynccontextmanager
async def reverted(machine: MachineSpec) -> AsyncIterator[tuple[LibvirtProvider, GuestSession]]:
    """A conversation with the guest of a machine that was just reverted."""
    provider = LibvirtProvider()
    await provider.open()
    try:
        async with asyncio.timeout(DEADLINE_S):
            await provider.revert(machine)
            session = await QgaChannel(provider, provider.power, REBOOT_S).connect(machine)
            yield provider, session
            await session.close()
    finally:
        async with asyncio.timeout(DEADLINE_S):
            await provider.stop(machine)
            await provider.close()


def sample(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "sample"
    path.write_bytes(content)
    return path


async def test_content_arrives_as_it_was(machines: tuple[MachineSpec, ...], tmp_path: Path) -> None:
    content = random.Random(1).randbytes(2 * 1024 * 1024 + 1)
    async with reverted(machines[0]) as (_provider, session):
        path = await session.push(sample(tmp_path, content), "large")
        back = bytearray()
        assert await session.pull(path, back.extend, len(content))
        assert bytes(back) == content


async def test_a_killed_program_takes_along_what_it_started(machines: tuple[MachineSpec, ...]) -> None:
    async with reverted(machines[0]) as (_provider, session):
        program = await session.start(["/bin/sh", "-c", "sleep 600 & sleep 600"])
        await program.kill()
        assert (await program.wait(100)).end is GuestEnd.KILLED
        assert not [process for process in await session.processes() if process.command == "sleep 600"]


async def test_a_program_is_waited_for_while_the_daemon_is_killed_and_back(
    rig: RigHost, machines: tuple[MachineSpec, ...]
) -> None:
    async with reverted(machines[0]) as (_provider, session):
        program = await session.start(["/bin/sh", "-c", "sleep 4; exit 7"])
        rig.kill_daemon()
        rig.start_daemon()
        assert (await program.wait(100)).code == 7


async def test_a_program_whose_machine_is_killed_ends(rig: RigHost, machines: tuple[MachineSpec, ...]) -> None:
    async with reverted(machines[0]) as (_provider, session):
        assert isinstance(session, QgaSession)
        program = await session.start(["/bin/sh", "-c", "sleep 600"])
        rig.kill_guest(machines[0].name)
        try:
            assert (await program.wait(100)).end is GuestEnd.POWERED_OFF
        except GuestUnreachable:
            return
