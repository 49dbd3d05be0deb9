"""That the pool was paused, in one small file beside the store: whoever stopped the intake finds it stopped after the next start."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import msgspec

from malbox_tui.config.whole_file import remove_file, replace_file
from malbox_tui.store.failures import store_error

log = logging.getLogger(__name__)

_MOST_BYTES = 64 << 10


class _Kept(msgspec.Struct, frozen=True):
    reason: str


class PauseFile:
    """Implements `PauseBook`. Of a process that has the data folder to itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at_work = asyncio.Lock()

    async def kept(self) -> str | None:
        """As `PauseBook.kept`."""
        async with self._at_work:
            return await asyncio.to_thread(read_pause, self._path)

    async def keep(self, reason: str | None) -> None:
        """As `PauseBook.keep`. Cancelled: it is kept or not, but never in part."""
        async with self._at_work:
            await asyncio.to_thread(self._write, reason)

    def _write(self, reason: str | None) -> None:
        try:
            if reason is None:
                remove_file(self._path)
            else:
                replace_file(self._path, msgspec.json.encode(_Kept(reason)))
        except OSError as error:
            raise store_error(error, str(self._path)) from error


def read_pause(path: Path) -> str | None:
    """Why the pool is paused, by the file at `path`; None when it isn't. One that can't be read pauses: somebody wanted that."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=_Kept).reason
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        log.warning("%s can't be read, so the pool is paused: %s", path, error)
        return f"paused, by whom is not known ({path.name} can't be read)"
