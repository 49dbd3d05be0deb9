"""Moving and removing files that were taken: exactly those, over nothing else, and through no link.

1. A name may lead to another file by now. What was moved is looked at where it came to, and put back if it isn't the file.
2. Nothing is ever replaced: the kernel refuses it (renameat2(2), RENAME_NOREPLACE), or a hard link does.
3. A file that is to be removed is moved to a name of ours first, in its folder, so that (1) holds for it too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from malbox_tui.intake.watching.looking import FOLDER_FLAGS, Signature, parent_of

DONE, REFUSED = b"done", b"refused"
"""Folders in the watched one."""
_RENAME_NOREPLACE = 1
_NAME_BYTES = 255
_NO_FLAGS_HERE = (errno.ENOSYS, errno.EINVAL)


class NotTheFile(OSError):
    """The name no longer leads to what was taken; nothing was changed."""


def move_away(root: int, path: bytes, signature: Signature, into: bytes) -> None:
    """Move the file at `path`, relative to the open folder `root`, to the same place in the folder `into` of it.

    Where there is such a name already, it gets another one. Raises `NotTheFile`, OSError; it is where it was then.
    """
    with parent_of(path, root) as (source, name), _made(into + b"/" + path, root) as target:
        _move(source, name, target, _names(name), signature)


def remove(root: int, path: bytes, signature: Signature) -> None:
    """Remove the file at `path`. Raises `NotTheFile`, OSError; it is where it was then."""
    with parent_of(path, root) as (folder, name):
        ours = b".malbox-tui-" + secrets.token_hex(8).encode()
        _move(folder, name, folder, iter((ours,)), signature)
        try:
            os.unlink(ours, dir_fd=folder)
        except OSError:
            _rename(folder, ours, folder, name)
            raise


def _move(source: int, name: bytes, target: int, names: Iterator[bytes], signature: Signature) -> None:
    _check(source, name, signature)
    for other in names:
        try:
            _rename(source, name, target, other)
        except FileExistsError:
            continue
        try:
            _check(target, other, signature)
        except NotTheFile:
            with suppress(FileExistsError):  # Then somebody has put a third one there; this one stays under its new name.
                _rename(target, other, source, name)
            raise
        return
    raise FileExistsError(errno.EEXIST, "every name that was tried is there already")


def _check(folder: int, name: bytes, signature: Signature) -> None:
    if Signature.of(os.stat(name, dir_fd=folder, follow_symlinks=False)) != signature:
        raise NotTheFile(errno.ESTALE, "it is another file by now")


def _names(name: bytes) -> Iterator[bytes]:
    """The name itself, then others that begin like it."""
    yield name
    for _ in range(8):
        more = b"." + secrets.token_hex(4).encode()
        yield name[: _NAME_BYTES - len(more)] + more


@contextmanager
def _made(path: bytes, root: int) -> Iterator[int]:
    """The open folder that `path` is to lie in, with those above it made. A link in their place is an error."""
    descriptor = os.dup(root)
    try:
        for folder in path.split(b"/")[:-1]:
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700, dir_fd=descriptor)
            inner = os.open(folder, FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _rename(source: int, name: bytes, target: int, other: bytes) -> None:
    """Raises OSError, `FileExistsError` when there is something of the other name."""
    renameat2 = _libc_renameat2()
    if renameat2 is not None:
        if renameat2(source, name, target, other, _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in _NO_FLAGS_HERE:
            raise OSError(number, os.strerror(number))
    os.link(name, other, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    os.unlink(name, dir_fd=source)


@cache
def _libc_renameat2() -> Any:
    """None where the C library has none."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        function.restype = ctypes.c_int
    return function
