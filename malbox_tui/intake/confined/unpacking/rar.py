"""Rar archives: by libarchive; those that are encrypted, or compressed as one in the old way, by rarfile with unar or unrar.

libarchive opens no encryption, and hands out what is encrypted as if it were the content. So rarfile reads the headers first.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from typing import Any

import rarfile

from . import by_libarchive
from .codecs import STEP_BYTES
from .outlet import Outlet, refuse_special
from .problems import PASSWORD_CODE, BrokenArchive, wrong_password
from .signatures import Form
from .source import Source

_VERSION_5 = b"Rar!\x1a\x07\x01\x00"

_NO_TOOL = (
    "It is encrypted. Encrypted rar archives are opened by unar or unrar, of which none is installed here (make system-deps)."
)
_NOT_BEHIND_WALLS = (
    "It is encrypted, and older than version 5: only unrar opens such archives behind walls, and it isn't installed here."
)


def unpack(source: Source, passwords: list[str], outlet: Outlet) -> None:
    """Raises `BrokenArchive`, `LimitReached`."""
    try:
        archive = rarfile.RarFile(str(source.path))
    except Exception:  # noqa: BLE001 - rarfile raises anything on hostile headers; libarchive says what is wrong with them
        by_libarchive.unpack(source, Form.RAR, outlet)
        return
    with archive:
        is_old = source.at(0, len(_VERSION_5)) != _VERSION_5
        if archive.needs_password():
            if (problem := _why_no_tool(is_old)) is not None:
                raise BrokenArchive(PASSWORD_CODE, problem)
            _take_all(_unlocked(archive, source, passwords), outlet)
        elif is_old and archive.is_solid() and _why_no_tool(is_old) is None:
            _take_all(archive, outlet)
        else:
            by_libarchive.unpack(source, Form.RAR, outlet)


def _why_no_tool(is_old: bool) -> str | None:
    """Why no program here can decompress; None: one can.

    For an archive before version 5 unar asks for the local time zone, for that for its user's settings, and ends where its user has no
    home, which is so behind walls.
    """
    try:
        tool = rarfile.tool_setup(unrar=True, unar=True, bsdtar=False, sevenzip=False, sevenzip2=False)
    except rarfile.RarCannotExec:
        return _NO_TOOL
    return _NOT_BEHIND_WALLS if is_old and tool.setup is rarfile.UNAR_CONFIG and not _has_home() else None


def _has_home() -> bool:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


def _unlocked(archive: Any, source: Source, passwords: list[str]) -> Any:
    """The archive with the right password, as far as one of them is; raises `BrokenArchive` when none is."""
    hides_names = not archive.infolist()
    for password in passwords:
        tried = _opened_by(source, password) if hides_names else archive
        if tried is None:
            continue
        tried.setpassword(password)
        if _opens(tried):
            return tried
    raise BrokenArchive(*wrong_password(len(passwords)))


def _opened_by(source: Source, password: str) -> Any:
    try:
        archive = rarfile.RarFile(str(source.path))
        archive.setpassword(password)
    except Exception:  # noqa: BLE001 - a wrong password gives any bytes for headers, and rarfile raises anything on them
        return None
    return archive if archive.infolist() else None


def _opens(archive: Any) -> bool:
    """Told by the sum of the smallest encrypted member."""
    members = [member for member in archive.infolist() if member.needs_password() and member.is_file() and member.file_size]
    if not members:
        return True
    try:
        for _chunk in _content(archive, min(members, key=lambda member: member.file_size)):
            pass
    except Exception:  # noqa: BLE001 - a wrong password gives any bytes, and rarfile raises anything on them
        return False
    return True


def _take_all(archive: Any, outlet: Outlet) -> None:
    for member in archive.infolist():
        name = _name(member)
        if member.is_dir():
            outlet.skip()
        elif member.is_symlink():
            refuse_special(outlet, name, "link")
        else:
            outlet.member(name, _content(archive, member), member.file_size)


def _content(archive: Any, member: Any) -> Iterator[bytes]:
    with archive.open(member) as reader:
        while chunk := reader.read(STEP_BYTES):
            yield chunk


def _name(member: Any) -> bytes:
    raw = member.orig_filename
    if isinstance(raw, bytes) and b"\0" not in raw:
        return raw
    return str(member.filename).encode("utf-8", "surrogateescape")
