"""Archives made to harm, mislead or hide: each entry is accounted for as what it is, and nothing else happens."""

from __future__ import annotations

import stat
import sys
import tarfile
import unicodedata

import pytest
import rarfile

from tests.intake import archives
from tests.intake.archives import STORED, Entry, zip_of
from tests.intake.unpacking_rig import Told, told_of

HOSTILE_NAMES = (
    b"a|b;$(touch x)'\".exe",
    b"-rf",
    b"--checkpoint-action=exec=sh",
    b"invoice. exe",
    b"trailing dot.",
    b"trailing space ",
    "样".encode() * 200,
    "e\u0301\u200b\u200d.exe".encode(),
    "invoice\u202efdp.exe".encode(),
    b"two\nlines",
    b"\x1b[31mred",
    bytes(byte for byte in range(1, 256) if byte != 0x2F),
    unicodedata.normalize("NFC", "é.exe").encode(),
    unicodedata.normalize("NFD", "é.exe").encode(),
    b"../../etc/cron.d/x",
    b"/etc/passwd",
    b"..",
    b"C:\\Windows\\x.exe",
    b"\\\\host\\share\\x.exe",
    b"x" * 5000,
)


def contents(told: Told) -> list[bytes]:
    """Names of what was taken."""
    return [name for name, _content in told.taken]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:24]))
def test_zip_members_have_their_names_as_they_are(name: bytes) -> None:
    assert told_of(zip_of(Entry(name, b"content"))).taken == [(name, b"content")]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:24]))
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT], ids=["pax", "GNU"])
def test_tar_members_have_their_names_as_they_are(name: bytes, form: int) -> None:
    assert told_of(archives.tar_of(archives.tar_file(name, b"content"), form=form)).taken == [(name, b"content")]


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/passwd", "..", "a|b;$(x)'\".exe", "-rf", "two\nlines", "x\u202eexe", "样" * 200]
)
def test_7z_members_have_their_names_as_they_are(name: str) -> None:
    archive = archives.seven_zip({"x" * len(name): b"content"}, renamed=name)
    assert told_of(archive).taken == [(name.encode(), b"content")]


def test_a_name_without_bytes_is_one() -> None:
    assert told_of(zip_of(Entry(b"", b"content"))).taken == [(b"", b"content")]


def test_two_members_of_one_name_are_two() -> None:
    expected = [(b"same", b"first"), (b"same", b"second")]
    assert told_of(zip_of(Entry(b"same", b"first"), Entry(b"same", b"second"))).taken == expected
    assert told_of(archives.tar_of(archives.tar_file(b"same", b"first"), archives.tar_file(b"same", b"second"))).taken == expected


def test_two_7z_members_of_one_name_are_two() -> None:
    archive = archives.seven_zip({"1234": b"first", "5678": b"second"}, renamed="same")
    assert told_of(archive).taken == [(b"same", b"first"), (b"same", b"second")]


def test_links_and_devices_in_a_tar_are_named_as_such() -> None:
    archive = archives.tar_of(
        archives.tar_file(b"hard", type_=tarfile.LNKTYPE, target="/etc/shadow"),
        archives.tar_file(b"soft", type_=tarfile.SYMTYPE, target="../../etc/shadow"),
        archives.tar_file(b"soft", b"written through the link"),
        archives.tar_file(b"zero", type_=tarfile.CHRTYPE),
        archives.tar_file(b"disk", type_=tarfile.BLKTYPE),
        archives.tar_file(b"pipe", type_=tarfile.FIFOTYPE),
        archives.tar_file(b"folder", type_=tarfile.DIRTYPE),
    )
    told = told_of(archive)
    assert told.taken == [(b"soft", b"written through the link")]
    assert [(name, code) for name, code, _ in told.refused] == [
        (b"hard", "link"),
        (b"soft", "link"),
        (b"zero", "device"),
        (b"disk", "device"),
        (b"pipe", "fifo"),
    ]
    assert "/etc/shadow" in told.refused[0][2]


def test_a_link_in_a_zip_is_named_as_such() -> None:
    told = told_of(zip_of(Entry(b"link", b"/etc/shadow", STORED, mode=stat.S_IFLNK | 0o777), Entry(b"file")))
    assert told.codes == {b"link": "link"}
    assert "/etc/shadow" in told.refused[0][2]
    assert contents(told) == [b"file"]


def test_a_folder_with_content_is_a_file() -> None:
    assert told_of(zip_of(Entry(b"folder/", b"hidden here"))).taken == [(b"folder/", b"hidden here")]


def test_what_is_empty_says_so() -> None:
    assert told_of(zip_of(Entry(b"void", b""))).codes == {b"void": "empty"}


