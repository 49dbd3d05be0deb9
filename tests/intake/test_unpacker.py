"""The unpacker as engines use it: its process, what it hands out, its limits, and what it makes of a process that fails."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import psutil
import pytest

from malbox_tui.config.settings import Isolation
from malbox_tui.confine.limits import LimitsOnly
from malbox_tui.intake import unpacking_process
from malbox_tui.intake.spool import MEMORY_BYTES
from malbox_tui.intake.unpacker import ConfinedUnpacker
from malbox_tui.model.archive import DEFAULT_LIMITS, ArchiveEnd, UnpackLimits
from malbox_tui.model.errors import RefusedContent
from malbox_tui.ports import ArchiveMember
from tests.confine.rig import walls_of
from tests.intake import archives
from tests.intake.archives import STORED, Entry, zip_of
from tests.intake.unpacking_rig import chunks_of, unpacked

pytestmark = pytest.mark.slow

NOTE = b"a harmless note\n" * 100
LARGE = bytes(range(256)) * (MEMORY_BYTES // 128)


def limits(**changed: float) -> UnpackLimits:
    """The usual ones, but for these."""
    return msgspec.structs.replace(DEFAULT_LIMITS, **changed)


ONE_OF_EACH = {
    "zip.zip": archives.plain_zip({"zip": NOTE}),
    "aes.zip": zip_of(Entry(b"aes", NOTE, password=b"infected", strength=3)),
    "7z.7z": archives.seven_zip({"7z": NOTE}),
    "tar.tgz": archives.gzip_of(archives.tar_of(archives.tar_file(b"tar", NOTE))),
    "gz.gz": archives.gzip_of(NOTE),
    "cab.cab": archives.cabinet({b"cab": NOTE}),
    "iso.iso": archives.iso_image({b"ISO": NOTE}),
    "rar.rar": archives.rar({b"rar": NOTE}),
    "encrypted.rar": archives.rar({b"rar": NOTE}, "infected"),
    "mail.eml": archives.mail([("mail", NOTE)]),
    "msg.msg": archives.outlook({"msg": NOTE.ljust(4096)}),
}


@pytest.mark.needs("bubblewrap", "libarchive", "unar")
@pytest.mark.parametrize("isolation", [Isolation.REQUIRED, Isolation.LIMITS])
async def test_every_format_is_unpacked_behind_every_wall(isolation: Isolation, tmp_path: Path) -> None:
    outcome = await unpacked(archives.plain_zip(ONE_OF_EACH), tmp_path, walls=await walls_of(isolation))
    assert {path[0].decode() for path, content in outcome.members if content.strip() == NOTE.strip()} == set(ONE_OF_EACH)
    assert {account.end for account in outcome.accounts} == {ArchiveEnd.OPENED}
    assert len(outcome.accounts) == len(ONE_OF_EACH) + 1


async def test_members_of_inner_archives_have_the_names_of_those_around_them(tmp_path: Path) -> None:
    inner = archives.gzip_of(NOTE)
    middle = archives.tar_of(archives.tar_file(b"../b.gz", inner))
    outcome = await unpacked(archives.plain_zip({"m": middle, "n.txt": NOTE}), tmp_path)
    assert outcome.members == [((b"n.txt",), NOTE), ((b"m", b"../b.gz", b"b"), NOTE)]
    assert [(account.path, account.end) for account in outcome.accounts] == [
        ((b"m",), ArchiveEnd.OPENED),
        ((b"m", b"../b.gz"), ArchiveEnd.OPENED),
        ((), ArchiveEnd.OPENED),
    ]


@pytest.mark.parametrize(
    ("name", "content", "end"),
    [
        (b"invoice.exe", archives.plain_zip({"a": NOTE}), ArchiveEnd.OPENED),
        (b"photos.zip", b"MZ" + bytes(510), ArchiveEnd.SAMPLE),
        (b"setup.exe", b"MZ" + bytes(510) + archives.plain_zip({"a": NOTE}), ArchiveEnd.SAMPLE),
        (b"letter.zip", archives.plain_zip({"[Content_Types].xml": b"<Types/>"}), ArchiveEnd.SAMPLE),
        (b"old.zip", b"\x60\xea" + bytes(60), ArchiveEnd.WHOLE),
        (b"empty.zip", archives.plain_zip({}), ArchiveEnd.EMPTY),
        (b"empty.7z", archives.seven_zip({}), ArchiveEnd.EMPTY),
        (b"locked.zip", zip_of(Entry(b"a", password=b"who knows")), ArchiveEnd.LOCKED),
        (b"cut.7z", archives.seven_zip({"a": NOTE})[:-9], ArchiveEnd.WHOLE),
        (b"cut.tar", archives.tar_of(archives.tar_file(b"a"), archives.tar_file(b"b", NOTE))[:2000], ArchiveEnd.CUT),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) and len(value) < 20 else "",
)
async def test_what_becomes_of_an_archive_is_decided_by_its_content(
    name: bytes, content: bytes, end: ArchiveEnd, tmp_path: Path
) -> None:
    outcome = await unpacked(content, tmp_path, name=name)
    assert outcome.end is end
    is_given_whole = end in (ArchiveEnd.SAMPLE, ArchiveEnd.WHOLE, ArchiveEnd.CUT)
    assert [given for path, given in outcome.members if path == ()] == ([content] if is_given_whole else [])


async def test_a_locked_archive_is_refused_and_its_password_opens_it(tmp_path: Path) -> None:
    locked = zip_of(Entry(b"a", NOTE, password=b"who knows", strength=3))
    outcome = await unpacked(locked, tmp_path)
    assert outcome.members == []
    assert outcome.why == "password"
    assert outcome.refused[(b"a",)][0] == "password"
    assert (await unpacked(locked, tmp_path, passwords=["who knows"])).members == [((b"a",), NOTE)]


async def test_five_thousand_members_come_out(tmp_path: Path) -> None:
    outcome = await unpacked(archives.plain_zip({f"{number}.txt": b"%d" % number for number in range(5000)}), tmp_path)
    assert [content for _path, content in outcome.members] == [b"%d" % number for number in range(5000)]
    assert outcome.accounts[-1].taken == 5000


async def test_forty_levels_end_at_the_depth_that_is_allowed(tmp_path: Path) -> None:
    content = NOTE
    for number in range(40):
        content = archives.plain_zip({f"{number}.zip": content})
    outcome = await unpacked(content, tmp_path, limits=limits(depth=5))
    [(path, innermost)] = outcome.members
    assert len(path) == 5
    assert innermost.startswith(b"PK\3\4")
    assert outcome.accounts[4].refusal is not None
    assert outcome.accounts[4].refusal.code == "depth"
    assert [account.end for account in outcome.accounts[:4]] == [ArchiveEnd.OPENED] * 4


async def test_a_bomb_of_nested_archives_is_bounded_by_the_size_of_the_outermost(tmp_path: Path) -> None:
    layer = archives.plain_zip({"0": bytes(8 * 1024 * 1024)})
    for _level in range(3):
        layer = archives.plain_zip({f"{number}.zip": layer for number in range(16)})
    assert len(layer) < 42 * 1024
    outcome = await unpacked(layer, tmp_path)
    assert sum(len(content) for path, content in outcome.members if path[-1:] == (b"0",)) <= 43 * 1024 * 1024
    codes = {account.refusal.code for account in outcome.accounts if account.refusal is not None}
    assert codes == {"total_size"}


async def test_entries_of_all_archives_in_one_count_together(tmp_path: Path) -> None:
    inner = archives.plain_zip({str(number): b"x" for number in range(6)})
    outcome = await unpacked(archives.plain_zip({"a.zip": inner, "b.zip": inner}), tmp_path, limits=limits(entries=10))
    ends = {account.path: account.end for account in outcome.accounts}
    assert ends == {(b"b.zip",): ArchiveEnd.OPENED, (b"a.zip",): ArchiveEnd.CUT, (): ArchiveEnd.OPENED}


async def test_contents_are_readable_after_the_end_and_let_go_when_they_are_forgotten(tmp_path: Path) -> None:
    unpacker = ConfinedUnpacker(LimitsOnly(), tmp_path)
    files = {"small": NOTE, "large": LARGE, "larger": LARGE * 2}
    items = [item async for item in unpacker.unpack(chunks_of(archives.plain_zip(files)))]
    members = [item for item in items if isinstance(item, ArchiveMember)]
    assert list(tmp_path.iterdir()) == []
    assert members[1].content is not None
    assert b"".join([chunk async for chunk in members[1].content]) == LARGE
    open_before = _open_files()
    del members, items
    gc.collect()
    assert _open_files() < open_before


async def test_who_stops_asking_leaves_nothing_behind(tmp_path: Path) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    unpacker = ConfinedUnpacker(LimitsOnly(), tmp_path)
    async with aclosing(unpacker.unpack(chunks_of(archives.plain_zip({"a": NOTE, "b": LARGE})))) as items:
        async for _item in items:
            break
    assert list(tmp_path.iterdir()) == []
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before


async def test_content_that_is_refused_while_it_is_read_is_refused_as_ever(tmp_path: Path) -> None:
    async def changing() -> AsyncIterator[bytes]:
        yield b"PK\3\4"
        raise RefusedContent("changed_while_read", "It changed.")

    with pytest.raises(RefusedContent, match="It changed"):
        async for _item in ConfinedUnpacker(LimitsOnly(), tmp_path).unpack(changing()):
            pass
    assert list(tmp_path.iterdir()) == []


async def test_without_a_place_for_files_an_archive_is_refused(tmp_path: Path) -> None:
    unpacker = ConfinedUnpacker(LimitsOnly(), tmp_path / "missing")
    [member, account] = [item async for item in unpacker.unpack(chunks_of(archives.plain_zip({"a": NOTE})))]
    assert isinstance(member, ArchiveMember)
    assert member.refusal is not None
    assert member.refusal.code == "no_room"
    assert account.path == ()


def _open_files() -> int:
    return psutil.Process().num_fds()


SPEAKS = """
import json, os, signal, socket, time
from malbox_plugin_sdk.wire import Wire
wire = Wire(socket.socket(fileno=int(os.environ["MALBOX_WIRE_FD"])))
def say(kind, payload=b"", **fields): wire.send({"kind": kind, **fields}, payload)
order, _ = wire.receive()
"""

MISDEEDS = {
    "is killed": ("say('member', b'a'); say('content', b'x'); os.kill(os.getpid(), signal.SIGKILL)", "unpacker"),
    "raises": ("say('member', b'a'); say('content', b'x'); raise ValueError('no such header')", "unpacker"),
    "hangs": ("say('member', b'a'); say('content', b'x')\nwhile True: time.sleep(60)", "time"),
    "floods with content": ("say('member', b'a')\nwhile True: say('content', bytes(1 << 18))", "unpacker"),
    "floods with members": ("while True:\n say('member', b'a'); say('refused', code='x', reason='y')", "unpacker"),
    "floods its output": ("say('member', b'a')\nwhile True: print('x' * 100000)", "time"),
    "sends no frames": ("say('member', b'a'); wire._connection.sendall(b'\\xff' * 100)", "unpacker"),
    "sends unknown words": ("say('member', b'a'); say('surprise')", "unpacker"),
    "sends words in another order": ("say('member', b'a'); say('member', b'b')", "unpacker"),
    "ends what has not begun": (
        "say('member', b'a'); say('end', could_be_archive=False); say('end', could_be_archive=False)",
        "unpacker",
    ),
    "says that all is over in the middle": ("say('member', b'a'); say('done', title='', code='', reason='')", "unpacker"),
}


@pytest.mark.parametrize(("misdeed", "code"), MISDEEDS.values(), ids=MISDEEDS.keys())
async def test_a_process_that_fails_ends_the_account_of_its_archive(
    misdeed: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts, folder = tmp_path / "scripts", tmp_path / "folder"
    scripts.mkdir()
    folder.mkdir()
    (scripts / "start.py").write_text(SPEAKS + misdeed)
    monkeypatch.setattr(unpacking_process, "CODE", scripts)
    content = archives.plain_zip({"a": NOTE})
    tight = limits(time_s=2.0 if code == "time" else 60.0, member_bytes=1 << 20, entries=200)
    outcome = await unpacked(content, folder, limits=tight)
    assert outcome.end is ArchiveEnd.CUT
    assert outcome.why == code
    assert outcome.members[-1] == ((), content)


async def test_words_of_the_process_are_shown_escaped_and_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts, folder = tmp_path / "scripts", tmp_path / "folder"
    scripts.mkdir()
    folder.mkdir()
    (scripts / "start.py").write_text(
        SPEAKS + "say('member', b'a'); say('refused', code='a b', reason='\\x1b[2J' + 'x' * 9999)\n"
        "say('done', title='\\x1b', code='', reason='')\nwire.receive()"
    )
    monkeypatch.setattr(unpacking_process, "CODE", scripts)
    outcome = await unpacked(archives.plain_zip({"a": NOTE}), folder)
    code, reason = outcome.refused[(b"a",)]
    assert code == "damaged"
    assert reason.startswith("\\x1b[2J")
    assert len(reason) < 500
    assert outcome.accounts[-1].title == "\\x1b"


async def test_archives_beside_one_that_kills_the_process_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts, folder = tmp_path / "scripts", tmp_path / "folder"
    scripts.mkdir()
    folder.mkdir()
    real = unpacking_process.CODE
    (scripts / "start.py").write_text(
        f"import sys; sys.path.insert(0, {str(real)!r})\n"
        "import unpacking.orders as orders, os, runpy\n"
        "whole = orders._carry_out\n"
        "def carry_out(wire, source, order, passwords):\n"
        "    if source.at(30, 6) == b'killer': os._exit(9)\n"
        "    whole(wire, source, order, passwords)\n"
        "orders._carry_out = carry_out\n"
        f"runpy.run_path({str(real / 'start.py')!r})\n"
    )
    monkeypatch.setattr(unpacking_process, "CODE", scripts)
    killer = archives.plain_zip({"killer": b"x"})
    inner = archives.plain_zip({"good": NOTE})
    outcome = await unpacked(archives.plain_zip({"1": inner, "2": killer, "3": inner}), folder)
    assert [path for path, _content in outcome.members] == [(b"3", b"good"), (b"2",), (b"1", b"good")]
    assert {account.path: account.end for account in outcome.accounts}[(b"2",)] is ArchiveEnd.WHOLE


async def test_the_same_name_twice_is_two_members(tmp_path: Path) -> None:
    outcome = await unpacked(zip_of(Entry(b"same", b"1", STORED), Entry(b"same", b"2", STORED)), tmp_path)
    assert outcome.members == [((b"same",), b"1"), ((b"same",), b"2")]
