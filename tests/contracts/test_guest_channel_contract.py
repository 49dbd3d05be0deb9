"""What every `GuestChannel` does, and the `GuestSession`s it gives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from malbox_tui.model.errors import GuestRefused, GuestUnreachable
from malbox_tui.ports import GuestEnd, GuestExit, GuestProgram, GuestSession
from tests.support.fleets import Fleet, on_every_fleet
from tests.support.virtual_time import settle_loop

OFF = GuestExit(None, end=GuestEnd.POWERED_OFF)
ANEW = GuestExit(None, end=GuestEnd.REBOOTED)


async def connected(fleet: Fleet) -> GuestSession:
    """A conversation with the guest of a machine that was just reverted."""
    async with asyncio.timeout(fleet.deadline_s):
        await fleet.provider.revert(fleet.machine)
        return await fleet.channel.connect(fleet.machine)


async def started(session: GuestSession, source: Path, name: str = "program") -> GuestProgram:
    """A program that was pushed and begun."""
    return await session.start((await session.push(source, name, executable=True),))


async def ran(session: GuestSession, source: Path, bound: int = 100) -> GuestExit:
    """How a program ended that was pushed and begun."""
    return await (await started(session, source)).wait(bound)


@on_every_fleet
async def test_a_program_runs_and_says_how_it_ended(fleet: Fleet) -> None:
    session = await connected(fleet)
    for number, ending in enumerate((GuestExit(0, b"done\n"), GuestExit(3, b""), GuestExit(1, b"\xff\x00\n"))):
        program = await started(session, fleet.program(ending), f"program-{number}")
        assert await program.wait(100) == ending
        assert await program.wait(100) == ending, "it may be asked again"
    await session.close()


@on_every_fleet
async def test_a_file_put_again_replaces_the_one_before(fleet: Fleet) -> None:
    session = await connected(fleet)
    first = await session.push(fleet.program(GuestExit(0, b"first")), "sample", executable=True)
    second = await session.push(fleet.program(GuestExit(0, b"second")), "sample", executable=True)
    assert first == second
    assert (await (await session.start((second,))).wait(100)).output == b"second"
    await session.close()


@on_every_fleet
async def test_only_plain_names_are_put(fleet: Fleet) -> None:
    session = await connected(fleet)
    for name in ("", "../up", "a/b"):
        with pytest.raises(ValueError, match="not a plain file name"):
            await session.push(fleet.lay_out(b"content"), name)
    await session.close()


@on_every_fleet
async def test_output_is_cut_at_the_bound(fleet: Fleet) -> None:
    session = await connected(fleet)
    for bound, expected, is_whole in ((10, b"0123456789", True), (4, b"0123", False), (0, b"", False)):
        cut = GuestExit(0, expected, is_whole=is_whole)
        assert await ran(session, fleet.program(GuestExit(0, b"0123456789")), bound) == cut
    await session.close()


@on_every_fleet
async def test_what_is_not_there_is_not_started(fleet: Fleet) -> None:
    session = await connected(fleet)
    try:
        ended = await (await session.start((f"{session.folder}/nothing-of-this-name",))).wait(100)
    except GuestRefused:
        pass
    else:
        assert ended.code in (126, 127), "as shells tell it"
    await session.ping()
    await session.close()


@on_every_fleet
async def test_a_program_that_switches_its_machine_off_ends_without_a_code(fleet: Fleet) -> None:
    session = await connected(fleet)
    program = await started(session, fleet.program(OFF))
    async with asyncio.timeout(fleet.deadline_s):
        assert await _end_or_lost(program) in (OFF, GuestUnreachable)
    with pytest.raises(GuestUnreachable):
        await session.ping()
    await session.close()


@on_every_fleet
async def test_a_guest_that_starts_anew_answers_again_and_its_programs_are_over(fleet: Fleet) -> None:
    session = await connected(fleet)
    program = await started(session, fleet.program(ANEW))
    async with asyncio.timeout(fleet.deadline_s):
        assert await _end_or_lost(program) in (ANEW, GuestUnreachable)
        await _until_it_answers(session)
        assert (await ran(session, fleet.program(GuestExit(0, b"again")))).output == b"again"
    await session.close()


async def _end_or_lost(program: GuestProgram) -> object:
    """Whoever can't ask the hypervisor may not know more than that nobody answers."""
    try:
        return await program.wait(100)
    except GuestUnreachable as error:
        return type(error)


