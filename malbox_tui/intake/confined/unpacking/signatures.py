"""What a content is by bytes at fixed places: which formats are unpacked, and which are known by name alone.

An engine asks `could_be_archive` alone, of a bounded beginning: constants are compared, numbers of a tar header added up, and field
names of a mail header matched. What a content really is, the confined process finds out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

HEAD_BYTES = 36 * 1024
"""How much of a content's beginning has to be seen: a descriptor of an ISO image lies at 32 KiB."""


class Form(StrEnum):
    """A format that is unpacked."""

    ZIP = "zip"
    SEVEN_ZIP = "7z"
    TAR = "tar"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTD = "zstd"
    CAB = "cab"
    ISO = "iso"
    RAR = "rar"
    MAIL = "eml"
    OUTLOOK = "msg"


TITLES = {
    Form.ZIP: "zip archive",
    Form.SEVEN_ZIP: "7z archive",
    Form.TAR: "tar archive",
    Form.GZIP: "gzip-compressed file",
    Form.BZIP2: "bzip2-compressed file",
    Form.XZ: "xz-compressed file",
    Form.ZSTD: "zstd-compressed file",
    Form.CAB: "cabinet archive",
    Form.ISO: "ISO 9660 image",
    Form.RAR: "rar archive",
    Form.MAIL: "e-mail",
    Form.OUTLOOK: "Outlook message",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a content is: `form` when it is to be unpacked; else None, and `why_whole` says why it is taken as one file.

    `title` names it for a person; empty when it is nothing that is known here.
    """

    form: Form | None
    title: str = ""
    why_whole: str = ""


COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""An OLE compound file ([MS-CFB] 2.2): an Outlook message, or an Office document, an installer and more."""

_UNPACKED: tuple[tuple[int, bytes, Form], ...] = (
    (0, b"PK\x03\x04", Form.ZIP),
    (0, b"PK\x05\x06", Form.ZIP),
    (0, b"PK\x07\x08PK\x03\x04", Form.ZIP),
    (0, b"PK00PK\x03\x04", Form.ZIP),
    (0, b"7z\xbc\xaf\x27\x1c", Form.SEVEN_ZIP),
    (0, b"\x1f\x8b\x08", Form.GZIP),
    (0, b"\xfd7zXZ\x00", Form.XZ),
    (0, b"\x28\xb5\x2f\xfd", Form.ZSTD),
    (0, b"MSCF\x00\x00\x00\x00", Form.CAB),
    (0, b"Rar!\x1a\x07", Form.RAR),
    (0, COMPOUND, Form.OUTLOOK),
    (32769, b"CD001", Form.ISO),
)

_NAMED_ONLY: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x60\xea", "arj archive"),
    (2, b"-lh", "lha archive"),
    (2, b"-lz", "lha archive"),
    (0, b"ITSF\x03\x00\x00\x00", "chm help file"),
    (7, b"**ACE**", "ace archive"),
    (20, b"\xdc\xa7\xc4\xfd", "zoo archive"),
    (0, b"070701", "cpio archive"),
    (0, b"070702", "cpio archive"),
    (0, b"070707", "cpio archive"),
    (0, b"!<arch>\n", "ar archive"),
    (0, b"\xed\xab\xee\xdb", "rpm package"),
    (0, b"MSWIM\x00\x00\x00", "wim image"),
    (0, b"xar!", "xar archive"),
    (0, b"\x1f\x9d", "compress (.Z) file"),
    (0, b"LZIP", "lzip-compressed file"),
    (0, b"\x04\x22\x4d\x18", "lz4-compressed file"),
    (0, b"hsqs", "squashfs image"),
    (0, b"KDMV", "vmdk disk image"),
    (0, b"vhdxfile", "vhdx disk image"),
    (0, b"conectix", "vhd disk image"),
    (0, b"QFI\xfb", "qcow disk image"),
    (0, b"\x78\x9f\x3e\x22", "TNEF (winmail.dat) message"),
    (32769, b"BEA01", "UDF image"),
)

_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_HEADER_LINE = re.compile(rb"(?:From [^\n]*\n)?[!-9;-~]{1,76}:")
_MAIL_FIELDS = re.compile(
    rb"^(received|message-id|return-path|delivered-to|from|to|cc|date|subject|mime-version)[ \t]*:", re.IGNORECASE | re.MULTILINE
)
_MAIL_HEAD_BYTES = 16 * 1024


def could_be_archive(head: bytes) -> bool:
    """Whether a content that begins with `head` (`HEAD_BYTES` of it, or all) may be one that is unpacked."""
    kind = known_by_head(head)
    return kind is not None and kind.form is not None


def known_by_head(head: bytes) -> Kind | None:
    """What the content seems to be; None when it is nothing of this field. A zip or a compound file may be a document all the same."""
    for offset, magic, form in _UNPACKED:
        if head.startswith(magic, offset):
            return Kind(form, TITLES[form])
    for form, matches in _BY_PATTERN:
        if matches(head):
            return Kind(form, TITLES[form])
    for offset, magic, title in _NAMED_ONLY:
        if head.startswith(magic, offset):
            return Kind(None, title, f"It is a {title}, a format that is not unpacked here; it is taken as one file.")
    return None


def is_tar(block: bytes) -> bool:
    """Whether `block` begins with a tar header: its checksum fits (POSIX.1-1988; old and GNU forms have the same)."""
    if len(block) < 512 or not any(block[:512]):
        return False
    stated = block[148:156].strip(b" \x00")
    if not stated or len(stated) > 7 or not all(0x30 <= digit <= 0x37 for digit in stated):
        return False
    header = block[:148] + b" " * 8 + block[156:512]
    total = int(stated, 8)
    return total in (sum(header), sum(byte - 256 if byte > 127 else byte for byte in header))


def is_mail(head: bytes) -> bool:
    """Whether `head` begins with the header of an e-mail that was sent (RFC 5322), and not with that of a saved web page (MHTML)."""
    if not _HEADER_LINE.match(head):
        return False
    header = re.split(rb"\r?\n\r?\n", head[:_MAIL_HEAD_BYTES], maxsplit=1)[0]
    fields = {field.lower() for field in _MAIL_FIELDS.findall(header)}
    return bool(fields & {b"received", b"return-path", b"delivered-to"} and len(fields) >= 2) or (
        len(fields) >= 3 and b"from" in fields and bool(fields & {b"to", b"cc", b"message-id"})
    )


_BY_PATTERN = (
    (Form.BZIP2, lambda head: _BZIP2.match(head) is not None),
    (Form.ZSTD, lambda head: _ZSTD_SKIPPABLE.match(head) is not None),
    (Form.TAR, is_tar),
    (Form.MAIL, is_mail),
)
