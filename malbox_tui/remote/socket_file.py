"""The socket's file: made with the right mode, in place at once, and taken over only from a server that is dead.

The name of a Unix socket has 108 bytes (unix(7)), which a data folder's path may exceed. So the folder is opened, and the socket is
named through the descriptor.
"""

from __future__ import annotations

import errno
import grp
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.config.loading import shown_path
from malbox_tui.model.errors import SocketUnavailable

PRIVATE, SHARED = 0o600, 0o660
_SEARCH = 0o010
"""A folder's mode that lets its group reach what is in it and see nothing else."""

_REMEDIES = {
    errno.ENOSPC: "Make room on the disk.",
    errno.EDQUOT: "Make room: the quota is used up.",
    errno.EROFS: "The folder is on a read-only disk; choose another with --data-dir.",
    errno.EACCES: "Make the folder writable, or choose another with --data-dir.",
    errno.EPERM: "Make the folder writable, or choose another with --data-dir.",
}


def group_id(name: str) -> int:
    """The id of a group of this host. Raises `SocketUnavailable`."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError as exc:
        raise SocketUnavailable(f"There is no group {name!r} on this host: make it, or change `group` under [serve].") from exc


@dataclass(frozen=True, slots=True)
class Place:
    """`listener` listens at `path`, as long as nobody takes the file `inode` away from there."""

    path: Path
    listener: socket.socket
    inode: int

    @property
    def is_kept(self) -> bool:
        """Whether who opens `path` gets to `listener`. True too when it can't be told."""
        try:
            return self.path.stat(follow_symlinks=False).st_ino == self.inode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True


@contextmanager
def listening(path: Path, gid: int | None = None) -> Iterator[Place]:
    """A socket that listens at `path` while entered: for this user alone, or for the group `gid` too.

    A socket that a dead server left is replaced, and what it left beside it goes. For a group its folder is opened too, so far that it
    can be passed through. Raises `SocketUnavailable`, also when a living server has the path, or it is no socket's.
    """
    try:
        with _short_name(path) as name:
            _refuse_foreign(path, name)
            _refuse_living(path, name)
            listener = _placed(path, name, gid)
            place = Place(path, listener, name.stat(follow_symlinks=False).st_ino)
            _clear_away(name)
    except OSError as exc:
        remedy = _REMEDIES.get(exc.errno or 0, "")
        raise SocketUnavailable(f"The socket {shown_path(path)} can't be made: {exc.strerror or exc}. {remedy}".strip()) from exc
    try:
        yield place
    finally:
        listener.close()
        with suppress(OSError):
            if path.stat(follow_symlinks=False).st_ino == place.inode:
                path.unlink()


@contextmanager
def connected(path: Path, timeout_s: float | None = None) -> Iterator[socket.socket]:
    """A connection to who listens at `path`, however long that is. Raises OSError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        with _short_name(path) as name:
            connection.connect(str(name))
        yield connection


@contextmanager
def _short_name(path: Path) -> Iterator[Path]:
    """Another name of `path`, which is short; good while entered. Raises OSError."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{folder}", path.name)
    finally:
        os.close(folder)


def _refuse_foreign(path: Path, name: Path) -> None:
    """Nothing but a socket is ever replaced: whatever else has that name is somebody's."""
    try:
        if name.is_socket() or not os.path.lexists(name):
            return
    except OSError:  # whatever that is shows when the socket is made
        return
    raise SocketUnavailable(f"{shown_path(path)} is no socket, but has the name of one that is needed. Move it away.")


def _is_living(name: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(name))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except BlockingIOError:
            pass  # its backlog is full: it lives
    return True


def _clear_away(name: Path) -> None:
    """Remove what servers that were killed while they placed their sockets left beside `name`."""
    unplaced = re.compile(rf"{re.escape(name.name)}\.[0-9]+")
    with suppress(OSError):
        for left in name.parent.iterdir():
            if unplaced.fullmatch(left.name) and left.is_socket() and not _is_living(left):
                left.unlink(missing_ok=True)


def _refuse_living(path: Path, name: Path) -> None:
    if not _is_living(name):
        return
    problem = f"Another server answers at {shown_path(path)}. Stop it, or choose another folder with --data-dir."
    raise SocketUnavailable(problem)


def _placed(path: Path, name: Path, gid: int | None) -> socket.socket:
    """Bound under a name of its own, then moved over what is there: at no moment is it open to others, or away."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = name.with_name(f"{name.name}.{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)
        os.fchmod(listener.fileno(), PRIVATE)  # the mode that bind makes the file with
        listener.bind(str(fresh))
        if gid is not None:
            os.chown(fresh, -1, gid)
            fresh.chmod(SHARED)
            _let_through(path.parent, gid)
        listener.listen()
        listener.setblocking(False)
        fresh.rename(name)
    except BaseException:
        listener.close()
        with suppress(OSError):
            fresh.unlink()
        raise
    return listener


def _let_through(folder: Path, gid: int) -> None:
    mode = folder.stat().st_mode & 0o7777
    if not mode & 0o001:
        os.chown(folder, -1, gid)
        folder.chmod(mode | _SEARCH)
