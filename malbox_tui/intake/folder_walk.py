"""Files and folders, named by paths, as offers: every regular file below them, and every other thing with why it is none.

1. Links are never followed, so there are no loops, and nothing outside the given paths is reached.
2. Everything is opened relative to its open folder: a path may be longer than the system's PATH_MAX, and swapping a folder for a
   link while the walk goes on leads nowhere else.
3. Of a chain of nested folders only the `_OPEN_FOLDERS` deepest stay open; the others are opened again from below by `..`, and
   only believed if they are the same folders as before.
4. Memory grows with one folder's names for each level of nesting, not with the number of files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.intake import paste
from malbox_tui.intake.confined.unpacking.signatures import HEAD_BYTES
from malbox_tui.intake.first_look import first_kind
from malbox_tui.intake.found import Found
from malbox_tui.intake.regular_file import RegularFile, link_reason, look_at, refused
from malbox_tui.intake.surveying import Surveying
from malbox_tui.intake.threaded import ThreadedSteps
from malbox_tui.model.errors import RefusedContent
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import LEFT_OUT, Offer, Refusal
from malbox_tui.model.survey import Survey
from malbox_tui.ports import Dropped

_OPEN_FOLDERS = 32
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class _Folder:
    """One folder that the walk is in: its descriptor (None: closed for now), identity, path as offered, and names still to visit."""

    descriptor: int | None
    identity: tuple[int, int]
    path: bytes
    names: Iterator[bytes]


class FolderIntake:
    """The `Intake` for paths on this host."""

    def __init__(self, max_sample_bytes: int, own_root: bytes | None = None, *, recursive: bool = True) -> None:
        """`own_root` is the engine's own data folder: it is refused when it is met, so that an engine never feeds on itself. Without
        `recursive`, folders in a given folder are left out, and counted."""
        self._max_sample_bytes = max_sample_bytes
        self._own_root = own_root
        self._recursive = recursive

    def dropped(self, text: str) -> Dropped:
        """As `Intake.dropped`."""
        return paste.dropped_paths(text)

    def completions(self, text: str, limit: int) -> list[str]:
        """As `Intake.completions`."""
        return paste.completions(text, limit)

    def files(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As `Intake.files`."""
        return self.offers(paths)

    async def offers(self, paths: Sequence[bytes]) -> AsyncIterator[Offer]:
        """As `Intake.offers`. An offer's open file is closed when its content was read, closed or forgotten."""
        walk = ThreadedSteps(self._offered(tuple(paths)))
        try:
            async for offer in walk:
                yield offer
        finally:
            walk.close()

    async def survey(self, paths: Sequence[bytes], *, counts_only: bool = False) -> AsyncIterator[Survey]:
        """As `Intake.survey`."""
        walk = _Walk(self._max_sample_bytes, self._own_root, self._recursive, opens=not counts_only)
        steps = ThreadedSteps(Surveying(walk.found(tuple(paths)), first_kind).steps())
        try:
            async for survey in steps:
                yield survey
        finally:
            steps.close()

    def _offered(self, paths: Sequence[bytes]) -> Generator[Offer, None, None]:
        for found in _Walk(self._max_sample_bytes, self._own_root, self._recursive).found(paths):
            content = None if found.content is None else ThreadedSteps(found.content)
            yield Offer(found.name, content, found.refusal, found.head)


