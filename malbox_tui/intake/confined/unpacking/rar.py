"""Rar archives: by libarchive; those that are encrypted, or compressed as one in the old way, by rarfile with unar or unrar.

libarchive opens no encryption, and hands out what is encrypted as if it were the content. So rarfile reads the headers first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rarfile

from . import by_libarchive
from .codecs import STEP_BYTES
from .outlet import Outlet, refuse_special
from .problems import PASSWORD_CODE, BrokenArchive, wrong_password
from .signatures import Form
from .source import Source

_NO_TOOL = (
    "It is encrypted. Encrypted rar archives are opened by unar or unrar, of which none is installed here (make system-deps)."
)


def unpack(source: Source, passwords: list[str], outlet: Outlet) -> None:
    """Raises `BrokenArchive`, `LimitReached`."""
    try:
        archive = rarfile.RarFile(str(source.path))
    except Exception:  # noqa: BLE001 - rarfile raises anything on hostile headers; libarchive says what is wrong with them
        by_libarchive.unpack(source, Form.RAR, outlet)
        return
    with archive:
        if archive.needs_password():
            _take_all(_unlocked(archive, source, passwords), outlet)
        elif _is_old_and_solid(archive) and _has_tool():
            _take_all(archive, outlet)
        else:
            by_libarchive.unpack(source, Form.RAR, outlet)


def _is_old_and_solid(archive: Any) -> bool:
    return bool(archive.is_solid()) and any(isinstance(member, rarfile.Rar3Info) for member in archive.infolist())


def _has_tool() -> bool:
    try:
        rarfile.tool_setup(unrar=True, unar=True, bsdtar=False, sevenzip=False, sevenzip2=False)
    except rarfile.RarCannotExec:
        return False
    return True


def _unlocked(archive: Any, source: Source, passwords: list[str]) -> Any:
    """The archive with the right password, as far as one of them is; raises `BrokenArchive` when not even names can be had."""
    if not _has_tool():
        raise BrokenArchive(PASSWORD_CODE, _NO_TOOL)
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
