"""Whether a store's files are still where they were opened: what is written to files that were taken away is gone with the process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.model.errors import StoreError
from malbox_tui.store.failures import read_only_error, store_error


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The file at `path` as it was when it was opened: its device, its number there, and whether it had a write-ahead log."""

    path: Path
    device: int
    number: int
    has_log: bool

    @classmethod
    def of(cls, path: Path) -> Whereabouts:
        """Those of the file that is there now. Raises OSError."""
        found = path.stat()
        return cls(path, found.st_dev, found.st_ino, _log_of(path).exists())

    def check(self) -> None:
        """Raises `StoreError` when the file, or the log that belongs to it, is not there any more, or its disk is read-only.

        A few microseconds; blocking.
        """
        try:
            found = self.path.stat()
            is_whole = not self.has_log or _log_of(self.path).exists()
            flags = os.statvfs(self.path).f_flag
        except FileNotFoundError:
            raise self._taken_away("was taken away") from None
        except OSError as exc:
            raise store_error(exc, str(self.path)) from exc
        if (found.st_dev, found.st_ino) != (self.device, self.number):
            raise self._taken_away("was replaced by another")
        if not is_whole:
            raise self._taken_away("has lost its -wal file")
        if flags & os.ST_RDONLY:
            raise read_only_error(str(self.path))

    def _taken_away(self, what: str) -> StoreError:
        return StoreError(f"{self.path} {what} while it was in use. Put it back as it was, or end malbox-tui and start it again.")


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
