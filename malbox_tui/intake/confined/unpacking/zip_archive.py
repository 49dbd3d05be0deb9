"""Zip archives. Documents and programs that are zip archives are samples."""

from __future__ import annotations

import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from . import codecs
from .outlet import Outlet, refuse_special
from .problems import PASSWORD_CODE, IsSample, SpoiltMember, as_problem, damaged, wrong_password
from .source import Source
from .zip_crypto import AesKey, old_check, old_decrypted, old_keys
from .zip_directory import (
    BZIP2,
    DEFLATE,
    DEFLATE64,
    LZMA,
    STORED,
    STRONGLY_ENCRYPTED,
    XZ,
    ZSTD,
    ZSTD_OLD,
    Entry,
    Found,
    find_entries,
)

_DECODERS: dict[int, Callable[[], codecs.Decoder]] = {
    STORED: codecs.Stored,
    DEFLATE: partial(codecs.Inflate, -zlib.MAX_WBITS),
    DEFLATE64: codecs.Inflate64,
    BZIP2: codecs.bzip2_decoder,
    LZMA: codecs.LzmaInZip,
    ZSTD_OLD: codecs.zstd_decoder,
    ZSTD: codecs.zstd_decoder,
    XZ: codecs.xz_decoder,
}

_OTHER_METHODS = {1: "shrink", 6: "implode", 10: "DCL implode", 94: "MP3", 96: "JPEG", 97: "WavPack", 98: "PPMd"}

_TRIED_IN_VAIN = 50
"""After so many members in a row that no password opened, none is tried any more: each costs a thousand rounds of SHA-1."""

_LOOKED_AT_FOR_KIND = 2000
"""How many entries are looked at to see whether the archive is a sample itself."""

_SAMPLES: tuple[tuple[bytes, str], ...] = (
    (b"[content_types].xml", "Office document or other OPC package"),
    (b"androidmanifest.xml", "Android package"),
    (b"appxmanifest.xml", "Windows app package"),
    (b"appxmetadata/appxbundlemanifest.xml", "Windows app package"),
    (b"install.rdf", "browser extension"),
    (b"meta-inf/manifest.mf", "Java archive"),
    (b"meta-inf/container.xml", "electronic book"),
)
_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument."


def unpack(source: Source, passwords: list[str], outlet: Outlet) -> None:
    """Raises `IsSample`, `LimitReached`."""
    _check_for_sample(source)
    keyring = _Keyring(source, passwords)
    for found in find_entries(source):
        _take(source, found, keyring, outlet)


def _check_for_sample(source: Source) -> None:
    names = set()
    for number, found in enumerate(islice(find_entries(source), _LOOKED_AT_FOR_KIND)):
        names.add(found.name.lower().replace(b"\\", b"/"))
        entry = found.entry
        if number == 0 and entry is not None and entry.name == b"mimetype" and entry.method == STORED:
            media_type = source.at(entry.start, min(200, entry.packed_bytes or 0))
            if media_type.startswith(_OPEN_DOCUMENT):
                raise IsSample("sample", "It is an OpenDocument file, which is a sample itself.")
    for name, title in _SAMPLES:
        if name in names:
            article = "an" if title[0] in "AEO" or title.startswith("electronic") else "a"
            raise IsSample("sample", f"It is {article} {title}, which is a sample itself.")


def _take(source: Source, found: Found, keyring: _Keyring, outlet: Outlet) -> None:
    entry = found.entry
    if entry is None:
        outlet.refuse(found.name, *damaged("it is not where the archive's directory says"))
        return
    if stat.S_ISLNK(entry.mode):
        target = (
            None if entry.is_encrypted or entry.method != STORED else source.at(entry.start, min(4096, entry.size_bytes or 0))
        )
        refuse_special(outlet, entry.name, "link", target)
        return
    if found.other is not None and not _decodes(source, entry, keyring, outlet.max_member_bytes):
        entry = found.other
    if entry.is_folder:
        outlet.skip()
        return
    if (problem := _why_not(entry)) is not None:
        outlet.refuse(entry.name, *problem)
        return
    outlet.member(entry.name, keyring.content(entry), entry.size_bytes)


