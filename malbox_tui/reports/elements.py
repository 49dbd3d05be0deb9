"""What a report is made of, whatever it is written as. Every block of Malbox's becomes some of these few elements.

All text in them may be hostile, and whoever writes them escapes it; where it `is_safe`, and in what is `Said`, foreign words are
escaped already, and their backslashes stay single.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; `level` 1 is that of the whole."""

    level: int
    text: str
    is_safe: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Prose, its lines as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """Sentences of ours, one a line."""

    sentences: Sequence[str]


@dataclass(frozen=True, slots=True)
class Note:
    """A highlighted note; `level` is info, success, warn or error, or whatever the plugin said."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under titles. Without titles the first cell of each row is a label."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_safe: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """Text in a fixed-width font."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Dump:
    """Bytes, and where they begin."""

    content: bytes
    offset: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes in the order of their lines: how deep each is, its label, and what else is known of it."""

    nodes: Sequence[tuple[int, str, str]]


@dataclass(frozen=True, slots=True)
class Pointer:
    """Another result of the plugin, by name. `what`: "image" or "result"."""

    what: str
    name: str
    caption: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture itself: its media type, told by its content, and its bytes."""

    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Problem:
    """What can't be shown, and why, in a sentence of ours."""

    text: str


Element = Heading | Paragraph | Said | Note | Rule | Table | Code | Dump | Tree | Pointer | Picture | Problem


DUMP_WIDTH = 16


def dump_rows(content: bytes) -> int:
    """How many lines a dump has."""
    return -(-len(content) // DUMP_WIDTH)


def dump_row(dump: Dump, index: int) -> tuple[str, str, str]:
    """One line of a dump: its offset, its bytes in hex, and those that can be printed."""
    row = dump.content[index * DUMP_WIDTH : (index + 1) * DUMP_WIDTH]
    letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
    return f"{dump.offset + index * DUMP_WIDTH:08x}", f"{row.hex(' '):<{3 * DUMP_WIDTH - 1}}", letters
