"""A conversation with a Linux guest: what it puts there, starts, finds and takes back."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from pathlib import Path

import pytest

from malbox_tui.model.errors import GuestRefused, GuestUnreachable
from malbox_tui.ports import GuestEnd, GuestExit
from tests.guest.agent_line import PlayedGuest

SAMPLE = b"""#!/bin/sh
echo "said $1"
echo dropped >"$2"
exit 7
"""


def on_host(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "on-host"
    path.write_bytes(content)
    return path


async def test_a_sample_runs_with_its_arguments_as_they_are_and_says_how_it_ended(any_guest: PlayedGuest, tmp_path: Path) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    path = await session.push(on_host(tmp_path, SAMPLE), "sample.sh", executable=True)
    dropped = f'{session.folder}/it\'s $(touch pwned) `x` "q"\n;|&'
    program = await session.start([path, "$HOME * ' \" \\", dropped])
    assert await program.wait(1000) == GuestExit(7, b"said $HOME * ' \" \\\n")
    assert Path(dropped).read_bytes() == b"dropped\n"
    assert not (tmp_path / "tmp" / "pwned").exists()


async def test_a_program_starts_in_the_folder_of_samples_with_an_empty_input(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    program = await session.start(["/bin/sh", "-c", "pwd; cat; echo end"])
    assert (await program.wait(1000)).output == f"{session.folder}\nend\n".encode()


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/etc", "no-such-program"])
async def test_what_is_not_there_is_not_started(any_guest: PlayedGuest, path: str) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    with pytest.raises(GuestRefused, match=f"there is no program {path}"):
        await session.start([path])


async def test_what_is_no_program_ends_as_in_a_shell(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    assert (await (await session.start(["/proc/version"])).wait(0)).code == 126


async def test_a_program_that_a_signal_ends_is_killed(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    program = await session.start(["/bin/sh", "-c", "echo first; kill -SEGV $$"])
    ended = await program.wait(1000)
    assert (ended.code, ended.end) == (11, GuestEnd.KILLED)


async def test_output_is_cut_at_the_bound_and_says_so(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    program = await session.start(["/bin/sh", "-c", "printf 0123456789"])
    for bound, expected in ((11, b"0123456789"), (10, b"0123456789"), (4, b"0123"), (0, b"")):
        assert await program.wait(bound) == GuestExit(0, expected, is_whole=bound >= 10)


async def test_output_is_there_while_the_program_runs(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    program = await session.start(["/bin/sh", "-c", "echo begun; while :; do sleep 1; done"])
    while await program.output(100) != b"begun\n":
        continue
    await program.kill()
    ended = await program.wait(100)
    assert (ended.code, ended.end, ended.output) == (9, GuestEnd.KILLED, b"begun\n")


async def test_killing_a_program_ends_what_it_has_started(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    program = await session.start(["/bin/sh", "-c", "(sh -c 'while :; do sleep 1; done') & echo $!; while :; do sleep 1; done"])
    while not (said := await program.output(100)).endswith(b"\n"):
        continue
    before = {process.pid for process in await session.processes()}
    assert {program.pid, int(said)} <= before
    await program.kill()
    assert (await program.wait(100)).end is GuestEnd.KILLED
    assert not {program.pid, int(said)} & {process.pid for process in await session.processes()}
    await program.kill()


async def test_a_killed_program_of_before_is_not_taken_for_another_with_its_number(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    program = await session.start(["/bin/sh", "-c", "exit 0"])
    assert (await program.wait(0)).code == 0
    asked = len(guest.asked)
    await program.kill()
    assert guest.asked[asked:] == []


async def test_a_large_file_arrives_as_it_was_and_comes_back_so(guest: PlayedGuest, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(3 * 1024 * 1024 + 1)
    session = await guest.channel().connect(guest.machine)
    path = await session.push(on_host(tmp_path, content), "large")
    assert Path(path).read_bytes() == content
    back = bytearray()
    assert await session.pull(path, back.extend, len(content))
    assert bytes(back) == content


async def test_a_file_put_again_replaces_the_one_before(guest: PlayedGuest, tmp_path: Path) -> None:
    session = await guest.channel().connect(guest.machine)
    first = await session.push(on_host(tmp_path, b"the first, and longer"), "sample")
    second = await session.push(on_host(tmp_path, b"second"), "sample")
    assert first == second
    assert Path(second).read_bytes() == b"second"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b"])
async def test_names_that_lead_elsewhere_are_not_taken(guest: PlayedGuest, tmp_path: Path, name: str) -> None:
    session = await guest.channel().connect(guest.machine)
    with pytest.raises(ValueError, match="plain file name"):
        await session.push(on_host(tmp_path, b""), name)


@pytest.mark.parametrize(("bound", "whole"), [(0, False), (9, False), (10, True), (11, True)])
async def test_a_file_is_taken_up_to_the_bound(guest: PlayedGuest, bound: int, whole: bool) -> None:
    session = await guest.channel().connect(guest.machine)
    Path(session.folder, "file").write_bytes(b"0123456789")
    taken = bytearray()
    assert await session.pull(f"{session.folder}/file", taken.extend, bound) is whole
    assert bytes(taken) == b"0123456789"[:bound]


async def test_an_endless_file_is_taken_up_to_the_bound(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    taken = bytearray()
    assert not await session.pull("/dev/zero", taken.extend, 5_000_000)
    assert len(taken) == 5_000_000


async def test_a_file_that_is_not_there_is_refused_in_the_agents_words(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    with pytest.raises(GuestRefused, match="No such file"):
        await session.pull("/nowhere/file", bytearray().extend, 10)


async def test_files_are_found_at_any_depth_and_links_are_not_followed(any_guest: PlayedGuest, tmp_path: Path) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    watched = tmp_path / "disk"
    (watched / "deep" / "deeper").mkdir(parents=True)
    names = [b"plain", b"with space", b"new\nline", b"tab\tand\x1b[1m", b"\xff\xfe", "ü".encode(), b"deep/deeper/file", b"-rf"]
    for name in names:
        Path(os.fsdecode(os.fsencode(watched) + b"/" + name)).write_bytes(name)
    os.utime(watched / "plain", (1_700_000_000, 1_700_000_000))
    (watched / "link").symlink_to("/etc/passwd")
    (watched / "folder").symlink_to("/etc")
    os.mkfifo(watched / "pipe")
    found = {
        os.fsencode(file.path).removeprefix(os.fsencode(watched) + b"/"): file for file in await session.list(str(watched), 100)
    }
    assert set(found) == set(names)
    assert all(file.size_bytes == len(name) for name, file in found.items())
    assert found[b"plain"].modified == 1_700_000_000


async def test_a_file_name_that_is_no_utf_8_can_be_taken(any_guest: PlayedGuest, tmp_path: Path) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    Path(os.fsdecode(b"%b/disk/odd \xff'$x\n" % os.fsencode(tmp_path))).write_bytes(b"content")
    (file,) = await session.list(str(tmp_path / "disk"), 10)
    taken = bytearray()
    assert await session.pull(file.path, taken.extend, 100)
    assert bytes(taken) == b"content"


async def test_forged_names_make_no_files(any_guest: PlayedGuest, tmp_path: Path) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    Path(tmp_path, "disk", "a\n.0123456789abcdef 1 1 /etc").mkdir(parents=True)
    Path(tmp_path, "disk", "a\n.0123456789abcdef 1 1 /etc", "shadow").touch()
    (file,) = await session.list(str(tmp_path / "disk"), 10)
    assert file.path == f"{tmp_path}/disk/a\n.0123456789abcdef 1 1 /etc/shadow"


async def test_no_more_files_are_told_than_asked_for(any_guest: PlayedGuest, tmp_path: Path) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    for number in range(30):
        (tmp_path / "disk" / str(number)).touch()
    assert len(await session.list(str(tmp_path / "disk"), 7)) == 7


async def test_a_folder_that_is_not_there_has_no_files(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    assert await session.list("/nowhere", 10) == []


async def test_what_the_conversation_keeps_in_the_guest_is_not_listed(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    await (await session.start(["/bin/sh", "-c", "echo dropped >dropped"])).wait(0)
    await session.processes()
    assert [file.path for file in await session.list(session.folder, 100)] == [f"{session.folder}/dropped"]


async def test_processes_are_told_with_parents_and_commands(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    program = await session.start(["/bin/sh", "-c", "while :; do sleep 60; done", "name\n1 (forged) S 1", "\x1b[2J"])
    told = {process.pid: process for process in await session.processes()}
    assert told[os.getpid()].name
    assert told[program.pid].command == "/bin/sh -c while :; do sleep 60; done name\n1 (forged) S 1 \x1b[2J"
    assert told[os.getpid()].parent == os.getppid()
    assert not [process for process in told.values() if f"{session.folder}/." in process.command]


async def test_one_look_tells_what_lists_and_processes_tell(any_guest: PlayedGuest, tmp_path: Path) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    program = await session.start(["/bin/sh", "-c", "while :; do sleep 60; done", "looked-at"])
    watched = tmp_path / "disk"
    for name in ("one", "two\n1 1 three"):
        (watched / name).write_bytes(b"content")
    seen = await session.look(["/nowhere", str(watched), session.folder], 100)
    assert list(seen.files) == ["/nowhere", str(watched), session.folder]
    for folder, files in seen.files.items():
        assert sorted(files, key=str) == sorted(await session.list(folder, 100), key=str)
    assert len(seen.files[str(watched)]) == 2
    assert len((await session.look([str(watched)], 1)).files[str(watched)]) == 1
    (told,) = [process for process in seen.processes if process.pid == program.pid]
    assert "looked-at" in told.command
    assert not [process for process in seen.processes if f"{session.folder}/." in process.command]


async def test_no_name_of_a_process_forges_or_hides_another(any_guest: PlayedGuest, tmp_path: Path) -> None:
    forged = "x) S 1\n1 (y) S "
    forger = tmp_path / "forger.py"
    forger.write_text(
        "import ctypes, time\n"
        f"ctypes.CDLL(None).prctl(15, {forged.encode()!r}, 0, 0, 0)\n"
        "print('named', flush=True)\n"
        "time.sleep(600)\n"
    )
    session = await any_guest.channel().connect(any_guest.machine)
    program = await session.start([sys.executable, str(forger)])
    while not await program.output(100):
        await asyncio.sleep(0.01)  # noqa: TID251 - until another process has done something
    told = await session.processes()
    assert {process.name for process in told if process.pid == program.pid} == {forged}
    assert {process.name for process in told if process.pid == 1} == {Path("/proc/1/comm").read_text().rstrip("\n")}
    assert len({process.pid for process in told}) == len(told)


async def test_the_clock_is_set_by_the_agent(guest: PlayedGuest) -> None:
    session = await guest.channel().connect(guest.machine)
    await session.set_clock(1_800_000_000.5)
    assert guest.clock == 1_800_000_000.5


async def test_a_clock_that_the_agent_cannot_set_is_set_by_a_program(guest: PlayedGuest, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    (programs / "date").write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\n')
    (programs / "date").chmod(0o755)
    guest.programs = programs
    guest.disabled.add("guest-set-time")
    session = await guest.channel().connect(guest.machine)

    def now(_arguments: dict[str, object]) -> str:
        return json.dumps({"return": 1_800_000_001 * 10**9 if (tmp_path / "asked").exists() else 0})

    guest.lies["guest-get-time"] = now
    await session.set_clock(1_800_000_000.5)
    assert (tmp_path / "asked").read_text() == "-s @1800000000\n"
    (tmp_path / "asked").unlink()
    (programs / "date").write_text("#!/bin/sh\necho cannot; exit 1\n")
    with pytest.raises(GuestRefused, match="clock can't be set: cannot"):
        await session.set_clock(1_800_000_000.5)


async def test_traces_are_there_until_the_machine_is_reverted(any_guest: PlayedGuest) -> None:
    session = await any_guest.channel().connect(any_guest.machine)
    mark = await session.mark()
    assert len(await session.traces(mark)) == 2
    Path(mark.file).unlink()
    assert await session.traces(mark) == [f"the process {mark.word}"]
    any_guest.revert()
    session = await any_guest.channel().connect(any_guest.machine)
    assert await session.traces(mark) == []


async def test_a_mark_that_cannot_be_left_is_refused(guest: PlayedGuest) -> None:
    (guest.root / "disk").rmdir()
    session = await guest.channel().connect(guest.machine)
    with pytest.raises(GuestRefused, match="no trace can be left"):
        await session.mark()


async def test_a_closed_conversation_is_over(guest: PlayedGuest, tmp_path: Path) -> None:
    session = await guest.channel().connect(guest.machine)
    await session.close()
    await session.close()
    with pytest.raises(GuestUnreachable):
        await session.ping()
    session = await guest.channel().connect(guest.machine)
    await session.ping()


async def test_commands_that_the_agent_does_not_allow_are_named(guest: PlayedGuest) -> None:
    guest.disabled |= {"guest-exec", "guest-file-open"}
    with pytest.raises(GuestRefused, match=r"guest-exec, guest-file-open.*blocked commands"):
        await guest.channel().connect(guest.machine)


async def test_a_folder_that_cannot_be_written_to_is_told_at_once(guest: PlayedGuest) -> None:
    (guest.root / "tmp").rmdir()
    with pytest.raises(GuestRefused, match="No such file"):
        await guest.channel().connect(guest.machine)
