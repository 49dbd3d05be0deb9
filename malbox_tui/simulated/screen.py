"""What is on the screen of a simulated machine: a small picture that follows from what it is told, the same at every call."""

from __future__ import annotations

import struct
import zlib
from random import Random

WIDTH, HEIGHT = 160, 100
STEPS = 6
"""So many pictures differ while something runs; afterwards nothing moves any more."""
STEP_S = 5.0
"""How long one of them stands."""

_PALETTE = bytes((18, 22, 34, 44, 82, 120, 226, 228, 232, 60, 64, 74, 196, 72, 60, 96, 168, 108))
_DESKTOP, _BAR, _WINDOW, _TEXT, _ALERT, _CALM = range(len(_PALETTE) // 3)
_LINE_PIXELS = 8


def picture(name: str, programs: int, step: int) -> bytes:
    """A PNG: the desktop of the machine `name`, with a window once something was put into it (`step` above 0), in which there is a line
    more for each step, and with a light in its bar for each of its `programs`."""
    rows = [bytearray([_DESKTOP]) * WIDTH for _ in range(HEIGHT)]
    _fill(rows, 0, HEIGHT - 10, WIDTH, 10, _BAR)
    for number in range(min(programs, 12)):
        _fill(rows, 4 + 12 * number, HEIGHT - 8, 8, 6, _CALM)
    if step > 0:
        _fill(rows, 20, 12, WIDTH - 40, HEIGHT - 34, _WINDOW)
        _fill(rows, 20, 12, WIDTH - 40, 6, _BAR)
        lengths = Random(name)
        for number in range(min(step, STEPS)):
            colour = _ALERT if number == STEPS - 1 else _TEXT
            _fill(rows, 26, 22 + _LINE_PIXELS * number, lengths.randrange(30, WIDTH - 60), 3, colour)
    return _png(rows)


def _fill(rows: list[bytearray], left: int, top: int, width: int, height: int, colour: int) -> None:
    for row in rows[top : top + height]:
        row[left : left + width] = bytes([colour]) * width


def _png(rows: list[bytearray]) -> bytes:
    """Indexed colours, eight bits a pixel, no filters (https://www.w3.org/TR/png-3/)."""
    pixels = b"".join(b"\0" + row for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", _PALETTE), (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
