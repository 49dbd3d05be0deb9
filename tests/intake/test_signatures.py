"""What contents are by their first bytes, whatever they are called."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from malbox_tui.intake.confined.unpacking.signatures import Form, could_be_archive, is_tar, known_by_head

MAIL = b"Received: from a by b\r\nFrom: a@example.org\r\nTo: b@example.org\r\nSubject: invoice\r\n\r\ntext\r\n"
SAVED_PAGE = (
    b"From: <Saved by Blink>\r\nSubject: page\r\nDate: Mon\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related\r\n\r\n"
)


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "harmless")
    return buffer.getvalue()


def tarred(form: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        member = tarfile.TarInfo("note.txt")
        member.size = 8
        archive.addfile(member, io.BytesIO(b"harmless"))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (zipped("note.txt"), Form.ZIP),
        (zipped(), Form.ZIP),
        (gzip.compress(b"harmless"), Form.GZIP),
        (bz2.compress(b"harmless"), Form.BZIP2),
        (bz2.compress(b""), Form.BZIP2),
        (lzma.compress(b"harmless"), Form.XZ),
        (tarred(tarfile.USTAR_FORMAT), Form.TAR),
        (tarred(tarfile.GNU_FORMAT), Form.TAR),
        (tarred(tarfile.PAX_FORMAT), Form.TAR),
        (b"7z\xbc\xaf\x27\x1c" + bytes(26), Form.SEVEN_ZIP),
        (bytes(32769) + b"CD001", Form.ISO),
        (MAIL, Form.MAIL),
    ],
)
def test_archives_are_known_by_their_content(content: bytes, form: Form) -> None:
    found = known_by_head(content)
    assert found is not None
    assert found.form is form


@pytest.mark.parametrize(
    "content",
    [b"", b"MZ" + bytes(510), b"MZ" + zipped("note.txt"), b"Note: this is text.\n", b"PK", bytes(10240), SAVED_PAGE],
    ids=["empty", "EXE", "self-extracting EXE", "text", "two letters", "zeros", "saved web page"],
)
def test_what_is_no_archive_is_not_taken_for_one(content: bytes) -> None:
    assert not could_be_archive(content)


def test_other_formats_are_named_and_not_unpacked() -> None:
    found = known_by_head(b"\x60\xea" + bytes(100))
    assert found is not None
    assert found.form is None
    assert "arj" in found.why_whole
    assert not could_be_archive(b"\x60\xea" + bytes(100))


def test_a_tar_header_with_a_wrong_checksum_is_none() -> None:
    header = bytearray(tarred(tarfile.USTAR_FORMAT))
    header[0] ^= 1
    assert not is_tar(bytes(header))
