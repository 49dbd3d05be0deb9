"""Guests of a simulated world, and conversations with them."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from malbox_tui.model.errors import GuestRefused, GuestUnreachable
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import GuestFile, GuestMark, GuestProcess, GuestProgram, GuestSession, GuestView
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.guest_calls import GuestCalls
from malbox_tui.simulated.guest_programs import SimulatedProgram
from malbox_tui.simulated.machine_body import MachineBody
from malbox_tui.simulated.world import World

_FOLDERS = {"windows": "C:\\Users\\Public"}
_OTHER_FOLDER = "/tmp"

_PIECE_BYTES = 64 * 1024
_MOST_PROCESSES = 4096


class SimulatedChannel:
    """Implements `GuestChannel` for the machines of `world`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._era = world.era

    async def connect(self, machine: MachineSpec) -> GuestSession:
        """As `GuestChannel.connect`. A machine that is off is waited for, too."""
        body = self._world.machines.get(machine.name)
        if body is None:
            raise GuestUnreachable(machine.name, "there is no such machine")
        await self._until_it_answers(body)
        if self._world.faults.strikes(Fault.GUEST_REFUSES, machine.name):
            raise GuestUnreachable(machine.name, "its guest refused the connection")
        if body.in_use:
            self._world.violations.append(f"machine {machine.name} was connected to while a conversation used it")
        return SimulatedSession(self._world, body, next(self._world.numbers))

    async def _until_it_answers(self, body: MachineBody) -> None:
        while True:
            left = body.answers_in(asyncio.get_running_loop().time())
            # At least one step, so that connecting can always be cancelled.
            await self._world.take_or_until(self._era, None if left == math.inf else left, body.change)
            if left == 0.0 and body.answers_in(asyncio.get_running_loop().time()) == 0.0:
                return


