"""Guests that go down, start anew or are reverted under a conversation, and agents that lie."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.guest import agent
from malbox_tui.model.errors import GuestRefused, GuestUnreachable, MachineError
from malbox_tui.model.machine import PowerState
from malbox_tui.ports import GuestEnd, GuestExit, GuestSession
from tests.guest.agent_line import BOOT_FILE, PlayedGuest

FOREVER = ["/bin/sh", "-c", "while :; do sleep 60; done"]
DEADLINE_S = 30.0


async def ended_after(guest: PlayedGuest, session: GuestSession, argv: list[str], happens: Callable[[], object]) -> GuestExit:
    """How a program ended under which this happened."""
    program = await session.start(argv)
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        waiting = group.create_task(program.wait(100))
        asked = len(guest.asked)
        while len(guest.asked) < asked + 3:
            await asyncio.sleep(0)  # noqa: TID251 - until it is watched
        happens()
    return waiting.result()


async def test_a_machine_that_goes_off_ends_its_program(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)

    def happens() -> None:
        guest.power = PowerState.OFF

    assert await ended_after(guest, session, FOREVER, happens) == GuestExit(None, end=GuestEnd.POWERED_OFF)


async def test_a_guest_that_starts_anew_ends_its_programs_and_can_be_asked_again(guest: PlayedGuest, tmp_path: Path) -> None:
    session = await guest.channel().connect(guest.machine)
    assert await ended_after(guest, session, FOREVER, guest.reboot) == GuestExit(None, end=GuestEnd.REBOOTED)
    (tmp_path / "on-host").write_bytes(b"x")
    path = await session.push(tmp_path / "on-host", "after")
    assert Path(path).read_bytes() == b"x"
    assert (await (await session.start(["/bin/sh", "-c", "exit 3"])).wait(0)).code == 3


async def test_a_program_goes_on_when_only_the_agent_starts_anew(guest: PlayedGuest, tmp_path: Path) -> None:
    session = await guest.channel().connect(guest.machine)
    script = f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo said; exit 5"

    def happens() -> None:
        guest.restart_agent()
        (tmp_path / "go").touch()

    assert await ended_after(guest, session, ["/bin/sh", "-c", script], happens) == GuestExit(5, b"said\n")


async def test_a_program_of_which_nothing_is_written_down_ended_somehow(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    program = await session.start(FOREVER)
    holders = [process for process in guest.programs_running() if process != program.pid]
    guest.restart_agent()
    for pid in (*holders, program.pid):
        os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(DEADLINE_S):
        ended = await program.wait(100)
    assert (ended.code, ended.end) == (None, GuestEnd.UNKNOWN)


async def test_a_guest_that_is_reverted_under_a_program_is_lost(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    with pytest.raises(ExceptionGroup) as caught:
        await ended_after(guest, session, FOREVER, guest.revert)
    assert "was reverted" in str(caught.value.exceptions[0])


async def test_a_conversation_ends_with_a_revert(guest: PlayedGuest, tmp_path: Path) -> None:
    session = await guest.channel().connect(guest.machine)
    guest.revert()
    (tmp_path / "on-host").touch()
    for late in (session.push(tmp_path / "on-host", "late"), session.start(FOREVER), session.list("/tmp", 1), session.mark()):
        with pytest.raises(GuestUnreachable, match="was reverted"):
            await late


async def test_a_guest_that_stays_silent_while_its_machine_runs_is_lost(guest: PlayedGuest) -> None:
    session = await guest.channel(rejoin_s=0.2).connect(guest.machine)

    def happens() -> None:
        guest.answers = False

    with pytest.raises(ExceptionGroup) as caught:
        await ended_after(guest, session, FOREVER, happens)
    assert "did not answer again within 0.2 s" in str(caught.value.exceptions[0])


async def test_a_guest_that_dies_while_a_file_is_copied_is_unreachable(guest: PlayedGuest, tmp_path: Path) -> None:
    (tmp_path / "on-host").write_bytes(bytes(1_000_000))
    session = await guest.channel().connect(guest.machine)

    def dies(_arguments: dict[str, Any]) -> None:
        guest.answers = guest.asked.count("guest-file-write") < 6

    guest.lies["guest-file-write"] = dies
    with pytest.raises(GuestUnreachable):
        await session.push(tmp_path / "on-host", "late")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "garbage",
        "null",
        "[]",
        '{"return": []}',
        '{"return": {"count": -1, "buf-b64": "", "eof": true}}',
        '{"return": {"count": 3, "buf-b64": "AAAA", "eof": "yes"}}',
        '{"return": {"count": 5, "buf-b64": "AAAA", "eof": true}}',
        '{"return": {"count": 1, "buf-b64": "=", "eof": true}}',
        '{"return": {"count": 1, "buf-b64": "\\ud800", "eof": true}}',
        '{"return": {"count": 99999999999999999999999, "buf-b64": "", "eof": true}}',
        "[" * 100_000,
        '{"return": "' + "x" * 20_000_000 + '"}',
        json.dumps({"return": {"count": 2_000_000, "buf-b64": base64.b64encode(bytes(2_000_000)).decode(), "eof": True}}),
    ],
    ids=range(14),
)
async def test_a_reply_that_makes_no_sense_is_a_lost_guest(guest: PlayedGuest, reply: str) -> None:
    session = await guest.channel().connect(guest.machine)
    guest.lies["guest-file-read"] = lambda _arguments: reply
    with pytest.raises(GuestUnreachable, match="makes no sense"):
        await session.pull("/etc/passwd", bytearray().extend, 10_000_000)


async def test_a_reply_that_comes_byte_by_byte_is_put_together(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    left = list(b"0123456789")

    def slowly(_arguments: dict[str, Any]) -> str:
        content = bytes(left[:1])
        del left[:1]
        return json.dumps({"return": {"count": len(content), "buf-b64": base64.b64encode(content).decode(), "eof": not left}})

    guest.lies["guest-file-read"] = slowly
    taken = bytearray()
    assert await session.pull("/etc/passwd", taken.extend, 100)
    assert bytes(taken) == b"0123456789"


@pytest.mark.parametrize("command", ["guest-file-read", "guest-file-write"])
async def test_a_file_that_moves_no_more_is_given_up(
    guest: PlayedGuest, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "_IDLE_PAUSE_S", 0.0)
    (tmp_path / "on-host").write_bytes(b"x")
    session = await guest.channel().connect(guest.machine)
    path = await session.push(tmp_path / "on-host", "there")
    if command == "guest-file-read":
        guest.lies[command] = lambda _arguments: '{"return": {"count": 0, "buf-b64": "", "eof": false}}'
        with pytest.raises(GuestRefused, match="gives nothing"):
            await session.pull(path, bytearray().extend, 10)
    else:
        guest.lies[command] = lambda _arguments: '{"return": {"count": 0, "eof": false}}'
        with pytest.raises(GuestRefused, match="takes nothing more"):
            await session.push(tmp_path / "on-host", "there")


async def test_more_written_than_was_sent_makes_no_sense(guest: PlayedGuest, tmp_path: Path) -> None:
    (tmp_path / "on-host").write_bytes(b"x")
    session = await guest.channel().connect(guest.machine)
    guest.lies["guest-file-write"] = lambda _arguments: '{"return": {"count": 2, "eof": false}}'
    with pytest.raises(GuestUnreachable, match="wrote 2 of 1"):
        await session.push(tmp_path / "on-host", "there")


async def test_short_writes_are_looped_on(guest: PlayedGuest, tmp_path: Path) -> None:
    (tmp_path / "on-host").write_bytes(b"0123456789" * 100)
    session = await guest.channel().connect(guest.machine)
    honest = guest._file_write

    def short(arguments: dict[str, Any]) -> str:
        piece = base64.b64decode(arguments["buf-b64"])[:7]
        return json.dumps({"return": honest(arguments["handle"], **{"buf-b64": base64.b64encode(piece).decode()})})

    guest.lies["guest-file-write"] = short
    path = await session.push(tmp_path / "on-host", "there")
    assert Path(path).read_bytes() == b"0123456789" * 100


async def test_an_argument_with_a_nul_is_refused(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    with pytest.raises(GuestRefused, match="NUL"):
        await session.start(["/bin/echo", "a\0b"])


async def test_connecting_waits_until_the_agent_answers(guest: PlayedGuest) -> None:
    guest.answers = False
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        connecting = group.create_task(guest.channel().connect(guest.machine))
        while guest.asked.count("guest-ping") < 3:
            await asyncio.sleep(0)  # noqa: TID251 - until it has knocked
        guest.answers = True
    await connecting.result().ping()


async def test_a_boot_that_cannot_be_named_is_told(guest: PlayedGuest) -> None:
    guest.lies["guest-file-open"] = lambda arguments: "lie" if arguments["path"] == BOOT_FILE else None
    with pytest.raises(MachineError, match="makes no sense"):
        await guest.channel().connect(guest.machine)
