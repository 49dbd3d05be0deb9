"""Which files of a watched folder were taken already, and are left where they are: kept in a small file, for the next start too.

It holds the marks (16 bytes) of states of files, in no order. It is a memory, not a record: without it files are read once more and
found to be known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from malbox_tui.config.whole_file import replace_file

log = logging.getLogger(__name__)

MARK_BYTES = 16
MOST_MARKS = 4_000_000
"""Beyond so many, all are forgotten."""


class TakenFiles:
    """The memory of one watched folder, in a file of `folder` that is named for it."""

    def __init__(self, folder: Path, watched: str) -> None:
        self._path = folder / f"{blake2b(watched.encode(), digest_size=12).hexdigest()}.taken"
        self._marks = self._read()

    def __contains__(self, mark: bytes) -> bool:
        return mark in self._marks

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, marks: Iterable[bytes]) -> None:
        """Remember these too, before this returns. Raises OSError when they are for this run only."""
        before = len(self._marks)
        self._marks.update(marks)
        if len(self._marks) > MOST_MARKS:
            self._marks.clear()
        if len(self._marks) != before:
            self._write()

    def keep_only(self, present: set[bytes]) -> None:
        """Forget all others. Raises OSError when they come back with the next start."""
        before = len(self._marks)
        self._marks &= present
        if len(self._marks) != before:
            self._write()

    def _read(self) -> set[bytes]:
        try:
            with self._path.open("rb") as file:
                kept = file.read(MARK_BYTES * MOST_MARKS)
        except FileNotFoundError:
            return set()
        except OSError as error:
            log.warning("files that were taken before are looked at once more: %s can't be read: %s", self._path, error)
            return set()
        return {kept[start : start + MARK_BYTES] for start in range(0, len(kept) - MARK_BYTES + 1, MARK_BYTES)}

    def _write(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._path, b"".join(self._marks))
