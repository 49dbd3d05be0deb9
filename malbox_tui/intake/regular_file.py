"""Opening and reading what a stranger left in a folder: only a regular file, never a link, and only if it holds still.

A name is looked at before it is opened (opening a device can act on it), opened without following a link and without waiting for a
FIFO's other end, and looked at again through the descriptor; what is read is what was checked.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from malbox_tui.model.errors import RefusedContent
from malbox_tui.model.sample import escape

CHUNK_BYTES = 1 << 20
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_SPECIAL: tuple[tuple[Callable[[int], bool], str, str], ...] = (
    (stat.S_ISDIR, "folder", "It is a folder."),
    (stat.S_ISFIFO, "fifo", "It is a named pipe (FIFO), not a file."),
    (stat.S_ISSOCK, "socket", "It is a socket, not a file."),
    (stat.S_ISCHR, "device", "It is a device, not a file."),
    (stat.S_ISBLK, "device", "It is a device, not a file."),
)

_OPEN_ERRORS = {
    errno.ENOENT: ("missing", "There is no such file."),
    errno.ENOTDIR: ("missing", "There is no such file: a part of the path is not a folder."),
    errno.ENAMETOOLONG: ("missing", "There is no such file: the name is too long for this file system."),
    errno.ELOOP: ("link", "It became a link while it was looked at; links are not followed."),
    errno.ENXIO: ("socket", "It is a socket, not a file."),
}


def refused(exc: OSError) -> RefusedContent:
    """What an error of the operating system means for one file."""
    code, reason = _OPEN_ERRORS.get(exc.errno or 0, ("unreadable", f"It can't be read: {exc.strerror or exc}."))
    return RefusedContent(code, reason)


def look_at(name: bytes, folder: int | None) -> os.stat_result:
    """What `name` is, in the open folder or from the current one; a link is itself. Raises `RefusedContent`."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError as exc:
        raise refused(exc) from exc


class RegularFile:
    """The content of one regular file, chunk by chunk; it holds the open file until it is closed.

    Reading raises `RefusedContent`: `changed_while_read` when the file no longer is what it was when it was opened, else as opening.
    """

    def __init__(self, descriptor: int, found: os.stat_result) -> None:
        self._descriptor: int | None = descriptor
        self._found = found
        self._read_bytes = 0

    @classmethod
    def open(cls, name: bytes, folder: int | None, max_bytes: int) -> RegularFile:
        """Open `name`. Raises `RefusedContent` when it isn't a regular file of 1 to `max_bytes` bytes that can be read."""
        _check_kind(look_at(name, folder), name, folder)
        try:
            descriptor = os.open(name, _OPEN_FLAGS, dir_fd=folder)
        except OSError as exc:
            raise refused(exc) from exc
        try:
            found = os.fstat(descriptor)
            _check_kind(found, name, folder)
            _check_size(found.st_size, max_bytes)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, found)

    @property
    def found(self) -> os.stat_result:
        """What it was when it was opened."""
        return self._found

    def head(self, count: int) -> bytes:
        """At most its first `count` bytes, which are read again by iterating."""
        assert self._descriptor is not None
        try:
            return os.pread(self._descriptor, count, 0)
        except OSError as exc:
            raise refused(exc) from exc

    def __next__(self) -> bytes:
        if self._descriptor is None:
            raise StopIteration
        try:
            chunk = os.read(self._descriptor, CHUNK_BYTES)
            now = os.fstat(self._descriptor)
        except OSError as exc:
            raise refused(exc) from exc
        self._read_bytes += len(chunk)
        expected = self._found.st_size
        if self._read_bytes > expected or (not chunk and self._read_bytes < expected) or now.st_size != expected:
            raise RefusedContent(
                "changed_while_read", f"It changed while it was read: it had {expected} bytes, now {now.st_size}."
            )
        if now.st_mtime_ns != self._found.st_mtime_ns:
            raise RefusedContent("changed_while_read", "It was written to while it was read.")
        if not chunk:
            raise StopIteration
        return chunk

    def close(self) -> None:
        """Let go of the file. A second call does nothing."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def _check_kind(found: os.stat_result, name: bytes, folder: int | None) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISLNK(found.st_mode):
        raise RefusedContent("link", link_reason(name, folder))
    for is_kind, code, reason in _SPECIAL:
        if is_kind(found.st_mode):
            raise RefusedContent(code, reason)
    raise RefusedContent("special", "It is not a regular file.")


def link_reason(name: bytes, folder: int | None) -> str:
    """The sentence that refuses a link, with its target."""
    try:
        return f"It is a link to {escape(os.readlink(name, dir_fd=folder))}; links are not followed."
    except OSError:
        return "It is a link; links are not followed."


def _check_size(size_bytes: int, max_bytes: int) -> None:
    if size_bytes == 0:
        raise RefusedContent("empty", "It is empty.")
    if size_bytes > max_bytes:
        raise RefusedContent("too_large", f"It has {size_bytes} bytes; intake.max_sample_bytes allows {max_bytes}.")
