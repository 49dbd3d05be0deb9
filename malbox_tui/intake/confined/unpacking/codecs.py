"""Decompression in small steps: whatever the input says, one step gives at most about `STEP_BYTES`."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import inflate64
from backports import zstd

from .problems import SpoiltMember, damaged

STEP_BYTES = 256 * 1024
READ_BYTES = 64 * 1024

_INFLATE64_INPUT_BYTES = 256
"""inflate64 doesn't bound its output: 18 bits of its input may become 64 KiB, so it is fed little at a time."""

_MAX_LZMA_MEMORY_BYTES = 512 * 1024 * 1024
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 27}
"""Windows of 128 MiB, as the command zstd allows without being asked."""


class Decoder(Protocol):
    """What `bz2`, `lzma` and `zstd` have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Inflate:
    """zlib's decompressor as a `Decoder`; `wbits` as in `zlib.decompressobj`."""

    def __init__(self, wbits: int) -> None:
        self._inner = zlib.decompressobj(wbits)
        self._is_full = False

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        """Whether there is nothing left to work on."""
        return not self._inner.unconsumed_tail and not self._is_full

    @property
    def unused_data(self) -> bytes:
        """What came after the end."""
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most `max_length` bytes."""
        got = self._inner.decompress(self._inner.unconsumed_tail + data, max(0, max_length))
        # zlib may hold back a part of a match although it has read all of its input.
        self._is_full = len(got) == max_length
        return got


class Inflate64:
    """Deflate64 as a `Decoder`."""

    def __init__(self) -> None:
        self._inner = inflate64.Inflater()
        self._waiting = b""
        self.unused_data = b""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        """Whether there is nothing left to work on."""
        return not self._waiting

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Some of it; `max_length` is kept to about its order."""
        data = self._waiting + data
        got = b""
        place = 0
        while place < len(data) and not self._inner.eof and len(got) < STEP_BYTES:
            got += self._inner.inflate(data[place : place + _INFLATE64_INPUT_BYTES])
            place += _INFLATE64_INPUT_BYTES
        self._waiting = data[place:]
        return got


class Stored:
    """No compression."""

    eof = False
    needs_input = True
    unused_data = b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """The same."""
        return data


class LzmaInZip:
    """LZMA with the header that it has in zip archives (APPNOTE 5.8): version, length of the properties, properties."""

    def __init__(self) -> None:
        self._head = b""
        self._inner: lzma.LZMADecompressor | None = None

    @property
    def eof(self) -> bool:
        """Whether the stream has ended; one without an end marker never does."""
        return self._inner is not None and self._inner.eof

    @property
    def needs_input(self) -> bool:
        """Whether there is nothing left to work on."""
        return self._inner is None or self._inner.needs_input

    @property
    def unused_data(self) -> bytes:
        """What came after the end."""
        return b"" if self._inner is None else self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """At most `max_length` bytes."""
        if self._inner is None:
            self._head += data
            if len(self._head) < 9:
                return b""
            if self._head[2:4] != b"\x05\x00":
                raise SpoiltMember(*damaged("its LZMA properties are wrong"))
            self._inner, data = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[_lzma_filter(self._head[4:9])]), self._head[9:]
        return self._inner.decompress(data, max_length)


def _lzma_filter(properties: bytes) -> dict[str, int]:
    packed, dictionary_bytes = properties[0], int.from_bytes(properties[1:5], "little")
    if packed >= 9 * 5 * 5 or dictionary_bytes > _MAX_LZMA_MEMORY_BYTES:
        raise SpoiltMember(*damaged("its LZMA properties are wrong, or ask for too much memory"))
    literal_context, rest = packed % 9, packed // 9
    return {
        "id": lzma.FILTER_LZMA1,
        "lc": literal_context,
        "lp": rest % 5,
        "pb": rest // 5,
        "dict_size": max(dictionary_bytes, 4096),
    }


def bzip2_decoder() -> Decoder:
    """For bzip2."""
    return bz2.BZ2Decompressor()


def xz_decoder() -> Decoder:
    """For the xz format."""
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_LZMA_MEMORY_BYTES)


def zstd_decoder() -> Decoder:
    """For Zstandard."""
    return zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)


def decoded(chunks: Iterable[bytes], decoder: Decoder) -> Iterator[bytes]:
    """What one stream holds; what follows it is left. A stream that ends too early just ends: `decoder.eof` tells."""
    for chunk in chunks:
        yield from _steps(decoder, chunk)
        if decoder.eof:
            return


def decoded_streams(chunks: Iterable[bytes], make: Callable[[], Decoder]) -> Iterator[bytes]:
    """What all streams hold that follow one another; what is no stream behind the first is ignored. Raises EOFError when one is cut."""
    decoder, is_first, is_begun = make(), True, False
    for chunk in chunks:
        while chunk:
            is_begun = True
            try:
                yield from _steps(decoder, chunk)
            except (OSError, zlib.error, lzma.LZMAError, zstd.ZstdError):
                if is_first:
                    raise
                return
            chunk = b""
            if decoder.eof:
                chunk = decoder.unused_data.lstrip(b"\x00")
                decoder, is_first, is_begun = make(), False, False
    if is_first or is_begun:
        raise EOFError("its compressed data ends too early")


def _steps(decoder: Decoder, chunk: bytes) -> Iterator[bytes]:
    while not decoder.eof:
        got = decoder.decompress(chunk, STEP_BYTES)
        chunk = b""
        if got:
            yield got
        if decoder.needs_input:
            return
