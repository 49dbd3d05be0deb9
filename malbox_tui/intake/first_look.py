"""What a content seems to be by its first bytes alone, in a word for a person. Whether it is that, the file-type plugin finds out."""

from __future__ import annotations

from malbox_tui.intake.confined.unpacking.signatures import COMPOUND, known_by_head

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"MZ", "Windows program"),
    (b"\x7fELF", "ELF program"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (b"\xce\xfa\xed\xfe", "Mach-O program"),
    (b"\xca\xfe\xba\xbe", "Mach-O or Java class"),
    (b"%PDF-", "PDF"),
    (b"{\\rtf", "RTF"),
    (b"L\x00\x00\x00\x01\x14\x02\x00", "shortcut"),
    (b"dex\n", "Android code"),
    (b"#!", "script"),
    (b"\x89PNG", "picture"),
    (b"\xff\xd8\xff", "picture"),
    (b"GIF8", "picture"),
)
_TEXT_BYTES = bytes({7, 8, 9, 10, 12, 13, 27} | set(range(0x20, 0x100)) - {0x7F})
_LOOKED_AT_BYTES = 512


def first_kind(head: bytes) -> str:
    """A word for what begins with `head`."""
    if head.startswith(COMPOUND):
        return "Office or Outlook"
    if (known := known_by_head(head)) is not None:
        return known.title
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    return "text" if head and not head[:_LOOKED_AT_BYTES].translate(None, _TEXT_BYTES) else "other"
