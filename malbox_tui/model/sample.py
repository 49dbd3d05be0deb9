r"""Samples and the names they came with.

A name is a label: never a path, never a word for a shell. It is kept as the bytes that it had and shown escaped. The escape is
reversible: whatever a terminal could act on, or a person could not see, becomes `\xNN` for each of its bytes; a backslash is `\\`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from malbox_tui.model.report import Identification

_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters that `str.isprintable` lets through although they show as nothing
(Unicode's Default_Ignorable_Code_Point, and the blank Braille pattern)."""

_ESCAPED = re.compile(rb"\\(?:x([0-9a-f]{2})|(\\))")


MAX_NOTES = 32
MAX_NOTE_CHARACTERS = 2000
MAX_TAGS = 32
MAX_TAG_CHARACTERS = 64


class SampleName(msgspec.Struct, frozen=True):
    """A name that a sample came with, its bytes as they were, and where it came from (a path, as bytes; empty: unknown).

    `archive` is the SHA-256 of the archive that it was in, the outermost one; empty: it was in none.
    """

    name: bytes
    origin: bytes = b""
    archive: str = ""


class Note(msgspec.Struct, frozen=True):
    """What a person wrote of a sample, and when."""

    at: float
    actor: str
    text: str


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A content, known by its SHA-256 (lower-case hex). People gave it `notes`, in the order they came, and `tags`, sorted."""

    sha256: str
    size_bytes: int
    first_seen_at: float
    names: tuple[SampleName, ...] = ()
    identification: Identification | None = None
    notes: tuple[Note, ...] = ()
    tags: tuple[str, ...] = ()


Marks = tuple[tuple[Note, ...], tuple[str, ...]]
"""Notes and tags of a sample."""


def marks_after(marks: Marks, note: Note | None, tags: Iterable[str] = (), untags: Iterable[str] = ()) -> Marks:
    """The marks with this note too, with these tags and without those."""
    notes, tagged = marks
    return notes if note is None else (*notes, note), tuple(sorted((set(tagged) | set(tags)) - set(untags)))


def escape(name: bytes) -> str:
    r"""`name` as text that is safe to show on one line, from which `unescape` makes the same bytes again."""
    return visible(name.decode("utf-8", "surrogateescape"))


def unescape(text: str) -> bytes:
    """The bytes that `escape` made `text` from. Raises ValueError when `text` holds a backslash that `escape` never writes."""
    raw = text.encode("utf-8", "surrogateescape")
    if b"\\" in _ESCAPED.sub(b"", raw):
        raise ValueError(f"not an escaped name: {text!r}")
    return _ESCAPED.sub(lambda m: b"\\" if m[2] else bytes([int(m[1], 16)]), raw)


def visible(text: str) -> str:
    r"""Any text of foreign origin as one that is safe to show on one line (the same escape as names)."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char == "\\":
        return "\\\\"
    if char.isprintable() and not _INVISIBLE.match(char):
        return char
    return "".join(
        f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass")
    )
