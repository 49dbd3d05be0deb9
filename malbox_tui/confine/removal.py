"""Removes folders that hostile code has filled: closed to their owner, deeper than a path may be long, with any bytes for names.

Nothing else may work in the folder any more: what it holds is looked at first and removed then. Links are removed, never followed.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Remove a folder, a file or a link; one that isn't there is no error. Raises OSError, with as much removed as could be. Blocking.

    Folders inside are moved up to the top before they are emptied: so neither open files nor the length of paths grow with depth.
    """
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            folder.unlink()
            return
        folder.chmod(0o700)
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _empty(top)
    finally:
        os.close(top)
    folder.rmdir()


def _empty(top: int) -> None:
    moved = 0
    waiting = _emptied_of_files(top)
    while waiting:
        name = waiting.pop()
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
        try:
            for deeper in _emptied_of_files(inner):
                moved, target = _moved_up(deeper, inner, top, moved)
                waiting.append(target)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)


def _emptied_of_files(folder: int) -> list[bytes]:
    """Remove what is no folder; the names of the folders, each opened to its owner."""
    folders = []
    for name in map(os.fsencode, os.listdir(folder)):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.chmod(name, 0o700, dir_fd=folder)
            folders.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return folders


def _moved_up(name: bytes, folder: int, top: int, moved: int) -> tuple[int, bytes]:
    """The number of the move, and the name that the folder has at the top now. Names that something else has there are passed over."""
    while True:
        moved += 1
        target = b"malbox-%d" % moved
        try:
            os.stat(target, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(name, target, src_dir_fd=folder, dst_dir_fd=top)
            return moved, target