class SimulatedSession:
    """Implements `GuestSession`; it ends with the run of the machine that it began in, and goes on after the guest started anew."""

    def __init__(self, world: World, body: MachineBody, number: int) -> None:
        self._world = world
        self._body = body
        self._calls = GuestCalls(world, body, number)

    @property
    def folder(self) -> str:
        """As `GuestSession.folder`."""
        return self._body.spec.folder or _FOLDERS.get(self._body.spec.platform, _OTHER_FOLDER)

    async def ping(self) -> None:
        """As `GuestSession.ping`."""
        await self._ask("ping")

    async def push(self, source: Path, name: str, *, executable: bool = False) -> str:
        """As `GuestSession.push`. What lies at `source` is what the world's `files` say, else what the disk does; else something that
        is put only once."""
        if not name or "/" in name or "\\" in name:
            raise ValueError(f"{name!r} is not a plain file name")
        calls = self._calls
        with calls.one("push"):
            if not self._body.fresh and calls.number not in self._body.in_use:
                calls.blame(f"{source.name} was put into it after {self._body.dirt or 'who knows what'}")
            content = self._world.files.get(source, b"%d" % calls.number)
            self._body.touch(f"{source} by conversation {calls.number}")
            self._body.in_use.add(calls.number)
            if calls.strikes(Fault.GUEST_LOST_IN_PUT):
                await calls.lose_guest(self._world.durations.put, "while a file was copied")
            await calls.let_pass(self._world.durations.put, "while a file was copied")
        path = self._inside(name)
        self._write(path, content)
        return path

    async def start(self, argv: Sequence[str]) -> GuestProgram:
        """As `GuestSession.start`: the first of `argv` that lies in the guest is what runs, whatever its interpreter. Raises
        `GuestRefused` when none does."""
        await self._ask("start")
        path = next((word for word in argv if word in self._body.files), None)
        if path is None:
            raise GuestRefused(self._calls.name, f"{argv[0]} can't be started: there is no such file")
        self._body.in_use.add(self._calls.number)
        program = self._world.program_of(self._body.files[path])
        for name, content in program.drops:
            self._write(name if "/" in name or "\\" in name else self._inside(name), content)
        pid = next(self._world.numbers)
        self._body.processes[pid] = " ".join(argv)
        return SimulatedProgram(self._calls, program, pid)

    async def pull(self, path: str, write: Callable[[bytes], None], max_bytes: int) -> bool:
        """As `GuestSession.pull`. Raises `GuestRefused` when there is no such file."""
        await self._ask("pull")
        content = self._body.files.get(path)
        if content is None:
            raise GuestRefused(self._calls.name, f"{path} can't be read: there is no such file")
        wanted = content[: max(0, max_bytes)]
        for at in range(0, len(wanted), _PIECE_BYTES):
            write(wanted[at : at + _PIECE_BYTES])
        return len(wanted) == len(content)

    async def list(self, folder: str, limit: int) -> Sequence[GuestFile]:
        """As `GuestSession.list`, by path."""
        await self._ask("list")
        return self._inside_of(folder, limit)

    async def processes(self) -> Sequence[GuestProcess]:
        """As `GuestSession.processes`."""
        await self._ask("processes")
        return self._running()

    async def look(self, folders: Sequence[str], limit: int) -> GuestView:
        """As `GuestSession.look`."""
        await self._ask("look")
        return GuestView({folder: self._inside_of(folder, limit) for folder in folders}, self._running())

    async def set_clock(self, at: float) -> None:
        """As `GuestSession.set_clock`; guests have the world's time all the same."""
        await self._ask("set_clock")

    async def mark(self) -> GuestMark:
        """As `GuestSession.mark`."""
        await self._ask("mark")
        number = next(self._world.numbers)
        mark = GuestMark(self._inside(f"mark-{number}"), f"mark-{number}")
        self._body.leave_traces(mark.word)
        self._write(mark.file, mark.word.encode())
        self._body.processes[number] = f"sleep {mark.word}"
        return mark

    async def traces(self, mark: GuestMark) -> Sequence[str]:
        """As `GuestSession.traces`."""
        await self._ask("traces")
        found = [f"the file {mark.file}"] if mark.file in self._body.files else []
        if any(mark.word in command for command in self._body.processes.values()):
            found.append(f"the process {mark.word}")
        return found

    async def close(self) -> None:
        """As `GuestSession.close`. Cancelled: it is closed all the same."""
        if self._calls.is_closed:
            return
        self._calls.is_closed = True
        self._body.in_use.discard(self._calls.number)
        await self._world.take(self._calls.era, self._world.durations.hang_up)

    @property
    def _separator(self) -> str:
        return "\\" if self._body.spec.platform == "windows" else "/"

    def _inside(self, name: str) -> str:
        return f"{self.folder}{self._separator}{name}"

    def _inside_of(self, folder: str, limit: int) -> Sequence[GuestFile]:
        inside = folder.rstrip("/\\") + self._separator
        found = (path for path in sorted(self._body.files) if path.startswith(inside))
        return [
            GuestFile(path, len(self._body.files[path]), self._body.written.get(path, 0.0))
            for path in itertools.islice(found, max(0, limit))
        ]

    def _running(self) -> Sequence[GuestProcess]:
        running = [GuestProcess(pid, 1, _base_name(command), command) for pid, command in sorted(self._body.processes.items())]
        return [GuestProcess(1, None, "init", "/sbin/init"), *running][:_MOST_PROCESSES]

    def _write(self, path: str, content: bytes) -> None:
        self._body.files[path] = content
        self._body.written[path] = asyncio.get_running_loop().time()

    async def _ask(self, what: str) -> None:
        """One short call. Raises `GuestUnreachable`."""
        with self._calls.one(what):
            if self._calls.strikes(Fault.GUEST_LOST_WHEN_ASKED):
                await self._calls.lose_guest(self._world.durations.ask, f"while it was asked ({what})")
            await self._calls.let_pass(self._world.durations.ask, f"while it was asked ({what})")


def _base_name(command: str) -> str:
    return command.split(" ", 1)[0].replace("\\", "/").rsplit("/", 1)[-1]