async def _until_it_answers(session: GuestSession) -> None:
    while True:
        try:
            return await session.ping()
        except GuestUnreachable:
            await asyncio.sleep(0.2)  # noqa: TID251 - a poll with a deadline


@on_every_fleet
async def test_what_a_lost_guest_was_asked_is_answered_by_an_error(fleet: Fleet) -> None:
    session = await connected(fleet)
    path = await session.push(fleet.program(GuestExit(0)), "program", executable=True)
    program = await session.start((path,))
    fleet.lose_guest()
    async with asyncio.timeout(fleet.deadline_s):
        for ask in (
            lambda: session.start((path,)),
            lambda: session.push(fleet.lay_out(b"content"), "content"),
            lambda: session.list(session.folder, 10),
            lambda: session.pull(path, lambda _piece: None, 10),
            lambda: program.wait(10),
            session.processes,
            session.ping,
        ):
            with pytest.raises(GuestUnreachable) as caught:
                await ask()
            assert caught.value.machine == fleet.machine.name
        await session.close()


@on_every_fleet
async def test_a_program_that_is_killed_ends_and_one_that_has_ended_is_left_alone(fleet: Fleet) -> None:
    session = await connected(fleet)
    program = await started(session, fleet.program(GuestExit(0), seconds=10 * fleet.deadline_s))
    async with asyncio.timeout(fleet.deadline_s):
        await program.kill()
        end = await program.wait(100)
        assert end.end is not GuestEnd.EXITED or end.code != 0
        await program.kill()
        assert await program.wait(100) == end
    await session.close()


@on_every_fleet
async def test_what_a_program_has_printed_can_be_read_while_it_runs(fleet: Fleet) -> None:
    session = await connected(fleet)
    program = await started(session, fleet.program(GuestExit(0, b"0123456789"), seconds=10 * fleet.deadline_s))
    async with asyncio.timeout(fleet.deadline_s):
        while not (printed := await program.output(4)):
            await asyncio.sleep(0.2)  # noqa: TID251 - a poll with a deadline
        assert printed == b"0123"
        await program.kill()
    await session.close()


@on_every_fleet
async def test_files_are_listed_and_read(fleet: Fleet) -> None:
    session = await connected(fleet)
    drops = (("dropped.txt", b"hello"), ("dropped.bin", bytes(range(256)) * 400))
    assert await ran(session, fleet.program(GuestExit(0), drops=drops)) == GuestExit(0)
    listed = {file.path: file for file in await session.list(session.folder, 100)}
    for name, content in drops:
        (path,) = [path for path in listed if path.endswith(name)]
        assert listed[path].size_bytes == len(content)
        assert listed[path].modified > 0
        assert await pulled(session, path, 10**6) == (content, True)
        assert await pulled(session, path, 3) == (content[:3], False)
        assert await pulled(session, path, len(content)) == (content, True)
    seen = await session.look([session.folder, f"{session.folder}/nowhere"], 100)
    assert {file.path: file for file in seen.files[session.folder]} == listed
    assert not seen.files[f"{session.folder}/nowhere"]
    await session.close()


async def pulled(session: GuestSession, path: str, bound: int) -> tuple[bytes, bool]:
    """What was handed over of a file, and whether that was all."""
    pieces: list[bytes] = []
    is_whole = await session.pull(path, pieces.append, bound)
    return b"".join(pieces), is_whole


@on_every_fleet
async def test_a_list_is_cut_at_its_limit_and_a_folder_that_is_not_there_has_no_files(fleet: Fleet) -> None:
    session = await connected(fleet)
    for number in range(3):
        await session.push(fleet.lay_out(b"content"), f"file-{number}")
    assert len(await session.list(session.folder, 2)) == 2
    assert len((await session.look([session.folder], 2)).files[session.folder]) == 2
    assert await session.list(f"{session.folder}/nowhere", 10) == []
    with pytest.raises(GuestRefused):
        await session.pull(f"{session.folder}/nowhere", lambda _piece: None, 10)
    await session.close()


