"""Contents in CaRT, the format that the field keeps malware in: compressed and enciphered, so that nothing runs or scans it by mistake
(https://github.com/CybercentreCanada/cart). These functions block; they run in threads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import cart  # type: ignore[import-untyped]

from malbox_tui.model.errors import SampleChanged, SampleMissing
from malbox_tui.store.regular import open_regular

_READ_SIZE = 8 << 10
"""Bytes of a CaRT file that are unpacked at a time. zlib makes at most 1032 of one (https://zlib.net/zlib_tech.html), so no content,
however well it compresses, needs more than 8 MiB at once."""


class Readable(Protocol):
    """What a content is read from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; empty at the end only."""
        ...


class Abandoned(Exception):
    """The caller has gone; what was written is removed."""


def pack(content: Readable, target: Path) -> tuple[str, int]:
    """Write `content` into the new file `target` (mode 0600) and return its SHA-256 and its size in bytes.

    The same content gives the same bytes. Whatever is raised, also by `content`, no file is left.
    """
    digest, length = hashlib.sha256(), cart.cart.LengthCounter()
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            cart.pack_stream(content, file, auto_digests=(lambda: digest, lambda: length))
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return digest.hexdigest(), length.length


def unpack(source: Path, sha256: str, target: Path, abandoned: Callable[[], bool]) -> int:
    """Write the content of the CaRT file `source` into the new file `target` (mode 0444) and return its size in bytes.

    Raises `SampleMissing`, `SampleChanged`, `FileExistsError` and other OSErrors, and `Abandoned` soon after `abandoned()` turned true;
    `target` is not left then, unless it was there before.
    """
    try:
        packed = source.open("rb")
    except FileNotFoundError:
        raise SampleMissing(sha256) from None
    with packed:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o400)
        try:
            with os.fdopen(descriptor, "wb") as file:
                size_bytes = _unpack_checked(_SmallReads(packed), _Summed(file, abandoned), sha256)
                os.fchmod(file.fileno(), 0o444)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return size_bytes


def verify(source: Path, sha256: str) -> int:
    """Unpack `source` to nowhere; returns the size of its content. Raises `SampleMissing`, `SampleChanged`, OSError."""
    try:
        packed = open_regular(source)
    except FileNotFoundError:
        raise SampleMissing(sha256) from None
    with packed:
        return _unpack_checked(_SmallReads(packed), _Summed(_Nowhere(), lambda: False), sha256)


class _Nowhere:
    def write(self, chunk: bytes) -> None:
        """It is not wanted."""


def _unpack_checked(packed: _SmallReads, content: _Summed, sha256: str) -> int:
    try:
        cart.unpack_stream(packed, content)
    except (OSError, Abandoned):
        raise
    except Exception as exc:
        raise SampleChanged(sha256, str(exc) or type(exc).__name__) from exc
    if content.sum.hexdigest() != sha256:
        raise SampleChanged(sha256, "its SHA-256 is another one")
    return content.size_bytes


class _SmallReads:
    """Gives out at most `_READ_SIZE` bytes at a time, whatever is asked for."""

    def __init__(self, file: Readable) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return self._file.read(min(size, _READ_SIZE))


class _Summed:
    """Writes on, and keeps the sum and size of it."""

    def __init__(self, file: Any, abandoned: Callable[[], bool]) -> None:
        self._file = file
        self._abandoned = abandoned
        self.sum = hashlib.sha256()
        self.size_bytes = 0

    def write(self, chunk: bytes) -> None:
        if self._abandoned():
            raise Abandoned
        self._file.write(chunk)
        self.sum.update(chunk)
        self.size_bytes += len(chunk)
