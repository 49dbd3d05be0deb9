"""Archives as a test asks for them, harmless ones and such as no program would write."""

from __future__ import annotations

import binascii
import gzip
import hashlib
import hmac
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import py7zr
from Crypto.Cipher import AES
from Crypto.Util import Counter

from malbox_tui.intake.confined.unpacking.zip_crypto import _old_decrypt, old_keys

STORED, DEFLATED = 0, 8


@dataclass(frozen=True)
class Entry:
    """One entry of a zip archive that `zip_of` writes. The `stated` values are what its directory says, if not the truth."""

    name: bytes
    content: bytes = b"harmless"
    method: int = DEFLATED
    packed: bytes | None = None
    password: bytes | None = None
    strength: int = 0
    mode: int = 0
    stated_method: int | None = None
    stated_size: int | None = None
    stated_name: bytes | None = None
    stated_offset: int | None = None
    is_hidden: bool = False
    has_descriptor: bool = False


def zip_of(*entries: Entry, has_directory: bool = True, prefix: bytes = b"") -> bytes:
    """A zip archive, written by hand."""
    body = bytearray(prefix)
    directory = bytearray()
    count = 0
    for entry in entries:
        offset = len(body)
        method, flags, extra, packed, crc = _packed(entry)
        sizes = (0, 0, 0) if entry.has_descriptor else (crc, len(packed), len(entry.content))
        flags |= 8 if entry.has_descriptor else 0
        body += struct.pack("<4s5H3I2H", b"PK\3\4", 20, flags, method, 0, 0, *sizes, len(entry.name), len(extra))
        body += entry.name + extra + packed
        if entry.has_descriptor:
            body += struct.pack("<4s3I", b"PK\7\x08", crc, len(packed), len(entry.content))
        if entry.is_hidden:
            continue
        count += 1
        name = entry.name if entry.stated_name is None else entry.stated_name
        size = len(entry.content) if entry.stated_size is None else entry.stated_size
        stated = method if entry.stated_method is None else entry.stated_method
        place = offset if entry.stated_offset is None else entry.stated_offset
        directory += struct.pack(
            "<4s6H3I5H2I",
            b"PK\1\2", 3 << 8 | 20, 20, flags, stated, 0, 0, crc, len(packed), size, len(name), len(extra),
            0, 0, 0, entry.mode << 16, place,
        )  # fmt: skip
        directory += name + extra
    if not has_directory:
        return bytes(body)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory) + end


def _packed(entry: Entry) -> tuple[int, int, bytes, bytes, int]:
    crc = zlib.crc32(entry.content)
    packed = entry.packed
    if packed is None:
        packed = entry.content if entry.method == STORED else deflated(entry.content)
    if entry.password is None:
        return entry.method, 0, b"", packed, crc
    if not entry.strength:
        return entry.method, 1, b"", zip_crypto(packed, entry.password, crc), crc
    extra = struct.pack("<HHH2sBH", 0x9901, 7, 2, b"AE", entry.strength, entry.method)
    return 99, 1, extra, _aes(packed, entry.password, entry.strength), 0


def deflated(content: bytes) -> bytes:
    """A raw deflate stream."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def zip_crypto(packed: bytes, password: bytes, crc: int) -> bytes:
    """PKWARE's old encryption, by what decrypts it: each byte of the stream is found by decrypting a zero."""
    keys = old_keys(password)
    hidden = bytearray()
    for byte in bytes(11) + bytes([crc >> 24]) + packed:
        stream, _ = _old_decrypt(b"\0", keys)
        hidden.append(byte ^ stream[0])
        _, keys = _old_decrypt(hidden[-1:], keys)
    return bytes(hidden)