class _Walk:
    """With `opens` false it looks at names alone: what could be a sample has no content then."""

    def __init__(self, max_sample_bytes: int, own_root: bytes | None, recursive: bool, *, opens: bool = True) -> None:
        self._recursive = recursive
        self._left_out = 0
        self._max_sample_bytes = max_sample_bytes
        self._opens = opens
        self._own = _identity_of(own_root) if own_root is not None else None
        self._stack: list[_Folder] = []

    def found(self, paths: Sequence[bytes]) -> Generator[Found, None, None]:
        """Everything, in order."""
        try:
            for path in paths:
                given = path.rstrip(b"/") or path[:1]
                yield from self._visit(given, None, given)
                while self._stack:
                    yield from self._next_of_deepest()
                if self._left_out:
                    yield Found(SampleName(_base_name(given), given), refusal=_not_gone_into(self._left_out))
                    self._left_out = 0
        finally:
            for folder in self._stack:
                _close(folder)

    def _next_of_deepest(self) -> Iterator[Found]:
        folder = self._stack[-1]
        name = next(folder.names, None)
        if name is None:
            yield from self._leave()
        else:
            yield from self._visit(name, folder.descriptor, folder.path.rstrip(b"/") + b"/" + name)

    def _visit(self, name: bytes, folder: int | None, path: bytes) -> Iterator[Found]:
        label = SampleName(name=_base_name(path), origin=path)
        try:
            if stat.S_ISDIR(look_at(name, folder).st_mode):
                if folder is None or self._recursive:
                    self._enter(name, folder, path)
                else:
                    self._left_out += 1
                return
            content, head = self._opened(name, folder) if self._opens else (None, b"")
        except RefusedContent as exc:
            yield Found(label, refusal=Refusal(exc.code, exc.reason))
        except ValueError:
            yield Found(label, refusal=Refusal("missing", "No file can have such a name."))
        else:
            yield Found(label, content, head)

    def _opened(self, name: bytes, folder: int | None) -> tuple[RegularFile, bytes]:
        content = RegularFile.open(name, folder, self._max_sample_bytes)
        try:
            return content, content.head(HEAD_BYTES)
        except BaseException:
            content.close()
            raise

    def _enter(self, name: bytes, parent: int | None, path: bytes) -> None:
        descriptor = _open_folder(name, parent)
        try:
            found = os.fstat(descriptor)
            identity = (found.st_dev, found.st_ino)
            if identity == self._own:
                raise RefusedContent("own_data", "It is the data folder of malbox-tui itself.")
            names = sorted(os.fsencode(entry) for entry in os.listdir(descriptor))  # noqa: PTH208 - pathlib knows no descriptors
        except OSError as exc:
            os.close(descriptor)
            raise _unreadable_folder(exc) from exc
        except BaseException:
            os.close(descriptor)
            raise
        self._stack.append(_Folder(descriptor, identity, path, iter(names)))
        if len(self._stack) > _OPEN_FOLDERS:
            _close(self._stack[-1 - _OPEN_FOLDERS])

    def _leave(self) -> Iterator[Found]:
        done = self._stack.pop()
        try:
            if self._stack and self._stack[-1].descriptor is None:
                assert done.descriptor is not None
                self._stack[-1].descriptor = _reopened(self._stack[-1], done.descriptor)
        except RefusedContent as exc:
            while self._stack and self._stack[-1].descriptor is None:
                lost = self._stack.pop()
                yield Found(SampleName(_base_name(lost.path), lost.path), refusal=Refusal(exc.code, exc.reason))
        finally:
            _close(done)


def _open_folder(name: bytes, parent: int | None) -> int:
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=parent)
    except OSError as exc:
        found = look_at(name, parent)
        if stat.S_ISLNK(found.st_mode):
            raise RefusedContent("link", link_reason(name, parent)) from exc
        raise _unreadable_folder(exc) from exc


def _reopened(folder: _Folder, child: int) -> int:
    try:
        descriptor = os.open(b"..", _FOLDER_FLAGS, dir_fd=child)
    except OSError as exc:
        raise _unreadable_folder(exc) from exc
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino) == folder.identity:
        return descriptor
    os.close(descriptor)
    raise RefusedContent("unreadable_folder", "It was moved while it was read; the rest of it was left out.")


def _not_gone_into(folders: int) -> Refusal:
    these = "1 folder in it was" if folders == 1 else f"{folders} folders in it were"
    return Refusal(LEFT_OUT, f"{these} left out: only what lies in it itself was asked for.", folders)


def _unreadable_folder(exc: OSError) -> RefusedContent:
    meaning = refused(exc)
    if meaning.code != "unreadable":
        return meaning
    return RefusedContent("unreadable_folder", f"The folder can't be read: {exc.strerror or exc}.")


def _identity_of(path: bytes) -> tuple[int, int] | None:
    with suppress(OSError):
        found = Path(os.fsdecode(path)).stat()
        return found.st_dev, found.st_ino
    return None


def _base_name(path: bytes) -> bytes:
    return path.rsplit(b"/", 1)[-1] or path


def _close(folder: _Folder) -> None:
    if folder.descriptor is not None:
        os.close(folder.descriptor)
        folder.descriptor = None