@pytest.mark.parametrize("strength", [0, 1, 2, 3], ids=["ZipCrypto", "AES-128", "AES-192", "AES-256"])
def test_an_unknown_password_is_an_error_that_says_so(strength: int) -> None:
    members = [Entry(b"%d" % number, b"content" * 100, password=b"who knows", strength=strength) for number in range(3)]
    told = told_of(zip_of(*members))
    assert told.taken == []
    assert set(told.codes.values()) == {"password"}
    assert "none of the 4 passwords" in told.refused[0][2]
    assert told_of(zip_of(*members), passwords=["first", "who knows"]).taken[0] == (b"0", b"content" * 100)


def test_each_member_may_have_a_password_of_its_own() -> None:
    archive = zip_of(
        Entry(b"open", b"1"), Entry(b"one", b"2", password=b"infected"), Entry(b"two", b"3", password=b"virus", strength=3),
        Entry(b"three", b"4", password=b"unknown", strength=3),
    )  # fmt: skip
    told = told_of(archive)
    assert told.taken == [(b"open", b"1"), (b"one", b"2"), (b"two", b"3")]
    assert told.codes == {b"three": "password"}


@pytest.mark.slow
@pytest.mark.parametrize("hides_names", [False, True], ids=["content", "names too"])
def test_an_unknown_password_of_a_7z_is_an_error_that_says_so(hides_names: bool) -> None:
    archive = archives.seven_zip({"a": b"content" * 50}, "who knows", hides_names)
    told = told_of(archive)
    assert told.taken == []
    assert "password" in (*told.codes.values(), told.end["code"])
    assert told_of(archive, passwords=["who knows"]).taken == [(b"a", b"content" * 50)]


def test_passwords_that_open_nothing_are_not_tried_on_thousands_of_members() -> None:
    told = told_of(zip_of(*(Entry(b"%d" % number, password=b"?", strength=1) for number in range(60))), passwords=["x"])
    assert set(told.codes.values()) == {"password"}
    assert "no password was tried" in told.refused[-1][2]


def test_a_password_that_is_no_ascii_is_tried_in_the_encodings_of_old_programs() -> None:
    told = told_of(zip_of(Entry(b"a", password="für".encode("cp1252"), strength=3)), passwords=["für"])
    assert contents(told) == [b"a"]


@pytest.mark.parametrize(
    "entry",
    [
        Entry(b"a", b"content" * 9, stated_size=3),
        Entry(b"a", b"content" * 9, stated_method=STORED),
        Entry(b"a", b"content" * 9, stated_offset=7),
        Entry(b"a", b"content" * 9, stated_offset=0x7FFFFFFF),
        Entry(b"a", b"content" * 9, is_hidden=True),
    ],
    ids=["another size", "another method", "another place", "a place behind the end", "not named at all"],
)
def test_what_a_directory_lies_about_is_found(entry: Entry) -> None:
    told = told_of(zip_of(entry, Entry(b"b", b"second")))
    assert sorted(told.taken) == [(b"a", b"content" * 9), (b"b", b"second")]
    assert told.refused == []


def test_what_a_directory_invents_is_said() -> None:
    told = told_of(zip_of(Entry(b"real"), Entry(b"inside", stated_name=b"invented", stated_offset=0x1000)))
    assert contents(told) == [b"real", b"inside"]
    assert told.codes == {b"invented": "damaged"}


@pytest.mark.parametrize("method", [STORED, 8])
def test_a_zip_without_its_directory_is_read_by_what_is_there(method: int) -> None:
    members = [Entry(b"a", b"first" * 9, method), Entry(b"b", b"second" * 9, method)]
    assert contents(told_of(zip_of(*members, has_directory=False))) == [b"a", b"b"]
    assert contents(told_of(zip_of(*members)[:-5])) == [b"a", b"b"]


def test_an_archive_in_an_archive_is_no_second_account_of_its_members() -> None:
    inner = zip_of(Entry(b"inside"))
    assert contents(told_of(zip_of(Entry(b"inner.zip", inner, STORED)))) == [b"inner.zip"]


def test_a_spoilt_member_costs_no_other() -> None:
    archive = bytearray(zip_of(Entry(b"a", b"first" * 99), Entry(b"b", b"second", STORED), Entry(b"c", b"third")))
    place = archive.index(b"second")
    archive[place] ^= 1
    told = told_of(bytes(archive))
    assert contents(told) == [b"a", b"c"]
    assert told.codes == {b"b": "damaged"}


def test_a_method_that_is_not_unpacked_is_named() -> None:
    told = told_of(zip_of(Entry(b"old", b"content", 6, b"xxxxxxx"), Entry(b"odd", b"content", 77, b"xxxxxxx")))
    assert told.codes == {b"old": "method", b"odd": "method"}
    assert "implode" in told.refused[0][2]


