"""Pictures that reports name, for pages that show them: told by their content, whole from their first byte to their last, and bounded.

What is neither PNG nor JPEG is never put into a page, whatever it is called; a browser is told which of the two it is, and takes it for
nothing else.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping

from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError
from malbox_tui.model.report import ResultRef
from malbox_tui.reports.elements import Element, Picture, Pointer
from malbox_tui.reports.gathering import PluginReport, Read

MAX_PICTURE_BYTES = 2 * 1024 * 1024
MAX_BYTES_IN_ALL = 12 * 1024 * 1024
MAX_PICTURES = 64
MAX_PIXELS = 16_000_000

PNG_BEGINS = b"\x89PNG\r\n\x1a\n"
JPEG_BEGINS = b"\xff\xd8\xff"

_PNG_KEPT = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})
"""The chunks that make the picture (https://www.w3.org/TR/png-3/#5ChunkOrdering); texts, profiles and animations are left out."""
_JPEG_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
"""Markers of the frames that browsers show: baseline, extended and progressive (ITU-T T.81, table B.1)."""
_JPEG_SCAN, _JPEG_END = 0xDA, b"\xff\xd9"


def pictures_named(part: PluginReport, elements: Iterable[Element]) -> Iterator[ResultRef]:
    """The results that a report shows as pictures, each once. `elements` are those of the report."""
    results = {result.name: result for result in part.run.results}
    named = dict.fromkeys(element.name for element in elements if isinstance(element, Pointer) and element.what == "image")
    return (results[name] for name in named if name in results)


async def read_pictures(read: Read, references: Iterable[ResultRef]) -> Mapping[ResultRef, Picture]:
    """Those that can be shown on a page. Raises `EngineStopped` and `Disconnected`."""
    found: dict[ResultRef, Picture] = {}
    left = MAX_BYTES_IN_ALL
    for reference in references:
        if len(found) == MAX_PICTURES or reference in found or reference.size_bytes > min(MAX_PICTURE_BYTES, left):
            continue
        try:
            content = await read(reference, MAX_PICTURE_BYTES)
        except (EngineStopped, Disconnected):
            raise
        except MalboxError:
            continue  # The list of results says what it is; a page without a picture is worth having.
        if (picture := as_picture(content)) is not None:
            found[reference] = picture
            left -= len(picture.content)
    return found


def as_picture(content: bytes) -> Picture | None:
    """The picture in these bytes; None: they are none that a page may show."""
    if content.startswith(PNG_BEGINS):
        kept = _png(content)
        return None if kept is None else Picture("image/png", kept)
    if content.startswith(JPEG_BEGINS) and _is_jpeg(content):
        return Picture("image/jpeg", content)
    return None


def _png(content: bytes) -> bytes | None:
    """The picture and nothing else; None when it is damaged or too large."""
    kept, at, is_first = bytearray(PNG_BEGINS), len(PNG_BEGINS), True
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        kind, end = content[at + 4 : at + 8], at + 12 + length
        if end > len(content) or struct.unpack_from(">I", content, end - 4)[0] != zlib.crc32(content[at + 4 : end - 4]):
            return None
        if is_first and not _is_header(kind, content[at + 8 : end - 4]):
            return None
        is_first = False
        if kind in _PNG_KEPT:
            kept += content[at:end]
        if kind == b"IEND":
            return bytes(kept)
        at = end
    return None


def _is_header(kind: bytes, data: bytes) -> bool:
    if kind != b"IHDR" or len(data) != 13:
        return False
    width, height = struct.unpack_from(">II", data)
    return bool(0 < width * height <= MAX_PIXELS)


def _is_jpeg(content: bytes) -> bool:
    """Whether it has a frame of a size that can be shown, a scan, and an end with nothing behind it."""
    at, has_frame = 2, False
    while at + 4 <= len(content) and content[at] == 0xFF:
        marker = content[at + 1]
        (length,) = struct.unpack_from(">H", content, at + 2)
        if marker in _JPEG_FRAMES and at + 9 <= len(content):
            height, width = struct.unpack_from(">HH", content, at + 5)
            has_frame = 0 < width * height <= MAX_PIXELS
        if marker == _JPEG_SCAN:
            return has_frame and content.endswith(_JPEG_END)
        at += 2 + length
    return False
