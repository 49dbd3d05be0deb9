"""What lies in a watched folder at this moment: the truth, whatever was hinted at before.

1. Names are bytes, opened relative to their open folder; links are never followed.
2. What still comes in by its name waits: dot files, partial downloads, and a file beside which its partial download lies.
3. Nothing that is found is opened but folders.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

MOST_DEPTH = 64
"""Folders that lie deeper are told, and not looked into."""
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PARTIAL_SUFFIXES = (b".part", b".partial", b".crdownload", b".opdownload", b".download", b".filepart", b".aria2")
"""What browsers and download programs call what isn't whole yet, in lower case."""


class OpenFolder:
    """A folder's descriptor, closed when nobody has it any more, so that no thread that is left behind finds another one's number."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


class Signature(NamedTuple):
    """What tells one state of one file from another."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Signature:
        """That of a file that was looked at."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def mark(self, path: bytes) -> bytes:
        """16 bytes that stand for this state of the file at `path`. The device is left out: its number changes with each boot."""
        return blake2b(b"%d %d %d %s" % (self.inode, self.size_bytes, self.modified_ns, path), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Found:
    """One thing in the folder that is none itself; `path` is relative to the watched one, `waits` that its partial download lies beside
    it."""

    path: bytes
    signature: Signature
    mode: int
    waits: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.mode)

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is, by whatever name."""
        return self.signature.device, self.signature.inode

    @property
    def name(self) -> bytes:
        """The last part of the path."""
        return self.path.rsplit(b"/", 1)[-1]


@dataclass(slots=True)
class Tally:
    """What else there is to say of one look: how many things wait because of their names, and (path, why) of folders left out."""

    waiting: int = 0
    left_out: list[tuple[bytes, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scope:
    """How far a look goes. `passed_over` are names of folders right below the watched one, `own` is the identity of a folder that is
    never looked into, wherever it is met."""

    recursive: bool
    passed_over: Collection[bytes] = ()
    own: tuple[int, int] | None = None


def things_in(root: int, scope: Scope, tally: Tally) -> Iterator[Found]:
    """Everything that could be taken below the open folder `root`. Raises OSError when that one can't be read."""
    stack = [_Folder(b"", os.dup(root))]
    try:
        stack[0].read(tally)
        while stack:
            folder = stack[-1]
            if not folder.entries:
                os.close(stack.pop().descriptor)
                continue
            entry = folder.entries.pop()
            name = os.fsencode(entry.name)
            path = folder.prefix + name
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # It has just gone.
            if not stat.S_ISDIR(found.st_mode):
                yield Found(path, Signature.of(found), found.st_mode, name in folder.unfinished)
            elif scope.recursive and not (len(stack) == 1 and name in scope.passed_over):
                _enter(stack, name, scope, tally)
    finally:
        for folder in stack:
            os.close(folder.descriptor)


@contextmanager
def parent_of(path: bytes, root: int) -> Iterator[tuple[int, bytes]]:
    """The open folder that `path`, relative to `root`, lies in, and its name there. No link is followed. Raises OSError."""
    *folders, name = path.split(b"/")
    descriptor = os.dup(root)
    try:
        for folder in folders:
            inner = os.open(folder, FOLDER_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, name
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Folder:
    prefix: bytes
    descriptor: int
    entries: list[os.DirEntry[str]] = field(default_factory=list)
    unfinished: set[bytes] = field(default_factory=set)
    """Names beside which partial downloads lie."""

    def read(self, tally: Tally) -> None:
        with os.scandir(self.descriptor) as listing:
            entries = list(listing)
        self.unfinished = {_without_suffix(name) for name in (os.fsencode(entry.name) for entry in entries) if _is_partial(name)}
        self.entries = [entry for entry in entries if not _waits(os.fsencode(entry.name))]
        self.entries.sort(key=lambda entry: os.fsencode(entry.name), reverse=True)
        tally.waiting += len(entries) - len(self.entries)


def _enter(stack: list[_Folder], name: bytes, scope: Scope, tally: Tally) -> None:
    above = stack[-1]
    path = above.prefix + name
    if len(stack) > MOST_DEPTH:
        tally.left_out.append((path, f"It lies more than {MOST_DEPTH} folders deep."))
        return
    try:
        descriptor = os.open(name, FOLDER_FLAGS, dir_fd=above.descriptor)
    except OSError as exc:
        tally.left_out.append((path, f"The folder can't be read: {exc.strerror or exc}."))
        return
    folder = _Folder(path + b"/", descriptor)
    try:
        opened = os.fstat(descriptor)
        if (opened.st_dev, opened.st_ino) == scope.own:
            raise OSError(0, "it is the data folder of malbox-tui itself")
        folder.read(tally)
    except OSError as exc:
        os.close(descriptor)
        tally.left_out.append((path, f"The folder can't be read: {exc.strerror or exc}."))
        return
    stack.append(folder)


def _waits(name: bytes) -> bool:
    return name.startswith(b".") or _is_partial(name)


def _is_partial(name: bytes) -> bool:
    return name.lower().endswith(PARTIAL_SUFFIXES)


def _without_suffix(name: bytes) -> bytes:
    return name.rpartition(b".")[0]