@pytest.mark.parametrize("kept", [40, 60, 200, -1])
def test_a_truncated_7z_is_damaged(kept: int) -> None:
    archive = archives.seven_zip({"a": bytes(range(256)) * 20})
    told = told_of(archive[:kept])
    assert told.taken == []
    assert told.end["code"] == "damaged"


def test_a_truncated_tar_gives_what_came_before() -> None:
    archive = archives.tar_of(archives.tar_file(b"a", b"first"), archives.tar_file(b"b", b"second" * 500))
    told = told_of(archive[:2000])
    assert told.taken == [(b"a", b"first")]
    assert told.codes == {b"b": "damaged"}


def test_a_tar_with_a_broken_header_says_where_it_ends() -> None:
    archive = bytearray(archives.tar_of(archives.tar_file(b"a", b"first"), archives.tar_file(b"b", b"second")))
    archive[archive.index(b"b\0\0\0")] ^= 1
    told = told_of(bytes(archive))
    assert told.taken == [(b"a", b"first")]
    assert told.end["code"] == "damaged"


def test_a_truncated_gzip_is_damaged() -> None:
    assert told_of(archives.gzip_of(bytes(range(256)) * 50)[:-20]).codes == {b"": "damaged"}


@pytest.mark.slow
def test_a_bomb_ends_at_the_limit() -> None:
    layer = archives.plain_zip({"zeros": bytes(60 * 1024 * 1024)})
    assert len(layer) < 70_000
    told = told_of(layer, total_bytes=32 * 1024 * 1024, member_bytes=1 << 40)
    assert told.codes == {b"zeros": "total_size"}
    assert told.end["code"] == "total_size"


def test_a_bomb_of_entries_that_share_their_content_ends_at_the_limit() -> None:
    kernel = Entry(b"a", bytes(4 * 1024 * 1024))
    others = [Entry(b"%d" % number, kernel.content, packed=b"", stated_offset=0) for number in range(50)]
    archive = zip_of(kernel, *others)
    told = told_of(archive, total_bytes=10 * 1024 * 1024)
    assert told.end["code"] == "total_size"


@pytest.mark.slow
def test_a_bomb_in_a_header_of_a_compressed_tar_ends_at_the_limit() -> None:
    hidden = bytes(40 * 1024 * 1024)
    archive = archives.gzip_of(archives.tar_of(archives.tar_file(b"large", hidden), archives.tar_file(b"b")))
    told = told_of(archive, total_bytes=8 * 1024 * 1024, member_bytes=1024)
    assert told.codes == {b"large": "too_large"}
    assert told.end["code"] == "total_size"


def test_more_entries_than_may_be_end_the_account() -> None:
    told = told_of(zip_of(*(Entry(b"%d" % number) for number in range(30))), entries=10)
    assert len(told.taken) == 10
    assert told.end["code"] == "members"


def test_a_member_that_is_too_large_is_refused_alone() -> None:
    told = told_of(
        zip_of(Entry(b"large", bytes(5000)), Entry(b"liar", bytes(5000), stated_size=5), Entry(b"b")), member_bytes=4096
    )
    assert told.codes == {b"large": "too_large", b"liar": "too_large"}
    assert contents(told) == [b"b"]


def test_a_7z_member_that_is_too_large_costs_no_other() -> None:
    told = told_of(archives.seven_zip({"large": bytes(50_000), "b": b"second"}), member_bytes=4096)
    assert told.codes == {b"large": "too_large"}
    assert told.taken == [(b"b", b"second")]


RAR = {b"a": b"what it was", b"b": bytes(range(256))}


def test_encrypted_content_of_a_rar_is_no_sample_where_nothing_opens_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_there(**_programs: bool) -> None:
        raise rarfile.RarCannotExec

    monkeypatch.setattr(rarfile, "tool_setup", none_there)
    told = told_of(archives.rar(RAR, "infected"))
    assert told.taken == []
    assert told.end["code"] == "password"
    assert "unar" in told.end["reason"]


@pytest.mark.slow
@pytest.mark.needs("unar")
def test_an_encrypted_rar_is_opened_by_its_password_and_no_other() -> None:
    archive = archives.rar(RAR, "virus")
    assert dict(told_of(archive).taken) == RAR
    locked = told_of(archive, passwords=["wrong"])
    assert locked.taken == []
    assert locked.end["code"] == "password"


def test_where_libarchive_is_not_installed_its_formats_are_named_and_taken_as_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libarchive", None)
    told = told_of(archives.cabinet(RAR))
    assert told.end["code"] == "no_unpacker"
    assert "cabinet" in told.end["reason"]
    assert "system-deps" in told.end["reason"]
