"""7z archives, by py7zr; those with methods that it doesn't know by libarchive.

py7zr refuses whole archives for names such as `..`, and writes members under names that it has changed. So only its reading of headers
and its decoders are used here, folder by folder: a folder of a 7z archive is a run of members that were compressed together.
"""

from __future__ import annotations

import stat
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

import py7zr
from py7zr.exceptions import PasswordRequired, UnsupportedCompressionMethodError

from . import by_libarchive
from .codecs import STEP_BYTES
from .outlet import Outlet, refuse_special
from .problems import BrokenArchive, LimitReached, SpoiltMember, UnpackingProblem, as_problem, damaged, wrong_password
from .signatures import Form
from .source import Source

_AES = b"\x06\xf1\x07\x01"
"""The method 7zAES (7-Zip's Methods.txt)."""

_SPECIAL = {
    stat.S_IFLNK: "link",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}


def unpack(source: Source, passwords: list[str], outlet: Outlet) -> None:
    """Raises `BrokenArchive`, `LimitReached`."""
    with ExitStack() as stack:
        file = stack.enter_context(source.opened())
        try:
            archive = _opened(file, passwords)
        except UnpackingProblem:
            raise
        except Exception as exc:  # noqa: BLE001 - py7zr raises anything on hostile headers; another reader may know better
            _otherwise(source, outlet, BrokenArchive(*as_problem(exc)))
            return
        stack.enter_context(archive)
        if any(not _is_known(folder) for folder in _folders(archive)):
            _otherwise(source, outlet, BrokenArchive("method", "It is compressed by a method that is not unpacked here."))
            return
        _unlock(file, archive, passwords)
        for member in getattr(archive, "files", ()):
            if member.emptystream:
                _take(member, iter(()), outlet)
        for folder, start in zip(_folders(archive), _starts(archive), strict=False):
            _take_folder(file, folder, start, len(passwords), outlet)


def _otherwise(source: Source, outlet: Outlet, problem: BrokenArchive) -> None:
    try:
        by_libarchive.unpack(source, Form.SEVEN_ZIP, outlet)
    except BrokenArchive as exc:
        raise (problem if exc.code == "no_unpacker" else exc) from exc


def _opened(file: BinaryIO, passwords: list[str]) -> Any:
    """With the password of its header, if that is encrypted."""
    try:
        return py7zr.SevenZipFile(file)
    except PasswordRequired:
        pass
    for password in passwords:
        file.seek(0)
        try:
            return py7zr.SevenZipFile(file, password=password)
        except Exception:  # noqa: BLE001 - a wrong password gives any bytes for a header, and py7zr raises anything on them
            continue
    raise BrokenArchive(*wrong_password(len(passwords)))


def _folders(archive: Any) -> list[Any]:
    streams = getattr(getattr(archive, "header", None), "main_streams", None)
    return [] if streams is None else list(streams.unpackinfo.folders)


def _starts(archive: Any) -> list[int]:
    """Where the packed content of each folder begins."""
    packed = archive.header.main_streams.packinfo if _folders(archive) else None
    if packed is None:
        return []
    return [archive.afterheader + position for position in packed.packpositions]


def _is_known(folder: Any) -> bool:
    """Whether py7zr can decode it, as far as that shows before it is tried."""
    if any(coder["numinstreams"] != 1 or coder["numoutstreams"] != 1 for coder in folder.coders):
        return False
    if _is_encrypted(folder):
        return True
    try:
        folder.get_decompressor(0, reset=True)
    except UnsupportedCompressionMethodError:
        return False
    except Exception:  # noqa: BLE001 - what else is wrong with it is said when its members are read
        return True
    return True


def _is_encrypted(folder: Any) -> bool:
    return any(coder["method"] == _AES for coder in folder.coders)


def _unlock(file: BinaryIO, archive: Any, passwords: list[str]) -> None:
    """Give each encrypted folder its password; one that none opens is left alone."""
    given = list(passwords)
    for folder, start in zip(_folders(archive), _starts(archive), strict=False):
        if not _is_encrypted(folder) or not folder.files:
            continue
        folder.password = None
        for password in given:
            folder.password = password
            if _opens(file, folder, start):
                given.remove(password)
                given.insert(0, password)
                break
            folder.password = None


def _opens(file: BinaryIO, folder: Any, start: int) -> bool:
    """Whether the folder's password is right, told by the CRC of its first member."""
    try:
        for _chunk in _Content(file, folder, start, next(iter(folder.files)), is_first=True):
            pass
    except Exception:  # noqa: BLE001 - a wrong password gives any bytes, and decoders raise anything on them
        return False
    return True


def _take_folder(file: BinaryIO, folder: Any, start: int, tried: int, outlet: Outlet) -> None:
    locked = _is_encrypted(folder) and folder.password is None
    is_first, is_broken = True, False
    for member in folder.files or ():
        if locked:
            outlet.refuse(_name(member), *wrong_password(tried))
        elif is_broken:
            outlet.refuse(_name(member), *damaged("it was compressed together with a damaged member before it"))
        else:
            content = _Content(file, folder, start, member, is_first)
            chunks = iter(content)
            _take(member, chunks, outlet)
            is_broken = not _is_passed(content, chunks, outlet)
            is_first = False


def _take(member: Any, chunks: Iterator[bytes], outlet: Outlet) -> None:
    name = _name(member)
    kind = stat.S_IFMT(member.st_fmt or 0)
    if member.is_directory:
        outlet.skip()
    elif kind in _SPECIAL or member.is_symlink:
        refuse_special(outlet, name, _SPECIAL.get(kind, "link"))
    else:
        outlet.member(name, chunks, member.uncompressed)


class _Content:
    """The next member of its folder; the first one sets the decoders up."""

    def __init__(self, file: BinaryIO, folder: Any, start: int, member: Any, is_first: bool) -> None:
        self._file = file
        self._folder = folder
        self._start = start
        self._member = member
        self._is_first = is_first
        self.left: int = member.uncompressed
        """How much of it has not been read."""

    def __iter__(self) -> Iterator[bytes]:
        if self._is_first:
            self._file.seek(self._start)
        decompressor = self._folder.get_decompressor(self._member.compressed, reset=self._is_first)
        crc = 0
        while self.left > 0:
            before = self._file.tell()
            chunk = bytes(decompressor.decompress(self._file, min(self.left, STEP_BYTES)))
            if not chunk and self._file.tell() == before:
                raise EOFError("it ends too early")
            self.left -= len(chunk)
            crc = zlib.crc32(chunk, crc)
            yield chunk
        if self._member.crc32 is not None and crc != self._member.crc32:
            raise SpoiltMember(*damaged("its CRC does not fit"))


def _is_passed(content: _Content, chunks: Iterator[bytes], outlet: Outlet) -> bool:
    """Read what nobody wanted of a member, to get to the next one; whether that was possible. Raises `LimitReached`."""
    try:
        for chunk in chunks:
            outlet.spend(len(chunk))
    except LimitReached:
        raise
    except Exception:  # noqa: BLE001 - decoders raise anything on hostile bytes; that they did is what counts
        return False
    return content.left == 0


def _name(member: Any) -> bytes:
    return str(member.filename).encode("utf-8", "surrogatepass")
