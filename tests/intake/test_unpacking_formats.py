"""Each format that is unpacked: what is in it comes out as it was put in."""

from __future__ import annotations

import bz2
import lzma
import tarfile
import zipfile

import py7zr
import pytest
from backports import zstd

from tests.intake import archives
from tests.intake.archives import Entry, zip_of
from tests.intake.unpacking_rig import told_of

NOTE = b"a harmless note\n" * 100
FILES = {"note.txt": NOTE, "folder/other.bin": bytes(range(256)) * 40}
MEMBERS = [(name.encode(), content) for name, content in FILES.items()]

TAR = archives.tar_of(*(archives.tar_file(name, content) for name, content in MEMBERS))

NAMED_ARCHIVES = {
    "zip, deflated": archives.plain_zip(FILES),
    "zip, stored": archives.plain_zip(FILES, zipfile.ZIP_STORED),
    "zip, bzip2": archives.plain_zip(FILES, zipfile.ZIP_BZIP2),
    "zip, LZMA": archives.plain_zip(FILES, zipfile.ZIP_LZMA),
    "zip, Zstandard": zip_of(*(Entry(name, content, 93, zstd.compress(content)) for name, content in MEMBERS)),
    "zip, xz": zip_of(*(Entry(name, content, 95, lzma.compress(content)) for name, content in MEMBERS)),
    "zip, with descriptors": zip_of(*(Entry(name, content, has_descriptor=True) for name, content in MEMBERS)),
    "zip, ZipCrypto": zip_of(*(Entry(name, content, password=b"infected") for name, content in MEMBERS)),
    "zip, AES-128": zip_of(*(Entry(name, content, password=b"malware", strength=1) for name, content in MEMBERS)),
    "zip, AES-256": zip_of(*(Entry(name, content, password=b"infected", strength=3) for name, content in MEMBERS)),
    "7z": archives.seven_zip(FILES),
    "7z, stored": archives.seven_zip(FILES, filters=[{"id": py7zr.FILTER_COPY}]),
    "7z, Zstandard": archives.seven_zip(FILES, filters=[{"id": py7zr.FILTER_ZSTD, "level": 3}]),
    "7z, PPMd": archives.seven_zip(FILES, filters=[{"id": py7zr.FILTER_PPMD, "order": 6, "mem": 24}]),
    "tar": TAR,
    "tar, GNU": archives.tar_of(*(archives.tar_file(*member) for member in MEMBERS), form=tarfile.GNU_FORMAT),
    "tar, gzip": archives.gzip_of(TAR),
    "tar, bzip2": bz2.compress(TAR),
    "tar, xz": lzma.compress(TAR),
    "tar, Zstandard": zstd.compress(TAR),
    "e-mail": archives.mail(list(FILES.items())),
}


@pytest.mark.parametrize("content", NAMED_ARCHIVES.values(), ids=NAMED_ARCHIVES.keys())
def test_what_is_in_an_archive_comes_out(content: bytes) -> None:
    told = told_of(content)
    assert sorted(told.taken) == sorted(MEMBERS)
    assert told.end["kind"] == "done"
    assert told.end["code"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("hides_names", [False, True], ids=["content", "names too"])
def test_what_is_in_an_encrypted_7z_comes_out(hides_names: bool) -> None:
    told = told_of(archives.seven_zip(FILES, "malware", hides_names))
    assert sorted(told.taken) == sorted(MEMBERS)
    assert told.end["code"] == ""


@pytest.mark.needs("libarchive")
@pytest.mark.parametrize("make", [archives.cabinet, archives.rar, archives.iso_image], ids=["cabinet", "rar", "ISO image"])
def test_libarchive_unpacks_what_it_is_asked_for(make: object) -> None:
    assert callable(make)
    told = told_of(make({b"ONE.TXT": NOTE, b"TWO.BIN": bytes(70_000)}))
    assert [(name.upper(), content) for name, content in told.taken] == [(b"ONE.TXT", NOTE), (b"TWO.BIN", bytes(70_000))]
    assert told.end["code"] == ""


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (archives.gzip_of(NOTE, "note.txt"), b"note.txt"),
        (archives.gzip_of(NOTE), b""),
        (bz2.compress(NOTE), b""),
        (lzma.compress(NOTE), b""),
        (zstd.compress(NOTE), b""),
        (archives.gzip_of(NOTE[:800]) + archives.gzip_of(NOTE[800:]), b""),
    ],
    ids=["gzip with a name", "gzip", "bzip2", "xz", "Zstandard", "two gzip files one after the other"],
)
def test_a_compressed_file_gives_one_member(content: bytes, name: bytes) -> None:
    assert told_of(content).taken == [(name, NOTE)]


def test_attachments_of_an_outlook_message_come_out() -> None:
    attached = {"Rechnung für März.exe": b"MZ" + bytes(5000), "second.txt": b"x" * 4096}
    told = told_of(archives.outlook(attached))
    assert [(name.decode(), content) for name, content in told.taken] == list(attached.items())
    assert told.codes == {b"body": "body"}


def test_a_mail_in_a_mail_is_an_attachment() -> None:
    inner = archives.mail([("a.txt", NOTE)])
    outer = (
        b"Received: from a by b\r\nFrom: a@example.org\r\nTo: b@example.org\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: message/rfc822\r\n\r\n'
        + inner
        + b"\r\n--x--\r\n"
    )
    [(name, content)] = told_of(outer).taken
    assert name == b"part 1.eml"
    assert told_of(content).taken == [(b"a.txt", NOTE)]


def test_an_attachment_has_the_name_that_its_header_encodes() -> None:
    written = archives.mail([("x.exe", NOTE)]).replace(b'filename="x.exe"', b'filename="=?utf-8?b?UmVjaG51bmcg4oCuZXhl?="')
    assert [name.decode() for name, _content in told_of(written).taken] == ["Rechnung \u202eexe"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (archives.plain_zip({"[Content_Types].xml": b"<Types/>", "word/document.xml": b"<w/>"}), "Office document"),
        (archives.plain_zip({"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0", "A.class": b"\xca\xfe\xba\xbe"}), "Java archive"),
        (archives.plain_zip({"AndroidManifest.xml": b"\x03\0", "META-INF/MANIFEST.MF": b"x"}), "Android package"),
        (
            archives.plain_zip(
                {"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": b"<x/>"}, zipfile.ZIP_STORED
            ),
            "OpenDocument",
        ),
        (archives.mail([]), "e-mail without attachments"),
        (archives.compound({("WordDocument",): b"\xec\xa5"}), "OLE compound file"),
    ],
    ids=["docx", "jar", "apk", "odt", "mail", "doc"],
)
def test_documents_and_programs_in_the_form_of_archives_are_samples(content: bytes, words: str) -> None:
    told = told_of(content)
    assert (told.end["kind"], told.end["code"]) == ("whole", "sample")
    assert words in told.end["reason"]
    assert told.taken == []


@pytest.mark.parametrize(
    ("head", "title"),
    [
        (b"\x60\xea" + bytes(60), "arj"),
        (b"\x24\x00-lh5-" + bytes(60), "lha"),
        (b"ITSF\x03\0\0\0" + bytes(60), "chm"),
        (b"MSWIM\0\0\0" + bytes(200), "wim"),
    ],
)
def test_other_formats_are_named_and_taken_as_one_file(head: bytes, title: str) -> None:
    told = told_of(head)
    assert (told.end["kind"], told.end["code"]) == ("whole", "format")
    assert title in told.end["reason"]
    assert "one file" in told.end["reason"]