def _aes(packed: bytes, password: bytes, strength: int) -> bytes:
    key_bytes = 8 + 8 * strength
    salt = bytes(range(key_bytes // 2))
    derived = hashlib.pbkdf2_hmac("sha1", password, salt, 1000, 2 * key_bytes + 2)
    counter = Counter.new(128, initial_value=1, little_endian=True)
    hidden = AES.new(derived[:key_bytes], AES.MODE_CTR, counter=counter).encrypt(packed)
    code = hmac.new(derived[key_bytes : 2 * key_bytes], hidden, "sha1").digest()[:10]
    return salt + derived[-2:] + hidden + code


def plain_zip(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """As programs write it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def seven_zip(
    files: dict[str, bytes], password: str | None = None, hides_names: bool = False, filters: object = None, renamed: str = ""
) -> bytes:
    """A 7z archive. `renamed`: all members have this name, which py7zr would not write; each is to have a name of its length."""
    buffer = io.BytesIO()
    with py7zr.SevenZipFile(buffer, "w", password=password, header_encryption=hides_names, filters=filters) as archive:
        if renamed:
            archive.set_encoded_header_mode(False)
        for name, content in files.items():
            archive.writestr(content, name)
    written = buffer.getvalue()
    for name in files if renamed else ():
        written = _with_new_header(written, name.encode("utf-16-le"), renamed.encode("utf-16-le"))
    return written


def _with_new_header(archive: bytes, old: bytes, new: bytes) -> bytes:
    """Of a 7z archive whose header is stored; its sums are right again."""
    offset, size = struct.unpack_from("<QQ", archive, 12)
    header = archive[32 + offset : 32 + offset + size]
    assert old in header
    header = header.replace(old, new)
    start = struct.pack("<QQI", offset, size, zlib.crc32(header))
    return archive[:8] + struct.pack("<I", zlib.crc32(start)) + start + archive[32 : 32 + offset] + header


def tar_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar archive of these headers."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as archive:
        for header, content in members:
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


def tar_file(
    name: bytes, content: bytes = b"harmless", type_: bytes = tarfile.REGTYPE, target: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    """A member for `tar_of`."""
    header = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
    header.type = type_
    header.linkname = target
    return header, content if type_ == tarfile.REGTYPE else b""


def gzip_of(content: bytes, name: str = "") -> bytes:
    """A gzip file that gives its content a name."""
    buffer = io.BytesIO()
    with gzip.GzipFile(name, "wb", fileobj=buffer, mtime=0) as file:
        file.write(content)
    return buffer.getvalue()


def cabinet(files: dict[bytes, bytes]) -> bytes:
    """A cabinet with one folder, stored ([MS-CAB])."""
    content = b"".join(files.values())
    blocks = [content[start : start + 32768] for start in range(0, len(content), 32768)]
    entries, offset = bytearray(), 0
    for name, part in files.items():
        entries += struct.pack("<IIHHHH", len(part), offset, 0, 0x21, 0, 0x20) + name + b"\0"
        offset += len(part)
    data = b"".join(struct.pack("<IHH", 0, len(block), len(block)) + block for block in blocks)
    first_file = 36 + 8
    first_data = first_file + len(entries)
    total = first_data + len(data)
    header = struct.pack("<4sIIIIIBBHHHHH", b"MSCF", 0, total, 0, first_file, 0, 3, 1, 1, len(files), 0, 0, 0)
    return header + struct.pack("<IHH", first_data, len(blocks), 0) + bytes(entries) + data


def iso_image(files: dict[bytes, bytes]) -> bytes:
    """An ISO 9660 image with these files in its root (ECMA-119), names in capitals."""
    sector = 2048
    root_at, content_at = 18, 19
    records, contents, place = bytearray(), bytearray(), content_at
    records += _iso_record(b"\0", root_at, sector, 2) + _iso_record(b"\1", root_at, sector, 2)
    for name, content in sorted(files.items()):
        records += _iso_record(name, place, len(content), 0)
        padded = content + bytes(-len(content) % sector)
        contents += padded
        place += len(padded) // sector
    volume = bytearray(sector)
    volume[0:7] = b"\x01CD001\x01"
    volume[40:72] = b"TEST".ljust(32)
    blocks = max(place, 32)
    volume[80:88] = struct.pack("<I", blocks) + struct.pack(">I", blocks)
    volume[120:132] = (
        struct.pack("<H", 1) + struct.pack(">H", 1) + struct.pack("<H", 1) + struct.pack(">H", 1) + struct.pack("<HH", sector, 8)
    )
    volume[128:132] = struct.pack("<H", sector) + struct.pack(">H", sector)
    volume[140:144], volume[148:152] = struct.pack("<I", root_at), struct.pack(">I", root_at)
    volume[156:190] = _iso_record(b"\0", root_at, sector, 2)
    volume[881] = 1
    end = bytearray(sector)
    end[0:7] = b"\xffCD001\x01"
    image = bytes(16 * sector) + bytes(volume) + bytes(end) + bytes(records).ljust(sector, b"\0") + bytes(contents)
    return image.ljust(32 * sector, b"\0")


def _iso_record(name: bytes, place: int, size: int, flags: int) -> bytes:
    length = 33 + len(name) + (len(name) + 1) % 2
    record = struct.pack("<BB", length, 0) + struct.pack("<I", place) + struct.pack(">I", place)
    record += struct.pack("<I", size) + struct.pack(">I", size) + bytes([120, 1, 1, 0, 0, 0, 0, flags, 0, 0])
    record += struct.pack("<H", 1) + struct.pack(">H", 1) + bytes([len(name)]) + name
    return record.ljust(length, b"\0")


def rar(files: dict[bytes, bytes], password: str = "") -> bytes:
    """A rar archive of version 5, stored."""
    archive = b"Rar!\x1a\x07\x01\x00" + _rar_block(b"\x01\x00\x00")
    for name, content in files.items():
        extra = b""
        stored = content
        if password:
            salt, start = bytes(range(16)), bytes(range(16, 32))
            key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 1 << 10)
            stored = AES.new(key, AES.MODE_CBC, start).encrypt(content + bytes(-len(content) % 16))
            record = b"\x01\x00\x00\x0a" + salt + start
            extra = _vint(len(record)) + record
        head = b"\x02" + _vint(2 | (1 if extra else 0))
        head += (_vint(len(extra)) if extra else b"") + _vint(len(stored)) + b"\x04" + _vint(len(content)) + b"\x20"
        head += struct.pack("<I", zlib.crc32(content)) + b"\x00\x01" + _vint(len(name)) + name + extra
        archive += _rar_block(head) + stored
    return archive + _rar_block(b"\x05\x00\x00")


def _rar_block(content: bytes) -> bytes:
    block = _vint(len(content)) + content
    return struct.pack("<I", binascii.crc32(block)) + block


def _vint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes(encoded) + bytes([number])


def mail(attachments: Sequence[tuple[str, bytes]], text: str = "See what is attached.") -> bytes:
    """An e-mail."""
    import email.message

    message = email.message.EmailMessage()
    message["Received"] = "from a by b"
    message["From"] = "a@example.org"
    message["To"] = "b@example.org"
    message["Subject"] = "invoice"
    message.set_content(text)
    for name, content in attachments:
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def compound(streams: dict[tuple[str, ...], bytes]) -> bytes:
    """An OLE compound file ([MS-CFB]); each stream is padded with zeros to 4096 bytes, so that none is a small one."""
    entries: list[list[object]] = [["Root Entry", 5, -1, -1, -1, 0, 0]]
    places: dict[tuple[str, ...], int] = {(): 0}
    chain: list[int] = []
    sectors: list[bytes] = []
    for path, content in streams.items():
        for depth in range(1, len(path)):
            if path[:depth] not in places:
                places[path[:depth]] = len(entries)
                entries.append([path[depth - 1], 1, -1, -1, -1, 0, 0])
        padded = content.ljust(4096, b"\0")
        start = len(sectors)
        for place in range(0, len(padded), 512):
            sectors.append(padded[place : place + 512].ljust(512, b"\0"))
            chain.append(len(sectors))
        chain[-1] = 0xFFFFFFFE
        places[path] = len(entries)
        entries.append([path[-1], 2, -1, -1, -1, start, len(padded)])
    for path, number in places.items():
        if path:
            _hang(entries, places[path[:-1]], number)
    while len(entries) % 4:
        entries.append(["", 0, -1, -1, -1, 0, 0])
    directory_at = len(sectors)
    for first in range(0, len(entries), 4):
        sectors.append(b"".join(_compound_entry(*entry) for entry in entries[first : first + 4]))  # type: ignore[arg-type]
        chain.append(len(sectors))
    chain[-1] = 0xFFFFFFFE
    tables = -(-(len(chain) + 4) // 128)
    table_at = len(sectors)
    chain += [0xFFFFFFFD] * tables
    chain += [0xFFFFFFFF] * (tables * 128 - len(chain))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, tables, directory_at, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header += b"".join(struct.pack("<I", table_at + number) for number in range(tables)).ljust(436, b"\xff")
    return header + b"".join(sectors) + struct.pack(f"<{len(chain)}I", *chain)


def _hang(entries: list[list[object]], parent: int, number: int) -> None:
    """Into the parent's tree, which is a list to the right here."""
    if entries[parent][4] == -1:
        entries[parent][4] = number
        return
    place = entries[parent][4]
    while entries[place][3] != -1:  # type: ignore[index, call-overload]
        place = entries[place][3]  # type: ignore[index, call-overload]
    entries[place][3] = number  # type: ignore[index, call-overload]


def _compound_entry(name: str, kind: int, left: int, right: int, child: int, start: int, size: int) -> bytes:
    encoded = name.encode("utf-16-le")
    head = encoded.ljust(64, b"\0") + struct.pack("<HBB", len(encoded) + 2 if name else 0, kind, 1)
    return head + struct.pack("<iii", left, right, child) + bytes(36) + struct.pack("<IQ", start, size)


def outlook(attachments: dict[str, bytes]) -> bytes:
    """An Outlook message."""
    streams: dict[tuple[str, ...], bytes] = {
        ("__properties_version1.0",): b"",
        ("__substg1.0_1000001F",): "text".encode("utf-16-le"),
    }
    for number, (name, content) in enumerate(attachments.items()):
        folder = f"__attach_version1.0_#{number:08X}"
        streams[folder, "__substg1.0_3707001F"] = name.encode("utf-16-le")
        streams[folder, "__substg1.0_37010102"] = content
    return compound(streams)
