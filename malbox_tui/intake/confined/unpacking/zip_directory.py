"""What a zip archive holds, by its directory and by what is really there.

The directory at the end is what other programs show. It may lie: it names entries that aren't there, hides others, and states other
sizes than those in front of the content. So it is read first, then the whole file is searched for entries that it doesn't name.
Numbers of sections are those of PKWARE's APPNOTE 6.3.10.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .source import Source

STORED, DEFLATE, DEFLATE64, BZIP2, LZMA, ZSTD_OLD, ZSTD, XZ, AES = 0, 8, 9, 12, 14, 20, 93, 95, 99
"""4.4.5"""

ENCRYPTED, HAS_DESCRIPTOR, STRONGLY_ENCRYPTED = 1 << 0, 1 << 3, 1 << 6
"""4.4.4"""

_END = struct.Struct("<4s4H2IH")
_END_64_LOCATOR = struct.Struct("<4sIQI")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_LONGEST_COMMENT = 0xFFFF
_UNIX_SYSTEMS = (3, 19)
_NEWEST_VERSION = 99


@dataclass(frozen=True, slots=True)
class AesTrait:
    """WinZip's AES: with version 2 there is no CRC. `strength` 1, 2, 3 is 128, 192, 256 bits."""

    version: int
    strength: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `method` is the real one also of encrypted content. `packed_bytes` None: only the content itself tells.

    `start` is where its content begins; `mode` that of Unix, 0 where the archive says none.
    """

    name: bytes
    flags: int
    method: int
    crc: int | None
    packed_bytes: int | None
    size_bytes: int | None
    offset: int
    check: int
    start: int = 0
    mode: int = 0
    aes: AesTrait | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether a password is needed."""
        return bool(self.flags & ENCRYPTED)

    @property
    def is_folder(self) -> bool:
        """Whether it has the name of a folder and no content."""
        return self.name.endswith((b"/", b"\\")) and not self.size_bytes


@dataclass(frozen=True, slots=True)
class Found:
    """An entry, and the other account of it where directory and content disagree. `entry` None: it isn't where the directory says."""

    name: bytes
    entry: Entry | None
    other: Entry | None = None


def find_entries(source: Source) -> Iterator[Found]:
    """All entries, those of the directory first."""
    covered: dict[int, int] = {}
    lost: dict[bytes, None] = {}
    for central in _central_entries(source):
        local = _local_entry(source, central.offset)
        if local is None:
            lost[central.name] = None
            continue
        merged = replace(central, start=local.start, flags=central.flags | local.flags & ENCRYPTED, check=local.check)
        covered[central.offset] = local.start + (central.packed_bytes or 0)
        yield Found(central.name, merged, local if _disagree(merged, local) else None)
    for local in _hidden_entries(source, covered):
        lost.pop(local.name, None)
        yield Found(local.name, local)
    for name in lost:
        yield Found(name, None)


def _disagree(central: Entry, local: Entry) -> bool:
    if central.method != local.method:
        return True
    if local.flags & HAS_DESCRIPTOR or local.packed_bytes is None:
        return False
    return (central.crc, central.packed_bytes, central.size_bytes) != (local.crc, local.packed_bytes, local.size_bytes)


def _central_entries(source: Source) -> Iterator[Entry]:
    place = _directory_start(source)
    if place is None:
        return
    offset, shift = place
    while True:
        fixed = source.at(offset, _CENTRAL.size)
        if len(fixed) < _CENTRAL.size or fixed[:4] != b"PK\x01\x02":
            return
        (
            _,
            made_by,
            _,
            flags,
            method,
            time,
            _,
            crc,
            packed,
            size,
            name_bytes,
            extra_bytes,
            comment_bytes,
            _,
            _,
            outside,
            start,
        ) = _CENTRAL.unpack(fixed)
        rest = source.at(offset + _CENTRAL.size, name_bytes + extra_bytes)
        size, packed, start = _wide(rest[name_bytes:], size, packed, start)
        method, aes = _real_method(method, rest[name_bytes:])
        yield Entry(
            name=rest[:name_bytes],
            flags=flags,
            method=method,
            crc=crc,
            packed_bytes=packed,
            size_bytes=size,
            offset=start + shift,
            check=_check(flags, time, crc),
            mode=outside >> 16 if made_by >> 8 in _UNIX_SYSTEMS else 0,
            aes=aes,
        )
        offset += _CENTRAL.size + name_bytes + extra_bytes + comment_bytes


