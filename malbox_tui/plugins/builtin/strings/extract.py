"""The strings in a file: runs of printable ASCII, alone or as UTF-16. One pass in windows, in time that grows with the file alone."""

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAX_CHARACTERS = 4096
"""A longer run is several strings."""
WINDOW_BYTES = 1024 * 1024

_LOOKAHEAD_BYTES = 2 * MAX_CHARACTERS

_KINDS = bytes(ord("p") if byte == 9 or 32 <= byte < 127 else ord("x") if byte else ord("0") for byte in range(256))
"""A byte → `p` for one that can be printed, `0` for NUL, `x` for all others."""


class Found(NamedTuple):
    """A string, and where in the file it begins."""

    offset: int
    encoding: str
    text: str


def strings_of(file: BinaryIO, min_length: int, max_bytes: int) -> Iterator[Found]:
    """The strings in the first `max_bytes` of a file, window by window in the order of their offsets."""
    patterns = _patterns(min_length)
    base, left, tail = 0, max_bytes, b""
    resume = dict.fromkeys(patterns, 0)
    while True:
        chunk = file.read(min(WINDOW_BYTES, left))
        left -= len(chunk)
        buffer, is_last = tail + chunk, not chunk or not left
        horizon = len(buffer) if is_last else max(0, len(buffer) - _LOOKAHEAD_BYTES)
        kinds = buffer.translate(_KINDS)
        found: list[Found] = []
        for encoding, pattern in patterns.items():
            place = max(0, resume[encoding] - base)
            for match in pattern.finditer(kinds, place):
                if match.start() >= horizon:
                    break
                place = match.end()
                text = buffer[match.start() : place].replace(b"\0", b"").decode("ascii")
                found.append(Found(base + match.start(), encoding, text))
            resume[encoding] = base + max(place, horizon)
        yield from _settled(found)
        if is_last:
            return
        tail = buffer[horizon:]
        base += horizon


def _patterns(min_length: int) -> dict[str, re.Pattern[bytes]]:
    """An encoding → its runs in the kinds of bytes. Each begins with a literal, which `re` looks for several times faster than for a
    class. What could be read as both orders of UTF-16 is settled afterwards."""
    most = MAX_CHARACTERS - min_length
    units = {"ASCII": b"p", "UTF-16LE": b"p0", "UTF-16BE": b"0p"}
    return {encoding: re.compile(unit * min_length + b"(?:%b){0,%d}" % (unit, most)) for encoding, unit in units.items()}


def _settled(found: list[Found]) -> list[Found]:
    """Of two readings of the same bytes the one that begins at an even offset; little-endian, if both do or none."""
    kept: list[Found] = []
    for string in sorted(found):
        if not kept or not _overlap(kept[-1], string):
            kept.append(string)
        elif _rank(string) < _rank(kept[-1]):
            kept[-1] = string
    return kept


def _overlap(first: Found, second: Found) -> bool:
    """Whether both are UTF-16, of different orders, and share bytes."""
    differ = first.encoding != second.encoding and "ASCII" not in (first.encoding, second.encoding)
    return differ and second.offset < first.offset + 2 * len(first.text)


def _rank(string: Found) -> tuple[int, bool]:
    return string.offset % 2, string.encoding != "UTF-16LE"
