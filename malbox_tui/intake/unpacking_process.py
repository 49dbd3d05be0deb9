"""The confined process that unpacks, started at need: one order after the other, its members as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.confine.endings import BrokenWire, ConfinedProcessError, last_words
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.confine.work import Limits, Walls, Work
from malbox_tui.intake.spool import Spool
from malbox_tui.intake.unpacker_words import WORDS, Content, Done, End, Member, Refused, Whole, Word, refusal, shown
from malbox_tui.model.archive import UnpackLimits
from malbox_tui.model.submission import Refusal

CODE = Path(__file__).resolve().parent / "confined"
ENTRY = "start.py"

PROCESS_LIMITS = Limits(memory_mb=1024, address_space_mb=1024, scratch_mb=64, open_files=64, processes=16)


class Budget:
    """What may still come out of an outermost archive and all in it, of which `total_bytes` is bounded by its own size too."""

    def __init__(self, limits: UnpackLimits, total_bytes: int) -> None:
        self._limits = limits
        self._total_bytes = total_bytes
        self.entries = limits.entries
        self.bytes_left = total_bytes
        self.seconds = limits.time_s
        self.member_bytes = limits.member_bytes

    def entry(self) -> None:
        """One more. Raises `BrokenWire` when there is none left."""
        self.entries -= 1
        if self.entries < 0:
            raise BrokenWire("the process sent more entries than it may")

    def content(self, count: int, of_member: int) -> None:
        """So many bytes more; `of_member` of the member they belong to. Raises `BrokenWire` when that is too much."""
        self.bytes_left -= count
        if self.bytes_left < 0 or of_member > self.member_bytes:
            raise BrokenWire("the process sent more content than it may")

    @contextmanager
    def timed(self) -> Iterator[None]:
        """What it takes is taken from the time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            yield
        finally:
            self.seconds -= loop.time() - began

    def spent(self) -> Refusal | None:
        """Why nothing more may be unpacked; None: something may."""
        if self.seconds <= 0:
            return self.refusal("time")
        if self.entries <= 0:
            return self.refusal("members")
        return self.refusal("total_size") if self.bytes_left <= 0 else None

    def refusal(self, code: str) -> Refusal:
        """Why a limit ends the unpacking, in words for the whole archive."""
        limits = self._limits
        return Refusal(
            code,
            {
                "time": f"Unpacking took longer than {limits.time_s:g} s, which is the limit.",
                "members": f"More than {limits.entries} entries are in it and the archives in it, which is the limit.",
                "total_size": f"More than {self._total_bytes} bytes come out of it and the archives in it, which is the limit.",
            }[code],
        )

    @property
    def codes(self) -> tuple[str, ...]:
        """Of limits that end everything."""
        return ("time", "members", "total_size")


@dataclass(frozen=True, slots=True)
class OrderedMember:
    """One entry: its content, or why it has none."""

    name: bytes
    spool: Spool
    could_be_archive: bool = False
    refusal: Refusal | None = None