def _directory_start(source: Source) -> tuple[int, int] | None:
    """Where the directory begins, and by how much all places are shifted because something stands before the archive."""
    tail_offset = max(0, source.size_bytes - _END.size - _LONGEST_COMMENT)
    tail = source.at(tail_offset, _END.size + _LONGEST_COMMENT)
    place = tail.rfind(b"PK\x05\x06")
    while place >= 0:
        if len(tail) - place >= _END.size:
            end_offset = tail_offset + place
            _, _, _, _, _, size, start, _ = _END.unpack_from(tail, place)
            if (found := _directory_at(source, end_offset, *_wide_end(source, end_offset, size, start))) is not None:
                return found
        place = tail.rfind(b"PK\x05\x06", 0, place)
    return None


def _wide_end(source: Source, end_offset: int, size: int, start: int) -> tuple[int, int]:
    """4.3.14, 4.3.15"""
    locator = source.at(end_offset - _END_64_LOCATOR.size, _END_64_LOCATOR.size)
    if len(locator) == _END_64_LOCATOR.size and locator[:4] == b"PK\x06\x07":
        wide = source.at(_END_64_LOCATOR.unpack(locator)[2], _END_64.size)
        if len(wide) == _END_64.size and wide[:4] == b"PK\x06\x06":
            return _END_64.unpack(wide)[8:10]
    return size, start


def _directory_at(source: Source, end_offset: int, size: int, start: int) -> tuple[int, int] | None:
    for place in (start, end_offset - size):
        if place >= 0 and source.at(place, 4) == b"PK\x01\x02":
            return place, place - start
    return None


def _local_entry(source: Source, offset: int) -> Entry | None:
    fixed = source.at(offset, _LOCAL.size)
    if len(fixed) < _LOCAL.size or fixed[:4] != b"PK\x03\x04":
        return None
    _, version, flags, method, time, _, crc, packed, size, name_bytes, extra_bytes = _LOCAL.unpack(fixed)
    rest = source.at(offset + _LOCAL.size, name_bytes + extra_bytes)
    if version & 0xFF > _NEWEST_VERSION or len(rest) < name_bytes + extra_bytes:
        return None
    size, packed, _ = _wide(rest[name_bytes:], size, packed, 0)
    method, aes = _real_method(method, rest[name_bytes:])
    unknown = bool(flags & HAS_DESCRIPTOR) and not packed
    return Entry(
        name=rest[:name_bytes],
        flags=flags,
        method=method,
        crc=None if unknown else crc,
        packed_bytes=None if unknown else packed,
        size_bytes=None if unknown else size,
        offset=offset,
        check=_check(flags, time, crc),
        start=offset + _LOCAL.size + name_bytes + extra_bytes,
        aes=aes,
    )


def _hidden_entries(source: Source, covered: dict[int, int]) -> Iterator[Entry]:
    """Entries that lie between, before or behind those that are known."""
    place = source.find(b"PK\x03\x04", 0)
    while place >= 0:
        beyond = place + 4
        if place in covered:
            beyond = max(beyond, covered[place])
        elif (entry := _local_entry(source, place)) is not None and entry.name:
            yield entry
            beyond = max(beyond, entry.start + (entry.packed_bytes or 0))
        place = source.find(b"PK\x03\x04", beyond)


def _check(flags: int, time: int, crc: int) -> int:
    """What the last byte of a ZipCrypto header must be (6.1.6)."""
    return time >> 8 if flags & HAS_DESCRIPTOR else crc >> 24


def _wide(extra: bytes, size: int, packed: int, start: int) -> tuple[int, int, int]:
    """4.5.3"""
    field = _field(extra, 0x0001)
    place = 0
    values = [size, packed, start]
    for number, value in enumerate(values):
        if value == 0xFFFFFFFF and len(field) >= place + 8:
            values[number] = int.from_bytes(field[place : place + 8], "little")
            place += 8
    return values[0], values[1], values[2]


def _real_method(method: int, extra: bytes) -> tuple[int, AesTrait | None]:
    field = _field(extra, 0x9901)
    if method != AES or len(field) < 7:
        return method, None
    version, _, strength, real = struct.unpack_from("<H2sBH", field)
    return real, AesTrait(version, strength)


def _field(extra: bytes, wanted: int) -> bytes:
    place = 0
    while place + 4 <= len(extra):
        number, length = struct.unpack_from("<HH", extra, place)
        if number == wanted:
            return extra[place + 4 : place + 4 + length]
        place += 4 + length
    return b""
