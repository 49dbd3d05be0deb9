"""Files that a sample dropped or changed in the watched folders of its guest: found by comparing two looks, brought in within bounds.

Their names are hostile: results have safe names of their own, and an index says what each was called in the guest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from malbox_tui.engine.guest_bounds import GuestBounds
from malbox_tui.engine.guest_shelf import Shelf, plain_text
from malbox_tui.engine.guest_steps import Steps
from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import GuestFile, GuestSession, GuestView

MOST_LISTED = 4096
"""How many files of one folder are looked at."""
KEEP_S = 30.0
"""How long it may take to bring one in, or to keep the index."""

INDEX_RESULT = "files"

_PATH_CHARACTERS = 4096
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")


class IndexEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file in the index: its path in the guest, what happened to it, and under which name it is kept; `missing` says why not, or
    why not all of it."""

    path: str
    size_bytes: int
    modified: float
    change: str
    result: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """A file of a guest that is kept whole; `path` is safe to show."""

    path: str
    result: ResultRef


def watched_folders(machine: MachineSpec, session: GuestSession) -> Sequence[str]:
    """Where a machine's guest is looked at for files, each folder once."""
    return tuple(dict.fromkeys(machine.watch or (session.folder,)))


class GuestFiles:
    """The watched folders of one guest during one run. `own`: paths of the guest, files or folders, that aren't the sample's doing."""

    def __init__(self, bounds: GuestBounds, steps: Steps) -> None:
        self.own: set[str] = set()
        self.index: list[IndexEntry] = []
        self.collected: list[CollectedFile] = []
        self._bounds = bounds
        self._left_bytes, self._left_files = bounds.all_files_bytes, bounds.files
        self._steps = steps
        self._before: dict[str, GuestFile] | None = None

    def begin(self, seen: GuestView) -> None:
        """Take in what there is before the sample runs."""
        self._before = self._by_path(seen)

    async def collect(self, seen: GuestView, session: GuestSession, shelf: Shelf) -> None:
        """Bring in what is new or another than before. Raises `GuestUnreachable`; what was brought in until then is kept."""
        if self._before is None:
            return
        now = {path: file for path, file in self._by_path(seen).items() if not self._is_own(path)}
        try:
            for file, change in _changes(self._before, now):
                self.index.append(await self._brought_in(session, shelf, file, change))
        finally:
            if self.index:
                await self._steps.try_to("keep the index of its files", shelf.keep_json(INDEX_RESULT, self.index), KEEP_S)

    def _by_path(self, seen: GuestView) -> dict[str, GuestFile]:
        found: dict[str, GuestFile] = {}
        for folder, files in seen.files.items():
            if len(files) >= MOST_LISTED:
                self._steps.note(f"could not look at more than {MOST_LISTED} files of its folder {folder}")
            found |= {file.path: file for file in files}
        return found

    def _is_own(self, path: str) -> bool:
        return any(path == own or path.startswith((f"{own}/", f"{own}\\")) for own in self.own)

    async def _brought_in(self, session: GuestSession, shelf: Shelf, file: GuestFile, change: str) -> IndexEntry:
        """What counts is what came, and not what the guest says of it."""
        entry = IndexEntry(plain_text(file.path, _PATH_CHARACTERS), file.size_bytes, file.modified, change)
        if not self._left_files:
            return msgspec.structs.replace(entry, missing=f"more than {self._bounds.files} files")
        if file.size_bytes > self._left_bytes:
            return msgspec.structs.replace(entry, missing=f"more than {self._bounds.all_files_bytes} bytes in all")
        name = f"dropped-{len(self.index) + 1:04}{_extension(file.path)}"
        bound = min(self._bounds.file_bytes, self._left_bytes)
        pulling = shelf.pull(session, file.path, name, bound)
        pulled, problem = await self._steps.attempt(f"read its file {entry.path}", pulling, KEEP_S)
        if pulled is None:
            return msgspec.structs.replace(entry, missing=problem)
        reference, is_whole = pulled
        self._left_files -= 1
        self._left_bytes -= reference.size_bytes
        if not is_whole:
            return msgspec.structs.replace(entry, result=name, missing=f"only its first {reference.size_bytes} bytes are kept")
        self.collected.append(CollectedFile(entry.path, reference))
        return msgspec.structs.replace(entry, result=name)


def _changes(before: Mapping[str, GuestFile], now: Mapping[str, GuestFile]) -> Iterator[tuple[GuestFile, str]]:
    """New files first, then changed ones, each by path."""
    yield from ((file, "dropped") for path, file in sorted(now.items()) if path not in before)
    yield from ((file, "changed") for path, file in sorted(now.items()) if path in before and before[path] != file)


def _extension(path: str) -> str:
    found = _EXTENSION.search(path)
    return found[0].lower() if found else ""