def _why_not(entry: Entry) -> tuple[str, str] | None:
    """Code and sentence for a member that can't be read whatever its content is."""
    if entry.flags & STRONGLY_ENCRYPTED:
        return PASSWORD_CODE, "It is encrypted by PKWARE's Strong Encryption, which can't be opened here."
    if entry.method not in _DECODERS:
        named = _OTHER_METHODS.get(entry.method, "an unknown method")
        return "method", f"It is compressed by {named} (method {entry.method}), which is not unpacked here."
    if entry.packed_bytes is None and (entry.method == STORED or entry.is_encrypted):
        return damaged("nothing says how long it is")
    return None


def _decodes(source: Source, entry: Entry, keyring: _Keyring, max_bytes: int) -> bool:
    if _why_not(entry) is not None:
        return False
    total = 0
    try:
        for chunk in keyring.content(entry):
            total += len(chunk)
            if total > max_bytes:
                return False
    except Exception as exc:  # noqa: BLE001 - libraries raise anything on hostile bytes, and this only asks whether they do
        return as_problem(exc)[0] == PASSWORD_CODE
    return True


class _Keyring:
    """Passwords to try, the last one that was right first."""

    def __init__(self, source: Source, passwords: list[str]) -> None:
        self._source = source
        self._passwords = [encoded for password in passwords for encoded in _encodings(password)]
        self._locked_in_a_row = 0

    def content(self, entry: Entry) -> Iterator[bytes]:
        """What a member holds. Raises `SpoiltMember`, and what decoders raise."""
        if not entry.is_encrypted:
            yield from _unpacked(self._source.chunks(entry.start, entry.packed_bytes), entry)
            return
        if self._locked_in_a_row >= _TRIED_IN_VAIN:
            raise SpoiltMember(PASSWORD_CODE, "It is encrypted, and no password was tried, as none opened those before it.")
        candidates = list(self._candidates(entry))
        for password, key in candidates:
            if len(candidates) == 1 or _is_whole(_unpacked(key(), entry)):
                try:
                    yield from _unpacked(key(), entry)
                except Exception as exc:
                    if entry.aes is not None:
                        raise
                    # A wrong password seems right at first once in 256 times, and then gives any bytes.
                    raise SpoiltMember(*wrong_password(len(self._passwords))) from exc
                self._passwords.remove(password)
                self._passwords.insert(0, password)
                self._locked_in_a_row = 0
                return
        self._locked_in_a_row += 1
        raise SpoiltMember(*wrong_password(len(self._passwords)))

    def _candidates(self, entry: Entry) -> Iterator[tuple[bytes, Callable[[], Iterator[bytes]]]]:
        for password in self._passwords:
            if entry.aes is not None:
                key = AesKey(self._source, entry, password)
                if key.fits:
                    yield password, key.decrypted
            else:
                keys = old_keys(password)
                if old_check(self._source, entry, keys):
                    yield password, partial(old_decrypted, self._source, entry, keys)


def _is_whole(content: Iterator[bytes]) -> bool:
    try:
        for _chunk in content:
            pass
    except Exception:  # noqa: BLE001 - a wrong password gives any bytes, and libraries raise anything on them
        return False
    return True


def _encodings(password: str) -> Iterator[bytes]:
    as_given = password.encode("utf-8", "surrogateescape")
    yield as_given
    for encoding in ("cp437", "cp1252"):
        try:
            encoded = password.encode(encoding)
        except UnicodeEncodeError:
            continue
        if encoded != as_given:
            yield encoded


def _unpacked(packed: Iterable[bytes], entry: Entry) -> Iterator[bytes]:
    """Raises `SpoiltMember` when length or CRC are not as they should be."""
    decoder = _DECODERS[entry.method]()
    crc = got = 0
    for chunk in codecs.decoded(packed, decoder):
        if entry.method == LZMA and entry.size_bytes is not None:
            chunk = chunk[: entry.size_bytes - got]
        crc = zlib.crc32(chunk, crc)
        got += len(chunk)
        yield chunk
    if entry.method not in (STORED, LZMA) and not decoder.eof:
        raise SpoiltMember(*damaged("it ends too early"))
    if entry.size_bytes is not None and got != entry.size_bytes:
        raise SpoiltMember(*damaged(f"it has {got} bytes where {entry.size_bytes} were stated"))
    has_crc = entry.crc is not None and (entry.aes is None or entry.aes.version == 1)
    if has_crc and crc != entry.crc:
        raise SpoiltMember(*damaged("its CRC does not fit"))
