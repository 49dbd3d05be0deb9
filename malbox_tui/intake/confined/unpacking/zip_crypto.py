"""The two encryptions of zip archives: PKWARE's old one (APPNOTE 6.1) and WinZip's AES (its specification AE-1 and AE-2)."""

from __future__ import annotations

import hashlib
import hmac
import zlib
from collections.abc import Iterator

from Crypto.Cipher import AES
from Crypto.Util import Counter

from .problems import SpoiltMember, damaged
from .source import Source
from .zip_directory import Entry

OLD_HEADER_BYTES = 12
_AUTHENTICATION_BYTES = 10
_VERIFIER_BYTES = 2
_ITERATIONS = 1000

_CRC_TABLE = tuple(zlib.crc32(bytes([byte]), 0xFFFFFFFF) ^ 0xFFFFFFFF for byte in range(256))
"""zlib's CRC without its inversions: `table[byte]` is the remainder of that byte."""

Keys = tuple[int, int, int]


def old_keys(password: bytes) -> Keys:
    """The three keys that a password gives (6.1.5)."""
    first, second, third = 0x12345678, 0x23456789, 0x34567890
    for byte in password:
        first = (first >> 8) ^ _CRC_TABLE[(first ^ byte) & 0xFF]
        second = ((second + (first & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        third = (third >> 8) ^ _CRC_TABLE[(third ^ (second >> 24)) & 0xFF]
    return first, second, third


def old_check(source: Source, entry: Entry, keys: Keys) -> bool:
    """Whether the password may be right: one wrong one in 256 seems so too."""
    header = source.at(entry.start, OLD_HEADER_BYTES)
    if len(header) < OLD_HEADER_BYTES:
        return False
    clear, _keys = _old_decrypt(header, keys)
    return clear[-1] == entry.check & 0xFF


def old_decrypted(source: Source, entry: Entry, keys: Keys) -> Iterator[bytes]:
    """The content, still packed."""
    to_skip = OLD_HEADER_BYTES
    for chunk in source.chunks(entry.start, entry.packed_bytes):
        clear, keys = _old_decrypt(chunk, keys)
        yield clear[to_skip:]
        to_skip = max(0, to_skip - len(clear))


def _old_decrypt(chunk: bytes, keys: Keys) -> tuple[bytes, Keys]:
    first, second, third = keys
    table = _CRC_TABLE
    clear = bytearray()
    for byte in chunk:
        word = third | 2
        byte ^= ((word * (word ^ 1)) >> 8) & 0xFF
        clear.append(byte)
        first = (first >> 8) ^ table[(first ^ byte) & 0xFF]
        second = ((second + (first & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        third = (third >> 8) ^ table[(third ^ (second >> 24)) & 0xFF]
    return bytes(clear), (first, second, third)


class AesKey:
    """What a password gives for one member."""

    def __init__(self, source: Source, entry: Entry, password: bytes) -> None:
        """Raises `SpoiltMember` when the member is no such thing."""
        if entry.aes is None or entry.aes.strength not in (1, 2, 3) or entry.packed_bytes is None:
            raise SpoiltMember(*damaged("what it says of its encryption is wrong"))
        key_bytes = 8 + 8 * entry.aes.strength
        salt_bytes = key_bytes // 2
        salt = source.at(entry.start, salt_bytes)
        derived = hashlib.pbkdf2_hmac("sha1", password, salt, _ITERATIONS, 2 * key_bytes + _VERIFIER_BYTES)
        self._source = source
        self._key = derived[:key_bytes]
        self._authentication_key = derived[key_bytes : 2 * key_bytes]
        self._start = entry.start + salt_bytes + _VERIFIER_BYTES
        self._count = entry.packed_bytes - salt_bytes - _VERIFIER_BYTES - _AUTHENTICATION_BYTES
        self.fits = source.at(entry.start + salt_bytes, _VERIFIER_BYTES) == derived[2 * key_bytes :]
        """Whether the password may be right: one wrong one in 65536 seems so too."""

    def decrypted(self) -> Iterator[bytes]:
        """The content, still packed. Raises `SpoiltMember` at its end when it is not what was encrypted."""
        cipher = AES.new(self._key, AES.MODE_CTR, counter=Counter.new(128, initial_value=1, little_endian=True))
        authentication = hmac.new(self._authentication_key, digestmod="sha1")
        for chunk in self._source.chunks(self._start, max(0, self._count)):
            authentication.update(chunk)
            yield cipher.decrypt(chunk)
        stated = self._source.at(self._start + max(0, self._count), _AUTHENTICATION_BYTES)
        if not hmac.compare_digest(stated, authentication.digest()[:_AUTHENTICATION_BYTES]):
            raise SpoiltMember(*damaged("its authentication code does not fit"))
