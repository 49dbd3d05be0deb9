"""A conversation with the guest of one machine through its agent: files and commands.

1. It belongs to one stay of the guest: a word is kept in a file there, and what would act on another stay asks for it first. A
   machine that was reverted in between has lost the word, and the conversation is over. A guest that started anew, or whose agent
   did, is met again (`regain`).
2. The way to the guest may be lost and found again, as when libvirt's daemon starts anew: what may be done twice is done again then.
3. What programs print goes to files in the guest, never through the agent's own reply: one of more than 10 MiB would end its line.
4. What is cancelled may leave a file open in the guest, and what was asked for may happen all the same.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from malbox_tui.guest.agent import Agent
from malbox_tui.guest.pause import patience, pause
from malbox_tui.guest.program import NOBODY, QgaProgram, Surroundings
from malbox_tui.guest.system import Argv, GuestSystem, ProcessFacts
from malbox_tui.guest.transfer import TRIES, copy, once_more, read, read_into
from malbox_tui.model.errors import GuestLineLost, GuestRefused, GuestUnreachable, MachineError
from malbox_tui.model.machine import MachineSpec, PowerState
from malbox_tui.ports import GuestEnd, GuestFile, GuestMark, GuestProcess, GuestProgram, GuestView

NEEDED = (
    "guest-exec",
    "guest-exec-status",
    "guest-file-open",
    "guest-file-close",
    "guest-file-read",
    "guest-file-write",
    "guest-file-seek",
)
"""Commands that some distributions switch off."""

PROCESSES = 4096
COMMAND_S = 30.0
"""How long a command that only looks at the guest may take."""

_POLL_S = 0.25
_LEFT_BYTES = 16 * 1024 * 1024
_BOOT_BYTES = 256
_CLOCK_SLACK_S = 2.0
_MARK_S = 10.0

_TIMES = 64
"""How often the word stands in its file: each time that it is read takes one of them, and no request to go back to the first."""
_SMALL_BYTES = 64 * 1024

T = TypeVar("T")

PowerOf = Callable[[MachineSpec], Awaitable[PowerState]]


class ConversationOver(GuestUnreachable):
    """The guest is not the one any more that the conversation began with."""


class QgaSession:
    """Implements `GuestSession`; `begin` is called first."""

    def __init__(self, agent: Agent, machine: MachineSpec, system: GuestSystem, power: PowerOf, rejoin_s: float) -> None:
        self._agent = agent
        self._machine = machine
        self._system = system
        self._power = power
        self._rejoin_s = rejoin_s
        self._folder = machine.folder or system.folder
        self._base = system.join(self._folder, f".{secrets.token_hex(8)}")
        self._word = secrets.token_hex(16).encode()
        self._handle: int | None = None
        self._meeting = asyncio.Lock()
        """The word is read by one at a time: each moves the place in the file on."""
        self._boot = b""
        self._numbers = count(1)
        self._to_be_executable: list[str] = []
        self._closed = False

    @property
    def folder(self) -> str:
        """As `GuestSession.folder`."""
        return self._folder

    async def begin(self) -> None:
        """Get to know the guest. Raises `GuestUnreachable`, `GuestRefused`."""
        allowed = await self._agent.abilities()
        if missing := [command for command in NEEDED if command not in allowed]:
            raise self._agent.refused(
                f"its agent doesn't allow {', '.join(missing)}; take them off the list of blocked commands in the guest's "
                "/etc/sysconfig/qemu-ga or /etc/qemu/qemu-ga.conf, start the agent anew, and take the snapshot again"
            )
        self._boot = await self._boot_now()
        await once_more(self._leave_word)

    async def ping(self) -> None:
        """As `GuestSession.ping`."""
        self._check_open()
        await self._agent.ping()

    async def push(self, source: Path, name: str, *, executable: bool = False) -> str:
        """As `GuestSession.push`. It is made executable when the next program starts: one command less for the guest."""
        if name in ("", ".", "..") or any(character in name for character in "/\\\0"):
            raise ValueError(f"{name!r} is not a plain file name")
        await self._meet()
        path = await self._brought_in(source, name)
        if executable:
            self._to_be_executable.append(path)
        return path

    async def start(self, argv: Sequence[str]) -> GuestProgram:
        """As `GuestSession.start`. What is no program ends with 126, as in a shell."""
        await self._meet()
        base = f"{self._base}.{next(self._numbers)}"
        to_be_executable, self._to_be_executable = self._to_be_executable, []
        try:
            holder = await self._holder(self._system.run(base, self._folder, to_be_executable, argv))
        except BaseException:
            self._to_be_executable = to_be_executable + self._to_be_executable
            raise
        around = Surroundings(self._agent, self._system, self._read, self.facts, self.regain, lambda: self._boot)
        return await QgaProgram.begin(around, base, holder)

    async def pull(self, path: str, write: Callable[[bytes], None], max_bytes: int) -> bool:
        """As `GuestSession.pull`."""
        self._check_open()
        return await read_into(self._agent, await self._reachable(path), write, max_bytes)

    async def list(self, folder: str, limit: int) -> Sequence[GuestFile]:
        """As `GuestSession.list`."""
        await self._meet()
        left = await self._said(lambda told: self._system.list(told, folder, self._base, limit))
        return await _off_loop(partial(self._system.files, left, self._base, limit), left)

    async def processes(self) -> Sequence[GuestProcess]:
        """As `GuestSession.processes`, without those that run for this conversation alone."""
        await self._meet()
        return [facts.process for facts in await self.facts()]

    async def look(self, folders: Sequence[str], limit: int) -> GuestView:
        """As `GuestSession.look`."""
        await self._meet()
        system, base = self._system, self._base
        processes, files = await self._all_said(lambda told: system.look(told, folders, base, limit, PROCESSES), ".files")
        listed = await _off_loop(partial(system.listed, files, base, len(folders), limit), files)
        running = await _off_loop(partial(system.facts, processes, base, PROCESSES), processes)
        return GuestView(dict(zip(folders, listed, strict=True)), [facts.process for facts in running])

    async def set_clock(self, at: float) -> None:
        """As `GuestSession.set_clock`. Raises `GuestRefused` when the guest has another time afterwards."""
        self._check_open()
        try:
            await self._agent.set_time(at)
        except GuestRefused:
            if await self._has_time(at):
                return
            words = await self._said(lambda told: self._system.set_clock(told, at))
            if not await self._has_time(at):
                raise self._agent.refused(f"its clock can't be set: {words[:200].decode('utf-8', 'backslashreplace')}") from None

    async def mark(self) -> GuestMark:
        """As `GuestSession.mark`."""
        await self._meet()
        return await once_more(self._marked)

    async def traces(self, mark: GuestMark) -> Sequence[str]:
        """As `GuestSession.traces`."""
        await self._meet()
        left = await self._said(lambda told: self._system.look_for(told, mark.file))
        file, process = self._system.found(left, mark.word)
        words = ((file, f"the file {mark.file}"), (process, f"the process {mark.word}"))
        return [trace for found, trace in words if found]

    async def close(self) -> None:
        """As `GuestSession.close`. What was left in the guest for it stays there: the next revert takes it away."""
        self._closed = True

    async def facts(self) -> Sequence[ProcessFacts]:
        """All processes but those that run for this conversation alone."""
        left = await self._said(lambda told: self._system.processes(told, self._base, PROCESSES))
        return await _off_loop(partial(self._system.facts, left, self._base, PROCESSES), left)

    async def regain(self) -> GuestEnd | None:
        """After the guest didn't answer, or didn't know what it was asked about: None when it can be asked again, as long as its
        machine runs; else how it went down. A machine that is paused is waited for. Raises `GuestUnreachable`."""
        loop = asyncio.get_running_loop()
        over_at = loop.time() + self._rejoin_s
        for seconds in patience(_POLL_S):
            power = await self._power_now()
            if power is PowerState.OFF:
                return GuestEnd.POWERED_OFF
            if power is PowerState.CRASHED:
                raise GuestUnreachable(self._machine.name, "it has crashed")
            if power is PowerState.PAUSED:
                over_at = loop.time() + self._rejoin_s
            try:
                async with self._meeting:
                    await self._recognise()
            except ConversationOver:
                raise
            except MachineError as lost:
                if loop.time() >= over_at:
                    raise GuestUnreachable(
                        self._machine.name, f"its guest did not answer again within {self._rejoin_s:g} s: {lost.problem}"
                    ) from lost
            else:
                return None
            await pause(seconds)
        raise AssertionError("patience has no end")

    async def _brought_in(self, source: Path, name: str) -> str:
        """The path of a copy. Where the way to the guest was lost under it, the agent may have the file open still, and what is open
        for writing can't be run: then it is put there once more, under a name of the conversation's own that ends as `name` does."""
        path = self._system.join(self._folder, name)
        for tries_left in reversed(range(TRIES)):
            try:
                with await asyncio.to_thread(source.open, "rb") as content:
                    await copy(self._agent, content, path)
                return path
            except GuestLineLost:
                if not tries_left:
                    raise
                path = f"{self._told()}-{name}"
        raise AssertionError("the last try returns or raises")

    async def _power_now(self) -> PowerState | None:
        """None: the hypervisor can't say."""
        try:
            return await self._power(self._machine)
        except MachineError:
            return None

    def _check_open(self) -> None:
        if self._closed:
            raise GuestUnreachable(self._machine.name, "the conversation with its guest was ended")

    async def _meet(self) -> None:
        """Make sure that the guest is still the same."""
        self._check_open()
        async with self._meeting:
            if self._handle is not None and not await self._knows_word(self._handle):
                await self._recognise()

    async def _knows_word(self, handle: int) -> bool:
        """Whether the agent has still the file open in which the word is kept."""
        try:
            return await once_more(lambda: self._word_in(handle)) == self._word
        except GuestRefused:
            return False

    async def _word_in(self, handle: int) -> bytes:
        """Read on in the file: at its end one begins anew."""
        found = (await self._agent.read(handle, len(self._word)))[0]
        if not found:
            await self._agent.seek(handle, 0)
            found = (await self._agent.read(handle, len(self._word)))[0]
        return found

    async def _recognise(self) -> None:
        """Meet the guest again after it, or its agent, may have started anew. Raises `ConversationOver` when it was reverted."""
        boot = await self._boot_now()
        if boot == self._boot and self._handle is not None:
            if await self._knows_word(self._handle):
                return
            if not (await self._left(self._base)).startswith(self._word):
                raise ConversationOver(
                    self._machine.name, "its guest was reverted, or lost what was kept there for the conversation"
                )
        self._boot = boot
        try:
            await once_more(self._leave_word)
        except GuestRefused:
            self._handle = None  # a full disk, say: the guest can't be told from another one then, and everything else may work

    async def _leave_word(self) -> None:
        handle = await self._agent.open(self._base, "w+b")
        await self._agent.write(handle, self._word * _TIMES)
        await self._agent.seek(handle, 0)
        self._handle = handle

    async def _boot_now(self) -> bytes:
        if self._system.boot_file is not None:
            return (await self._read(self._system.boot_file, _BOOT_BYTES))[0]
        return (await self._said(self._system.boot))[:_BOOT_BYTES]

    async def _holder(self, argv: Argv) -> int:
        """The process that runs a program; `NOBODY` when the program runs and its holder is not known."""
        try:
            return await self._agent.start(argv)
        except GuestLineLost:
            await once_more(lambda: self._agent.start(argv))
            return NOBODY

    async def _marked(self) -> GuestMark:
        folder = self._machine.disk_folder or self._system.disk_folder
        mark = GuestMark(self._system.join(folder, f".{secrets.token_hex(8)}"), secrets.token_hex(8))
        process = await self._agent.start(self._system.mark(mark.file, mark.word))
        try:
            async with asyncio.timeout(_MARK_S):
                for seconds in patience(_POLL_S):
                    if (await self._agent.status(process)).exited:
                        raise self._agent.refused(f"no trace can be left in its folder {folder}")
                    if await self._left(mark.file) == mark.word.encode():
                        break
                    await pause(seconds)
        except TimeoutError:
            raise self._agent.refused(f"no trace could be left in its folder {folder} within {_MARK_S:g} s") from None
        return mark

    def _told(self) -> str:
        return f"{self._base}.{next(self._numbers)}"

    async def _said(self, saying: Callable[[str], Argv]) -> bytes:
        """What a command leaves in the file whose name `saying` is given. Raises `GuestRefused` when it takes too long, or leaves
        nothing."""
        return (await self._all_said(saying))[0]

    async def _all_said(self, saying: Callable[[str], Argv], *endings: str) -> Sequence[bytes]:
        """As `_said`, and what it leaves in the files of that name with `endings`."""

        async def said() -> Sequence[bytes]:
            told = self._told()
            process = await self._agent.start(saying(told))
            try:
                async with asyncio.timeout(COMMAND_S):
                    await self._ended(process)
            except TimeoutError:
                raise self._agent.refused(f"it doesn't do within {COMMAND_S:g} s what takes a moment") from None
            return [(await self._read(f"{told}{ending}", _LEFT_BYTES))[0] for ending in ("", *endings)]

        return await once_more(said)

    async def _ended(self, process: int) -> None:
        for seconds in patience(_POLL_S):
            if (await self._agent.status(process)).exited:
                return
            await pause(seconds)

    async def _left(self, path: str) -> bytes:
        """What is in a small file; nothing when there is none."""
        try:
            return (await self._read(path, _BOOT_BYTES))[0]
        except GuestRefused:
            return b""

    async def _has_time(self, at: float) -> bool:
        return abs(await self._agent.time() - at) < _CLOCK_SLACK_S + COMMAND_S / 10

    async def _reachable(self, path: str) -> str:
        """A path by which the agent, which is asked in UTF-8, finds the file at `path`."""
        try:
            path.encode()
        except UnicodeEncodeError:
            told = self._told()
            if (argv := self._system.link(told, path)) is not None:
                await once_more(lambda: self._agent.start(argv))
                for seconds in patience(_POLL_S):
                    if await self._left(told) or seconds == _POLL_S:
                        break
                    await pause(seconds)
            return told
        return path

    async def _read(self, path: str, max_bytes: int) -> tuple[bytes, bool]:
        return await read(self._agent, path, max_bytes)


async def _off_loop(reading: Callable[[], T], left: bytes) -> T:
    """What `reading` makes of what a command left: in a thread when that is much, as a hostile guest may leave."""
    return reading() if len(left) <= _SMALL_BYTES else await asyncio.to_thread(reading)
