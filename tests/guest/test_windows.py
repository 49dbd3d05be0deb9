"""Windows guests: the scripts as texts, what is read of that which they leave, and a conversation with a guest that is played."""

from __future__ import annotations

import asyncio
import base64
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.guest.system import Birth, ProcessFacts
from malbox_tui.guest.windows import Windows, argument, quoted
from malbox_tui.ports import GuestEnd, GuestExit, GuestFile, GuestProcess, GuestSession
from tests.guest.powershell import is_balanced, taken_apart, words_of
from tests.guest.windows_line import PlayedWindows

SYSTEM = Windows()
BASE = "C:\\Users\\Public\\.0123456789abcdef"
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def scripts_with(text: str) -> list[tuple[Sequence[str], list[str]]]:
    """Each script with `text` in the place of all that comes from outside, and the literals that it has to have."""
    return [
        (SYSTEM.boot(text), [text]),
        (SYSTEM.run(text, text, (), (text,)), [text, text, text]),
        (SYSTEM.run(text, text, (), (text, text, text)), [text, text, f"{argument(text)} {argument(text)}", text]),
        (SYSTEM.list(text, text, text, 7), [text, text, text.rpartition("\\")[2]]),
        (SYSTEM.processes(text, text, 7), [text]),
        (SYSTEM.look(text, [text, text], text, 7, 7), [text, text, text, f"{text}.files", text.rpartition("\\")[2]]),
        (SYSTEM.set_clock(text, 1.5), [text, text]),
        (SYSTEM.mark(text, text), [text, text]),
        (SYSTEM.look_for(text, text), [text, text]),
    ]


def encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())


# --- what is sent ----------------------------------------------------------------------------------------------------------------


@given(TEXTS)
def test_nothing_that_comes_from_outside_changes_a_script(text: str) -> None:
    for (script, expected), (plain, _) in zip(scripts_with(text), scripts_with("plain"), strict=True):
        skeleton, literals = taken_apart(script[-1])
        assert skeleton == taken_apart(plain[-1])[0]
        assert set(expected) <= set(literals)
        assert is_balanced(skeleton)


@given(TEXTS)
def test_a_literal_is_read_as_it_was(text: str) -> None:
    assert taken_apart(quoted(text)) == ("?", [text])


@pytest.mark.parametrize("text", ["two\nlines", "a `\n b", "{braces}", "it's", "‘curly’", "$(New-Item x)", "a;b|c", "%PATH%"])
def test_what_is_special_elsewhere_is_left_as_it_is(text: str) -> None:
    literals = taken_apart(SYSTEM.run(BASE, "C:\\", (), ("C:\\program.exe", text))[-1])[1]
    assert words_of(literals[4]) == [text]


@given(st.lists(TEXTS))
def test_arguments_are_taken_apart_by_the_program_as_they_were(words: list[str]) -> None:
    assert words_of(" ".join(map(argument, words))) == words


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("two words", '"two words"'),
        ('"', '"\\""'),
        ("C:\\folder\\", "C:\\folder\\"),
        ("C:\\a folder\\", '"C:\\a folder\\\\"'),
        ('\\"', '"\\\\\\""'),
    ],
)
def test_arguments_are_quoted_as_windows_reads_them(word: str, line: str) -> None:
    assert argument(word) == line


def test_a_script_is_one_line_of_one_argument() -> None:
    for script, _ in scripts_with("plain"):
        assert script[0].endswith("powershell.exe")
        assert script[1:-1] == ("-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command")
        assert "\n" not in script[-1]
        assert "`" not in taken_apart(script[-1])[0].replace("`n", "")


def test_no_more_are_killed_at_once_than_a_command_line_holds() -> None:
    argv = SYSTEM.kill(itertools.repeat(2**32 - 1, 4096))
    assert len(" ".join(argv)) < 32_767


# --- what comes back -------------------------------------------------------------------------------------------------------------


def test_files_are_read_of_what_a_script_leaves() -> None:
    left = b"".join(
        (
            b"6 1764489600 %b\r\n" % encoded("C:\\Users\\Public\\dropped.txt"),
            b"0 -11644473600 %b\r\n" % encoded("C:\\Users\\Public\\\u202egnp.exe"),
            b"1234567890123 0 %b\r\n" % encoded("C:\\Users\\Public\\a b\\ü.bin"),
        )
    )
    assert SYSTEM.files(left, BASE, 10) == [
        GuestFile("C:\\Users\\Public\\dropped.txt", 6, 1764489600.0),
        GuestFile("C:\\Users\\Public\\\u202egnp.exe", 0, -11644473600.0),
        GuestFile("C:\\Users\\Public\\a b\\ü.bin", 1234567890123, 0.0),
    ]
    assert SYSTEM.files(b"\xef\xbb\xbf" + left, BASE, 1) == [GuestFile("C:\\Users\\Public\\dropped.txt", 6, 1764489600.0)]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\r\n",
        b"6 1764489600\r\n",
        b"6 --5 QQ==\r\n",
        b"-6 5 QQ==\r\n",
        b"6 5 QQ= =\r\n",
        b"6 5 Q\xff==\r\n",
        b"6 5 \r\n",
        b"%b 5 QQ==\r\n" % (b"9" * 5000),
        b"6 %b QQ==\r\n" % (b"9" * 5000),
        b"6 5 QQ== more\r\n",
        b"6 5 QQ==",
        "٣ 5 QQ==\r\n".encode(),
    ],
)
def test_a_line_that_tells_of_no_file_is_passed_over(line: bytes) -> None:
    assert SYSTEM.files(b"6 5 QQ==\r\n" + line, BASE, 10) == [GuestFile("A", 6, 5.0)]