@on_every_fleet
async def test_a_program_is_among_the_processes_while_it_runs(fleet: Fleet) -> None:
    session = await connected(fleet)
    before = {process.pid for process in await session.processes()}
    program = await started(session, fleet.program(GuestExit(0), seconds=10 * fleet.deadline_s), "long-runner")
    async with asyncio.timeout(fleet.deadline_s):
        for processes in (await session.processes(), (await session.look([], 10)).processes):
            assert any("long-runner" in process.command for process in processes if process.pid not in before)
        await program.kill()
        await program.wait(10)
        while any("long-runner" in process.command for process in await session.processes()):
            await asyncio.sleep(0.2)  # noqa: TID251 - a poll with a deadline
    await session.close()


@on_every_fleet
async def test_a_mark_is_there_until_the_machine_is_reverted(fleet: Fleet) -> None:
    session = await connected(fleet)
    await session.set_clock(1_800_000_000.0)
    mark = await session.mark()
    assert len(await session.traces(mark)) == 2, "the file and the process"
    await session.close()
    session = await connected(fleet)
    assert await session.traces(mark) == []
    await session.close()


@on_every_fleet
async def test_calls_may_come_at_the_same_time(fleet: Fleet) -> None:
    session = await connected(fleet)
    program = await started(session, fleet.program(GuestExit(0, b"end"), seconds=2.0))
    async with asyncio.timeout(fleet.deadline_s), asyncio.TaskGroup() as group:
        waiting = group.create_task(program.wait(10))
        asked: Sequence[asyncio.Task[object]] = [
            group.create_task(session.ping()),
            group.create_task(session.list(session.folder, 10)),
            group.create_task(session.processes()),
            group.create_task(session.look([session.folder], 10)),
        ]
    assert waiting.result().output == b"end"
    assert all(ask.exception() is None for ask in asked)
    await session.close()


@on_every_fleet
async def test_connecting_waits_for_a_machine_that_is_off(fleet: Fleet) -> None:
    async with asyncio.timeout(fleet.deadline_s), asyncio.TaskGroup() as group:
        connecting = group.create_task(fleet.channel.connect(fleet.machine))
        await settle_loop()
        assert not connecting.done()
        await fleet.provider.revert(fleet.machine)
    await connecting.result().close()


@on_every_fleet
async def test_connecting_to_a_guest_that_stays_down_can_be_cancelled_and_tried_again(fleet: Fleet) -> None:
    fleet.hold_guest_down()
    await fleet.provider.revert(fleet.machine)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(fleet.deadline_s / 10):
            await fleet.channel.connect(fleet.machine)
    session = await connected(fleet)
    await session.close()


@on_every_fleet
async def test_a_wait_that_is_cancelled_leaves_the_program_running_and_its_machine_can_be_reverted(fleet: Fleet) -> None:
    session = await connected(fleet)
    program = await started(session, fleet.program(GuestExit(0), seconds=10 * fleet.deadline_s))
    for _ in range(2):
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(program.wait(100))
            await settle_loop()
            assert not waiting.done()
            waiting.cancel()
    await session.close()
    session = await connected(fleet)
    await session.close()


@on_every_fleet
async def test_a_conversation_is_closed_twice_and_after_its_guest_is_gone(fleet: Fleet) -> None:
    session = await connected(fleet)
    await session.close()
    await session.close()
    for gone in (fleet.lose_guest, None):
        session = await connected(fleet)
        if gone is None:
            await fleet.provider.stop(fleet.machine)
        else:
            gone()
        async with asyncio.timeout(fleet.deadline_s):
            await session.close()


@on_every_fleet
async def test_a_closed_conversation_makes_room_for_the_next(fleet: Fleet) -> None:
    session = await connected(fleet)
    path = await session.push(fleet.program(GuestExit(0, b"same guest")), "program")
    await session.close()
    async with asyncio.timeout(fleet.deadline_s):
        session = await fleet.channel.connect(fleet.machine)
        assert (await (await session.start(("/bin/sh", path))).wait(100)).output == b"same guest"
        await session.close()
