"""Unpacks archives in confined processes, one for each outermost archive: the `Unpacker`.

1. This process parses nothing of an archive. It hands the confined one a file to read, and takes names and contents from the wire.
2. What the confined process says is bounded again here: one that sends more than it may is killed, as is one that takes too long.
3. Whatever goes wrong with an archive ends its account, and nothing else: the archives beside it go on in a new process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.confine.work import Walls
from malbox_tui.intake.archive_names import inner_name
from malbox_tui.intake.leftovers import OwnFolder
from malbox_tui.intake.spool import Spool, taken_out
from malbox_tui.intake.unpacker_words import Done, Whole, refusal, shown
from malbox_tui.intake.unpacking_process import Budget, OrderedMember, UnpackingProcess
from malbox_tui.model.archive import COMMON_PASSWORDS, DEFAULT_LIMITS, ArchiveAccount, ArchiveEnd, UnpackLimits
from malbox_tui.model.submission import Refusal
from malbox_tui.ports import ArchiveMember

PASSWORD_CODE = "password"


class ConfinedUnpacker:
    """Unpacks behind `walls`; files on their way lie in `folder`, which must be there, in folders of their own.

    `passwords` are tried after those of a call and the common ones.
    """

    def __init__(self, walls: Walls, folder: Path, limits: UnpackLimits = DEFAULT_LIMITS, passwords: Sequence[str] = ()) -> None:
        self._walls = walls
        self._folder = folder
        self._limits = limits
        self._passwords = tuple(passwords)

    async def unpack(
        self, content: AsyncIterator[bytes], name: bytes = b"", passwords: Sequence[str] = ()
    ) -> AsyncGenerator[ArchiveMember | ArchiveAccount, None]:
        """As `Unpacker.unpack`."""
        tried = tuple(dict.fromkeys((*passwords, *COMMON_PASSWORDS, *self._passwords)))
        try:
            folder = await asyncio.to_thread(OwnFolder, self._folder)
        except OSError as exc:
            for found in _no_room((), exc):
                yield found
            return
        process = UnpackingProcess(self._walls, folder.path, tried)
        try:
            async with aclosing(_Unpacking(process, self._limits).items(content, name)) as items:
                async for item in items:
                    yield item
        finally:
            try:
                await process.kill()
            finally:
                await asyncio.to_thread(folder.remove)


@dataclass(frozen=True, slots=True)
class _Archive:
    """One that waits to be unpacked, as a file in the inbox."""

    path: tuple[bytes, ...]
    name: bytes
    file: Path
    size_bytes: int


class _Unpacking:
    """Of one outermost archive and all in it, the archives in one after those beside it that came later."""

    def __init__(self, process: UnpackingProcess, limits: UnpackLimits) -> None:
        self._process = process
        self._limits = limits
        self._waiting: list[_Archive] = []

    async def items(self, content: AsyncIterator[bytes], name: bytes) -> AsyncGenerator[ArchiveMember | ArchiveAccount, None]:
        spool = Spool(self._process.new_file())
        try:
            async for chunk in content:
                await spool.write(chunk)
            outermost = _Archive((), name, await spool.settle(), spool.size_bytes)
        except OSError as exc:
            for found in _no_room((), exc):
                yield found
            return
        finally:
            spool.drop()
        budget = Budget(self._limits, self._limits.total_for(outermost.size_bytes))
        last: ArchiveAccount | None = None
        self._waiting.append(outermost)
        while self._waiting:
            archive = self._waiting.pop()
            async with aclosing(self._archive(archive, budget)) as items:
                async for item in items:
                    if archive is outermost and isinstance(item, ArchiveAccount):
                        last = item
                    else:
                        yield item
        if last is not None:
            yield last

    async def _archive(self, archive: _Archive, budget: Budget) -> AsyncGenerator[ArchiveMember | ArchiveAccount, None]:
        """Its members, itself if it is taken as one file, and its account."""
        tally = _Tally()
        ending: Done | Whole | Refusal
        if len(archive.path) >= self._limits.depth:
            ending = Refusal(
                "depth", f"It is an archive in {self._limits.depth} others, and not opened; it is taken as one file."
            )
        elif (spent := budget.spent()) is not None:
            ending = spent
        else:
            ending = Refusal("unpacker", "")
            async with aclosing(self._process.members(archive.file, budget)) as members:
                async for found in members:
                    if isinstance(found, OrderedMember):
                        member = await self._member(archive, found)
                        tally.count(member)
                        if member is not None:
                            yield member
                    else:
                        ending = found
        account = _account(archive, ending, tally)
        if account.end in (ArchiveEnd.SAMPLE, ArchiveEnd.WHOLE, ArchiveEnd.CUT):
            try:
                yield ArchiveMember(archive.path, archive.size_bytes, taken_out(archive.file))
            except OSError as exc:
                yield _no_room(archive.path, exc)[0]
        else:
            archive.file.unlink(missing_ok=True)
        yield account

    async def _member(self, archive: _Archive, found: OrderedMember) -> ArchiveMember | None:
        """A member as it is handed out; None when it is an archive that waits now."""
        name = found.name or inner_name(archive.name)
        path = (*archive.path, name)
        if found.refusal is not None:
            return ArchiveMember(path, refusal=found.refusal)
        size_bytes = found.spool.size_bytes
        if not found.could_be_archive:
            return ArchiveMember(path, size_bytes, found.spool.hand_on())
        try:
            self._waiting.append(_Archive(path, name, await found.spool.settle(), size_bytes))
        except OSError as exc:
            return _no_room(path, exc)[0]
        return None


@dataclass(slots=True)
class _Tally:
    """How many members of an archive were taken and refused, and why."""

    taken: int = 0
    refused: int = 0
    locked: int = 0

    def count(self, member: ArchiveMember | None) -> None:
        if member is None or member.refusal is None:
            self.taken += 1
            return
        self.refused += 1
        self.locked += member.refusal.code == PASSWORD_CODE


def _account(archive: _Archive, ending: Done | Whole | Refusal, tally: _Tally) -> ArchiveAccount:
    end, why = _end(ending, tally)
    title = "" if isinstance(ending, Refusal) else shown(ending.title)
    return ArchiveAccount(path=archive.path, end=end, title=title, refusal=why, taken=tally.taken, refused=tally.refused)


def _end(ending: Done | Whole | Refusal, tally: _Tally) -> tuple[ArchiveEnd, Refusal | None]:
    members = tally.taken + tally.refused
    if isinstance(ending, Refusal):
        return (ArchiveEnd.CUT if members else ArchiveEnd.WHOLE), ending
    if isinstance(ending, Whole):
        is_sample = ending.code == "sample" or not ending.reason
        why = refusal(ending.code, ending.reason) if ending.reason else None
        return (ArchiveEnd.SAMPLE if is_sample else ArchiveEnd.WHOLE), why
    if ending.code == PASSWORD_CODE and not tally.taken:
        return ArchiveEnd.LOCKED, refusal(ending.code, ending.reason)
    if ending.code:
        return (ArchiveEnd.CUT if members else ArchiveEnd.WHOLE), refusal(ending.code, ending.reason)
    if not members:
        return ArchiveEnd.EMPTY, Refusal("empty", "There is nothing in it.")
    if tally.locked and not tally.taken:
        return ArchiveEnd.LOCKED, Refusal(PASSWORD_CODE, "It is encrypted, and none of the passwords that were tried opens it.")
    return ArchiveEnd.OPENED, None


def _no_room(path: tuple[bytes, ...], error: OSError) -> tuple[ArchiveMember, ArchiveAccount]:
    why = Refusal("no_room", f"It can't be unpacked: {error.strerror or error}.")
    return ArchiveMember(path, refusal=why), ArchiveAccount(path=path, end=ArchiveEnd.WHOLE, refusal=why)