def test_processes_are_read_of_what_a_script_leaves() -> None:
    left = b"".join(
        (
            b"0 0 0 %b %b\r\n" % (encoded("System Idle Process"), b""),
            b"4 0 638000000000000000 %b %b\r\n" % (encoded("System"), b""),
            b"512 4 638000000000010000 %b %b\r\n" % (encoded("a.exe"), encoded('"C:\\a.exe" /x')),
            b"513 512 638000000000010000 %b %b\r\n" % (encoded("powershell.exe"), encoded(f"powershell $base='{BASE}.3'")),
            b"514 -1 638000000000010000 %b %b\r\n" % (encoded("b.exe"), b""),
            b"%b 4 1 %b %b\r\n" % (b"9" * 5000, encoded("c.exe"), b""),
        )
    )
    assert SYSTEM.facts(left, BASE, 10) == [
        ProcessFacts(GuestProcess(4, None, "System"), Birth(4, 638000000000000000)),
        ProcessFacts(GuestProcess(512, 4, "a.exe", '"C:\\a.exe" /x'), Birth(512, 638000000000010000)),
    ]


@pytest.mark.parametrize(
    ("left", "birth"),
    [
        (b"512 638000000000010000\n", Birth(512, 638000000000010000)),
        (b"512 638000000000010000", None),
        (b"512\n", None),
        (b"", None),
        (b"-512 1\n", None),
        (b"0 1\n", None),
        (b"512 " + b"9" * 400 + b"\n", None),
    ],
)
def test_a_process_is_born_when_all_of_its_line_is_there(left: bytes, birth: Birth | None) -> None:
    assert SYSTEM.born(left) == birth


@pytest.mark.parametrize(
    ("left", "found"),
    [
        (b"there\r\nC:\\x.exe\r\npowershell word\r\n", (True, True)),
        (b"gone\r\nC:\\x.exe\r\n", (False, False)),
        (b"gone\r\npowershell word\r\n", (False, True)),
        (b"", (True, False)),
        (b"rubbish", (True, False)),
    ],
)
def test_traces_are_there_unless_it_is_said_that_they_are_gone(left: bytes, found: tuple[bool, bool]) -> None:
    assert SYSTEM.found(left, "word") == found


# --- a conversation --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[PlayedWindows]:
    """A guest whose programs are those of this host."""
    guest = PlayedWindows(tmp_path)
    (tmp_path / "python.exe").symlink_to(sys.executable)
    yield guest
    guest.end_all()


async def started(guest: PlayedWindows, code: str, *arguments: str) -> tuple[GuestSession, list[str]]:
    """A conversation, and how a program of this code is started in it."""
    return await guest.channel().connect(guest.machine), ["C:\\python.exe", "-c", code, *arguments]


async def test_a_program_runs_with_its_arguments_as_they_are(guest: PlayedWindows) -> None:
    code = "import sys; print(sys.argv[1:]); print('wrong', file=sys.stderr); sys.exit(7)"
    session, argv = await started(guest, code, 'a "b" c\\', "", "%PATH% $x 'y'")
    ended = await (await session.start(argv)).wait(1000)
    assert ended == GuestExit(7, b"['a \"b\" c\\\\', '', \"%PATH% $x 'y'\"]\nwrong\n")


async def test_a_status_that_the_agent_takes_for_a_signal_is_one_of_an_error(guest: PlayedWindows) -> None:
    session, argv = await started(guest, "import time; open('x', 'w').close(); time.sleep(600)")
    guest.lies["guest-exec-status"] = lambda _arguments: (
        '{"return": {"exited": true, "signal": -1073741819}}' if list((guest.root / "tmp").glob("x")) else None
    )
    program = await session.start(argv)
    (code,) = (guest.root / "tmp").glob("*.code")
    code.write_text("-1073741819")
    assert (await program.wait(0)).code == -1073741819


async def test_what_a_program_drops_is_listed_and_read(guest: PlayedWindows) -> None:
    session, argv = await started(guest, "open('dropped.txt', 'w').write('dropped')")
    await (await session.start(argv)).wait(0)
    (file,) = await session.list("C:\\tmp", 10)
    assert (file.path, file.size_bytes) == ("C:\\tmp\\dropped.txt", 7)
    taken = bytearray()
    assert await session.pull(file.path, taken.extend, 100)
    assert bytes(taken) == b"dropped"


async def test_a_program_is_killed_by_its_number_and_birth(guest: PlayedWindows) -> None:
    session, argv = await started(guest, "import time; time.sleep(600)")
    program = await session.start(argv)
    assert program.pid in {process.pid for process in await session.processes()}
    await program.kill()
    assert (await program.wait(0)).code not in (None, 0)
    assert program.pid not in {process.pid for process in await session.processes()}


async def test_a_guest_that_was_silent_for_a_while_is_the_same(guest: PlayedWindows, tmp_path: Path) -> None:
    session, argv = await started(guest, f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.05)")
    program = await session.start(argv)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        waiting = group.create_task(program.wait(0))
        guest.answers = False
        asked = len(guest.asked)
        while len(guest.asked) < asked + 3:
            await asyncio.sleep(0)  # noqa: TID251 - until it was asked in vain
        guest.answers = True
        (tmp_path / "go").touch()
    assert waiting.result().code == 0


async def test_a_guest_that_starts_anew_is_told_by_the_count_of_its_starts(guest: PlayedWindows) -> None:
    session, argv = await started(guest, "import time; time.sleep(600)")
    program = await session.start(argv)
    guest.reboot()
    assert (await program.wait(0)).end is GuestEnd.REBOOTED
