"""The log goes to a file: the terminal belongs to results and progress."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

from malbox_tui.cli.text import sentence
from malbox_tui.config.folders import DataFolders
from malbox_tui.config.loading import shown_path
from malbox_tui.model.errors import StoreError

log = logging.getLogger(__name__)

_MAX_BYTES = 5 * 1024 * 1024
_KEPT_FILES = 3


class PrivateFile(RotatingFileHandler):
    """For the owner alone: it holds names. That it can't be written is nothing to disturb the terminal for.

    One that was moved or removed, by logrotate or by another process that logs to the same, is begun anew.
    """

    @classmethod
    def at(cls, path: Path) -> PrivateFile:
        """The one at `path`, of which a few former ones are kept. Raises `StoreError` when it can't be written."""
        try:
            return cls(path, maxBytes=_MAX_BYTES, backupCount=_KEPT_FILES, encoding="utf-8", errors="backslashreplace")
        except OSError as exc:
            problem = f"The log file {shown_path(path)} can't be written: {exc.strerror or exc}."
            raise StoreError(f"{problem} Make it writable, or choose another folder with --data-dir.") from exc

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        if self.stream is not None and not self._leads_to(self.stream):
            with suppress(OSError):  # what it could not write before is lost with it
                self.stream.close()
            self.stream = None  # logging's own sign for one that is opened when it is needed
        super().emit(record)

    def _leads_to(self, stream: TextIO) -> bool:
        """Whether who opens the path gets what is written to `stream`. True too when it can't be told."""
        try:
            return os.path.samestat(Path(self.baseFilename).stat(), os.fstat(stream.fileno()))
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """The record is lost."""

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(mode=0o700, exist_ok=True)
        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=_for_the_owner)


class _SafeFormatter(logging.Formatter):
    """Foreign text can't act on the terminal of whoever reads the log."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(sentence(line) for line in super().format(record).splitlines())


def log_to_file(folders: DataFolders, level: str, name: str = "malbox-tui.log") -> None:
    """Send everything logged from `level` on (a name such as "info") to the file `name` in the log folder, which has to exist.

    Raises `StoreError` when the file can't be written.
    """
    handler = PrivateFile.at(folders.logs / name)
    handler.setFormatter(_SafeFormatter("%(asctime)s %(levelname)s %(name)s [%(process)d] %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)


def log_failed_threads() -> None:
    """From now on what ends a thread is logged; Python would write it to stderr, which the console has taken."""
    threading.excepthook = _log_failed_thread


def _log_failed_thread(failure: threading.ExceptHookArgs) -> None:
    error = failure.exc_value
    log.error("the thread %s ended with an error", failure.thread.name if failure.thread else "(unknown)", exc_info=error)


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
