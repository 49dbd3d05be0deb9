"""Short words for what a content is like beyond its kind: `x64`, `dll`, `dotnet`, `packed`, `office`, `macros`.

Sources: Microsoft's "PE Format" (sections, data directories); the section names that packers leave. Everything is read with bounds.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from headers import Header

OFFICE = frozenset({"ole", "ooxml", "odf", "rtf", "onenote"})
ARCHIVES = frozenset({"7z", "ace", "arj", "bzip2", "cab", "gzip", "iso", "lha", "lz4", "rar", "tar", "xz", "zip", "zstd"})
MACRO_MARKS = (b"vbaProject.bin", "_VBA_PROJECT".encode("utf-16-le"))
"""The name of the macros' part in an OOXML file, and that of their stream in an OLE one."""
PACKER_SECTIONS = (
    b"UPX",
    b".aspack",
    b".adata",
    b".MPRESS",
    b".themida",
    b".vmp",
    b".petite",
    b"PEC2",
    b"pec1",
    b".nsp",
    b".enigma",
    b"FSG!",
    b"MEW",
    b".winlice",
    b"kkrunchy",
)
"""How section names of packers begin."""
DENSE = 7.2
"""Bits of entropy a byte above which code is compressed or encrypted; plain x86 code has about 6.5."""
LOOKED_AT_BYTES = 256 * 1024
LEAST_BYTES = 1024
"""Of less, the entropy says nothing."""
PE_HEADERS_BYTES = 8192
MOST_SECTIONS = 96
IS_EXECUTABLE = 0x2000_0000
SECURITY, COM_DESCRIPTOR = 4, 14
"""Data directories: of signatures, and of .NET."""


def tags_of(kind: str, header: Header | None, path: Path) -> list[str]:
    """In the order in which one would say them."""
    found = [header.arch] if header is not None and header.arch else []
    with path.open("rb") as file:
        if kind == "pe":
            found += _of_pe(file, header)
        elif kind == "elf":
            found += ["packed"] if b"UPX!" in file.read(4096) else []
        elif kind in OFFICE:
            found += ["office", *(["macros"] if _has_macros(file) else [])]
        elif kind in ARCHIVES:
            found.append("archive")
        elif kind == "script":
            found.append("script")
    return found


def _of_pe(file: BinaryIO, header: Header | None) -> Iterator[str]:
    summary = header.summary if header is not None else ""
    yield from (word for word, sign in (("dll", "DLL"), ("driver", "driver")) if sign in summary)
    file.seek(0x3C)
    (offset,) = struct.unpack("<I", file.read(4).ljust(4, b"\0"))
    file.seek(offset)
    headers = file.read(PE_HEADERS_BYTES)
    if len(headers) < 26:
        return
    sections, optional_bytes = struct.unpack_from("<H", headers, 6)[0], struct.unpack_from("<H", headers, 20)[0]
    (magic,) = struct.unpack_from("<H", headers, 24)
    directories = 24 + (112 if magic == 0x20B else 96)
    for word, number in (("dotnet", COM_DESCRIPTOR), ("signed", SECURITY)):
        place = directories + 8 * number
        if place + 8 <= min(24 + optional_bytes, len(headers)) and struct.unpack_from("<I", headers, place + 4)[0]:
            yield word
    if _is_packed(file, headers, 24 + optional_bytes, min(sections, MOST_SECTIONS)):
        yield "packed"


def _is_packed(file: BinaryIO, headers: bytes, first: int, count: int) -> bool:
    for place in range(first, first + 40 * count, 40):
        if place + 40 > len(headers):
            return False
        if headers[place : place + 8].startswith(PACKER_SECTIONS):
            return True
        size, offset = struct.unpack_from("<II", headers, place + 16)
        (flags,) = struct.unpack_from("<I", headers, place + 36)
        if flags & IS_EXECUTABLE and size >= LEAST_BYTES:
            file.seek(offset)
            code = file.read(min(size, LOOKED_AT_BYTES))
            if len(code) >= LEAST_BYTES and _entropy(code) > DENSE:
                return True
    return False


def _entropy(content: bytes) -> float:
    """Bits a byte, by Shannon."""
    total = len(content)
    return -sum(count / total * math.log2(count / total) for count in Counter(content).values())


def _has_macros(file: BinaryIO) -> bool:
    """Looks at both ends, where the names are."""
    start = file.read(LOOKED_AT_BYTES)
    size = file.seek(0, 2)
    file.seek(max(0, size - LOOKED_AT_BYTES))
    end = file.read(LOOKED_AT_BYTES)
    return any(mark in start or mark in end for mark in MACRO_MARKS)
