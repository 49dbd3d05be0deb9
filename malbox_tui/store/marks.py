"""The marks that were left in guests, in one small file: what the next engine looks for after its first reverts.

It is written whole and then put in place. It isn't synced: after a power cut nothing runs that a mark would have been left in, and a
file that is cut off then is as none.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import msgspec

from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestMark
from malbox_tui.store.failures import store_error

log = logging.getLogger(__name__)

MOST_KEPT = 1024
"""Beyond so many machines, the mark that was kept first goes."""
MOST_BYTES = 4 * 1024 * 1024


class _Kept(msgspec.Struct, frozen=True):
    """A mark, and what its machine was reverted to: where, which domain, which snapshot."""

    clean: tuple[str, str, str]
    file: str
    word: str


class MarksFile:
    """Implements `MarkBook`. Of a process that has the data folder to itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks: dict[str, _Kept] | None = None
        self._at_work = asyncio.Lock()

    async def kept(self, machine: MachineSpec) -> GuestMark | None:
        """As `MarkBook.kept`."""
        async with self._at_work:
            kept = (await self._all()).get(machine.name)
        return GuestMark(kept.file, kept.word) if kept is not None and kept.clean == _clean(machine) else None

    async def keep(self, machine: MachineSpec, mark: GuestMark) -> None:
        """As `MarkBook.keep`. Cancelled: it is kept or not."""
        async with self._at_work:
            marks = {name: kept for name, kept in (await self._all()).items() if name != machine.name}
            marks[machine.name] = _Kept(_clean(machine), mark.file, mark.word)
            while len(marks) > MOST_KEPT:
                del marks[next(iter(marks))]
            await asyncio.to_thread(self._write, marks)
            self._marks = marks

    async def _all(self) -> dict[str, _Kept]:
        if self._marks is None:
            self._marks = await asyncio.to_thread(self._read)
        return self._marks

    def _read(self) -> dict[str, _Kept]:
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(MOST_BYTES), type=dict[str, _Kept])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            log.warning("the first reverts of machines are not proven: %s can't be read: %s", self._path, error)
            return {}

    def _write(self, marks: dict[str, _Kept]) -> None:
        written = self._path.with_name(f"{self._path.name}.new")
        try:
            written.write_bytes(msgspec.json.encode(marks))
            written.replace(self._path)
        except OSError as error:
            raise store_error(error, str(self._path)) from error


def _clean(machine: MachineSpec) -> tuple[str, str, str]:
    return machine.uri, machine.domain_name, machine.snapshot
