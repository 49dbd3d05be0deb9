"""A way to the guest that is lost under a request, as when libvirt's daemon starts anew, and is there again for the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.guest.agent import WRITE_BYTES
from malbox_tui.ports import GuestEnd, GuestExit, GuestSession
from tests.guest.agent_line import PlayedGuest

pytestmark = pytest.mark.slow

CONTENT = bytes(range(256)) * (WRITE_BYTES // 256 + 1)
PROGRAM = b"#!/bin/sh\necho ran >>ran\necho said\nexit 7\n"


@pytest.mark.parametrize("gets_it", [True, False], ids=["got", "not-got"])
async def test_a_way_that_is_lost_under_a_request_changes_nothing(guest: PlayedGuest, tmp_path: Path, gets_it: bool) -> None:
    expected = await lived(guest, tmp_path)
    assert expected == (GuestExit(7, b"said\n"), CONTENT, b"ran\n", 2)
    for number in range(1, len(guest.asked) + 1):
        guest.asked.clear()
        guest.losses = {number: gets_it}
        assert await lived(guest, tmp_path) == expected, f"lost under {guest.asked[number - 1]}"


async def test_what_a_killed_program_started_is_killed_also_when_the_way_is_lost_under_it(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    for number in range(1, 16):
        program = await session.start(["/bin/sh", "-c", "sleep 600 & wait"])
        guest.losses = {len(guest.asked) + number: True}
        await program.kill()
        assert (await program.wait(100)).end is GuestEnd.KILLED
        assert not [process for process in await session.processes() if process.command == "sleep 600"]


async def lived(guest: PlayedGuest, tmp_path: Path) -> tuple[GuestExit, bytes, bytes, int]:
    """What a conversation brings: how a program ended, a content there and back, how often the program was run, and how many traces a
    mark leaves."""
    for file, content in (("content", CONTENT), ("program", PROGRAM)):
        (tmp_path / file).write_bytes(content)
    session = await guest.channel().connect(guest.machine)
    brought = await session.push(tmp_path / "content", "content.bin")
    assert brought.endswith("content.bin")
    path = await session.push(tmp_path / "program", "program", executable=True)
    ended = await (await session.start([path])).wait(100)
    pulled = await content_of(session, brought)
    runs = await content_of(session, f"{session.folder}/ran")
    traces = len(await session.traces(await session.mark()))
    await session.close()
    guest.revert()
    return ended, pulled, runs, traces


async def content_of(session: GuestSession, path: str) -> bytes:
    """All of a file."""
    content = bytearray()
    assert await session.pull(path, content.extend, 2 * len(CONTENT))
    return bytes(content)
