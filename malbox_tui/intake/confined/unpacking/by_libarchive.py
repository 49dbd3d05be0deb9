"""What libarchive unpacks: cabinets, ISO 9660 images, rar, and 7z archives with methods that py7zr doesn't know.

The formats are given to it one at a time, so that nothing is taken for another format than its first bytes say.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from ctypes import create_string_buffer
from typing import Any

from .codecs import STEP_BYTES
from .outlet import Outlet, refuse_special
from .problems import PASSWORD_CODE, BrokenArchive, SpoiltMember, damaged
from .signatures import TITLES, Form
from .source import Source

_FORMATS = {Form.CAB: ("cab",), Form.ISO: ("iso9660",), Form.RAR: ("rar", "rar5"), Form.SEVEN_ZIP: ("7zip",)}
_SONAME = "libarchive.so.13"
_BLOCK_BYTES = 64 * 1024

_SPECIAL = {
    stat.S_IFLNK: "link",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}


def unpack(source: Source, form: Form, outlet: Outlet) -> None:
    """Raises `BrokenArchive`, with the code `no_unpacker` where libarchive isn't installed; `LimitReached`."""
    library = _library(form)
    try:
        with library.read.new_archive_read("empty") as archive:
            for name in _FORMATS[form]:
                library.ffi.get_read_format_function(name)(archive)
            library.ffi.read_open_filename_w(archive, str(source.path), _BLOCK_BYTES)
            _walk(library.ffi, archive, outlet)
    except library.exception.ArchiveError as exc:
        raise BrokenArchive(*_in_words(exc)) from exc


def _library(form: Form) -> Any:
    os.environ.setdefault("LIBARCHIVE", _SONAME)
    try:
        import libarchive
    except (ImportError, OSError, AttributeError, TypeError) as exc:
        reason = f"It is a {TITLES[form]}, which libarchive unpacks, and that is not installed here (make system-deps)."
        raise BrokenArchive("no_unpacker", f"{reason} It is taken as one file.") from exc
    return libarchive


def _walk(ffi: Any, archive: Any, outlet: Outlet) -> None:
    entry = ffi.entry_new()
    try:
        while ffi.read_next_header2(archive, entry) != ffi.ARCHIVE_EOF:
            _take(ffi, archive, entry, outlet)
    finally:
        ffi.entry_free(entry)


def _take(ffi: Any, archive: Any, entry: Any, outlet: Outlet) -> None:
    name = _name(ffi, entry)
    kind = stat.S_IFMT(ffi.entry_filetype(entry))
    if kind == stat.S_IFDIR:
        outlet.skip()
    elif (target := ffi.entry_hardlink(entry)) is not None:
        refuse_special(outlet, name, "link", target)
    elif kind in _SPECIAL:
        refuse_special(outlet, name, _SPECIAL[kind], ffi.entry_symlink(entry) if kind == stat.S_IFLNK else None)
    else:
        stated = ffi.entry_size(entry) if ffi.entry_size_is_set(entry) else None
        outlet.member(name, _content(ffi, archive), stated)


def _name(ffi: Any, entry: Any) -> bytes:
    name = ffi.entry_pathname(entry)
    if name is not None:
        return bytes(name)
    wide = ffi.entry_pathname_w(entry)
    return b"" if wide is None else str(wide).encode("utf-8", "surrogatepass")


def _content(ffi: Any, archive: Any) -> Iterator[bytes]:
    from libarchive.exception import ArchiveError

    buffer = create_string_buffer(STEP_BYTES)
    while True:
        try:
            count = ffi.read_data(archive, buffer, STEP_BYTES)
        except ArchiveError as exc:
            raise SpoiltMember(*_in_words(exc)) from exc
        if count <= 0:
            return
        yield buffer.raw[:count]


def _in_words(error: Any) -> tuple[str, str]:
    said = str(error.msg or "it can't be read")
    if "ncrypt" in said or "assphrase" in said or "assword" in said:
        return (
            PASSWORD_CODE,
            "It is encrypted in a way that can't be opened here, whatever the password. Unpack it elsewhere first.",
        )
    return damaged(said)