class UnpackingProcess:
    """With an inbox and files of its own in `folder`."""

    def __init__(self, walls: Walls, folder: Path, passwords: Sequence[str]) -> None:
        self._walls = walls
        self._folder = folder
        self._inbox = folder / "inbox"
        self._inbox.mkdir()
        self._inbox.chmod(0o755)
        self._payload = json.dumps(list(passwords)).encode("utf-8", "surrogatepass")
        self._process: ConfinedProcess | None = None
        self._files = 0

    def new_file(self) -> Path:
        """Where a file may be made that the process can read."""
        self._files += 1
        return self._inbox / str(self._files)

    async def members(self, file: Path, budget: Budget) -> AsyncGenerator[OrderedMember | Done | Whole | Refusal, None]:
        """What is in the archive `file` of the inbox, and at last how that ended: a `Refusal` when a limit, or the process's own end,
        ended it. Closed before that: the process is ended."""
        conversation = _Conversation(self, budget)
        is_over = False
        try:
            await self._order(file, budget)
            async for found in conversation.items():
                yield found
            is_over = True
        except (ConfinedProcessError, TimeoutError) as exc:
            why = budget.refusal("time") if isinstance(exc, TimeoutError) else Refusal("unpacker", self._in_words(exc))
            if conversation.unfinished is not None:
                yield OrderedMember(conversation.unfinished, Spool(self.new_file()), refusal=why)
            yield why
        finally:
            conversation.close()
            if not is_over:
                await self.kill()

    async def receive(self, budget: Budget) -> tuple[Word, bytes]:
        """The next word. The time that it takes is taken from the budget. Raises `ConfinedProcessError`, TimeoutError."""
        assert self._process is not None
        with budget.timed():
            async with asyncio.timeout(max(0.0, budget.seconds)):
                return await self._process.receive(WORDS)

    async def kill(self) -> None:
        """End the process; the next order starts another one."""
        process, self._process = self._process, None
        if process is not None:
            await process.kill()

    async def _order(self, file: Path, budget: Budget) -> None:
        if self._process is not None and not self._process.alive:
            await self.kill()
        if self._process is None:
            work = Work(
                name="unpacker",
                code=CODE,
                entry=ENTRY,
                inbox=self._inbox,
                scratch=self._folder / "scratch",
                limits=PROCESS_LIMITS,
            )
            with budget.timed():
                self._process = await ConfinedProcess.start(work, self._walls)
        order = {
            "kind": "unpack",
            "path": f"{self._process.places.inbox}/{file.name}",
            "entries": budget.entries,
            "total_bytes": budget.bytes_left,
            "member_bytes": budget.member_bytes,
        }
        self._process.send(order, self._payload)

    def _in_words(self, error: Exception) -> str:
        output = b"" if self._process is None else self._process.take_output()
        return shown(f"Unpacking it failed: {error}{last_words(output)}.")


class _Conversation:
    """About one order. `unfinished` is the name of the entry that has begun and not ended."""

    def __init__(self, process: UnpackingProcess, budget: Budget) -> None:
        self._process = process
        self._budget = budget
        self._spool: Spool | None = None
        self._problem: Refusal | None = None
        self.unfinished: bytes | None = None
        self._entries = 0

    async def items(self) -> AsyncIterator[OrderedMember | Done | Whole | Refusal]:
        """Raises `ConfinedProcessError`, TimeoutError."""
        while True:
            word, payload = await self._process.receive(self._budget)
            match word:
                case Member():
                    self._begin(payload)
                case Content():
                    await self._take(payload)
                case End(could_be_archive=could_be_archive):
                    name, spool = self._ended()
                    yield OrderedMember(name, spool, could_be_archive, self._problem)
                case Refused(code=code, reason=reason):
                    name, spool = self._ended()
                    spool.drop()
                    is_limit = code in self._budget.codes
                    yield OrderedMember(name, spool, refusal=self._budget.refusal(code) if is_limit else refusal(code, reason))
                case Done(code=code):
                    self._must(self.unfinished is None)
                    yield self._budget.refusal(code) if code in self._budget.codes else word
                    return
                case Whole():
                    self._must(not self._entries)
                    yield word
                    return

    def close(self) -> None:
        """Forget the entry that has begun."""
        if self._spool is not None:
            self._spool.drop()

    def _begin(self, name: bytes) -> None:
        self._must(self.unfinished is None)
        self._budget.entry()
        self._entries += 1
        self.unfinished = name
        self._problem = None
        self._spool = Spool(self._process.new_file())

    async def _take(self, content: bytes) -> None:
        self._must(self._spool is not None and bool(content))
        assert self._spool is not None
        self._budget.content(len(content), self._spool.size_bytes + len(content))
        if self._problem is not None:
            return
        try:
            await self._spool.write(content)
        except OSError as exc:
            self._problem = Refusal("no_room", f"There is no room to unpack it: {exc.strerror or exc}.")

    def _ended(self) -> tuple[bytes, Spool]:
        self._must(self._spool is not None)
        assert self._spool is not None
        assert self.unfinished is not None
        name, spool = self.unfinished, self._spool
        self.unfinished = self._spool = None
        return name, spool

    def _must(self, follows_the_rules: bool) -> None:
        if not follows_the_rules:
            raise BrokenWire("the process broke the order of its words")
