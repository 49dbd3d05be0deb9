"""A confined process: one Python script behind walls, spoken to in frames.

1. Whatever it does (floods, lies, sends garbage, closes the wire, never answers, dies) ends in a `ConfinedProcessError` of the call
   that waits for it, and nowhere else.
2. It is spawned from the running loop's thread: the kernel ties its life to the thread that spawned it.
3. Its entry script gets no step before the walls are known to be the right ones (`hello`, then `enter`).
4. After `kill` nothing is left of it or of what it started.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from malbox_tui.confine.control_groups import ProcessGroups, Strikes
from malbox_tui.confine.endings import BrokenWire, ConfinedProcessError, ProcessEnded, how_ended, last_words
from malbox_tui.confine.ends import EndWatch, FirstProcess, family_of
from malbox_tui.confine.marks import kill_marked
from malbox_tui.confine.output import CappedOutput
from malbox_tui.confine.removal import remove_tree
from malbox_tui.confine.steps import NextStep
from malbox_tui.confine.work import Places, Walls, Work
from malbox_tui.sdk.malbox_plugin_sdk import wire

START_TIMEOUT_S = 30.0
"""How long the interpreter may take to say hello."""

KILL_TIMEOUT_S = 10.0
"""How long the kernel may take to end what was killed; a process in uninterruptible sleep takes longer, and is left to it."""

LAST_WORDS_S = 0.5
"""How long after the end of a process its wire is still read."""

PROCESSES_OF_WALLS = 4
"""How many processes the walls themselves take at most, besides what runs behind them."""

_UNSENT_BYTES = 1024 * 1024
_UNREAD_BYTES = 64 * 1024
_FRAMES_A_STEP = 32

_log = logging.getLogger(__name__)
_Frame = TypeVar("_Frame")


class _Hello(msgspec.Struct, tag_field="kind", tag="hello"):
    protocol: int
    prefix: str
    version: str
    uid: int


class ConfinedProcess:
    """One running process; made by `start`."""

    def __init__(self, work: Work, walls: Walls, output_bytes: int) -> None:
        self._work = work
        self._walls = walls
        self._output = CappedOutput(output_bytes)
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._first: FirstProcess | None = None
        self._end_watch: EndWatch | None = None
        self._groups: ProcessGroups | None = None
        self._frames = 0
        self._places: Places | None = None

    @classmethod
    async def start(cls, work: Work, walls: Walls, output_bytes: int = 256 * 1024) -> ConfinedProcess:
        """A process whose entry script has just begun.

        Raises `ConfinedProcessError`, with the reason in words; cancelled or failed, nothing of it is left.
        """
        process = cls(work, walls, output_bytes)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await process._spawn()
                await process._let_in()
        except TimeoutError:
            await process.kill()
            raise ConfinedProcessError(f"the process did not say hello within {START_TIMEOUT_S:g} s") from None
        except ProcessEnded as exc:
            await process.kill()
            raise ProcessEnded(exc.how + last_words(process.take_output())) from exc
        except BaseException:
            await process.kill()
            raise
        return process

    @property
    def places(self) -> Places:
        """Where the process finds things."""
        if self._places is None:
            raise ConfinedProcessError("the process was not started")
        return self._places

    @property
    def alive(self) -> bool:
        """Whether it is still there to talk to."""
        return (
            self._process is not None
            and self._process.returncode is None
            and self._reader is not None
            and not self._reader.at_eof()
        )

    @property
    def reads(self) -> bool:
        """Whether it has read most of what it was sent."""
        return self._writer is not None and self._writer.transport.get_write_buffer_size() <= _UNREAD_BYTES

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Send a frame; it never waits. Raises `ConfinedProcessError` when the process is gone or reads nothing any more."""
        if self._writer is None or self._writer.is_closing():
            raise ProcessEnded("has closed its wire")
        if self._writer.transport.get_write_buffer_size() > _UNSENT_BYTES:
            raise BrokenWire("the process does not read what it is sent")
        self._writer.write(wire.pack(header, payload))

    async def receive(self, decoder: msgspec.json.Decoder[_Frame]) -> tuple[_Frame, bytes]:
        """The next frame, its header decoded. Raises `ConfinedProcessError`. Cancelled: the wire can't be used any more."""
        if self._reader is None:
            raise ProcessEnded("was not started")
        self._frames += 1
        if not self._frames % _FRAMES_A_STEP:
            await NextStep()
        try:
            header_bytes, payload_bytes = wire.PREFIX.unpack(await self._reader.readexactly(wire.PREFIX.size))
            wire.check_lengths(header_bytes, payload_bytes)
            header = await self._reader.readexactly(header_bytes)
            payload = await self._reader.readexactly(payload_bytes)
            return decoder.decode(header), payload
        except (asyncio.IncompleteReadError, OSError) as exc:
            raise ProcessEnded(await self._how_it_ended()) from exc
        except wire.WireError as exc:
            raise BrokenWire(f"the process sent {exc}") from exc
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            raise BrokenWire(f"the process sent a frame that is not one: {str(exc)[:200]}") from exc

    def take_output(self) -> bytes:
        """What it printed since the last call, cut at the cap and marked where it was cut."""
        return self._output.take()

    def strikes(self) -> Strikes:
        """How often limits of its control groups hit since its start."""
        return Strikes() if self._groups is None else self._groups.strikes()

    def scratch_free_bytes(self) -> int | None:
        """How much it may still write to a scratch of its own; None when that can't be told."""
        if not self._find_first_process() or self._first is None:
            return None
        return self._first.free_bytes_inside(self.places.scratch)

    def family(self) -> Iterator[int]:
        """Ids of the processes that belong to it, its walls and all that it started included; none when it has ended.

        Without a sandbox those are missing whose parents have ended.
        """
        if self._process is not None and self._process.returncode is None:
            yield from family_of(self._process.pid)

    def ask_to_stop(self) -> None:
        """Close the wire: a process that follows the protocol cleans up and ends."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.close()

    async def wait(self) -> None:
        """Returns when the process (not what it started) has ended."""
        if self._process is not None:
            await self._process.wait()

    def destroy(self) -> None:
        """Kill it and all that it started, without waiting for the end of them."""
        if self._first is not None:
            self._find_first_process()
            self._first.kill()
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """Kill it and all that it started; returns when nothing of it is left. A second call does nothing."""
        self.destroy()
        self.ask_to_stop()
        try:
            async with asyncio.timeout(KILL_TIMEOUT_S):
                await self.wait()
                if self._first is not None:
                    await self._first.gone()
                if not self._walls.has_namespace and self._process is not None:
                    await asyncio.to_thread(kill_marked, self._work.scratch)
        except TimeoutError:
            _log.error("%s: a killed process does not end; the kernel still holds it", self._work.name)
        finally:
            self._let_go()
        await asyncio.to_thread(self._clean_up)

    async def _spawn(self) -> None:
        await self._make_groups()
        ours, theirs = socket.socketpair()
        try:
            launch = self._walls.launch(self._work, theirs.fileno())
            self._places = launch.places
            if not self._walls.has_namespace:
                self._work.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._process = await asyncio.create_subprocess_exec(
                *(() if self._groups is None else self._groups.entering),
                *launch.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self._output.write_fd,
                stderr=self._output.write_fd,
                pass_fds=[theirs.fileno()],
                env=dict(launch.environment),
                cwd="/",
                start_new_session=True,
            )
            if self._walls.has_namespace:
                self._first = FirstProcess(self._process.pid)
            self._output.close_writer()
            theirs.close()
            self._reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=wire.CHUNK_BYTES)
            self._end_watch = EndWatch(self._process.pid, self._end_wire)
        except OSError as exc:
            ours.close()
            raise ConfinedProcessError(f"the process can't be started: {exc}") from exc
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

    async def _make_groups(self) -> None:
        """Cancelled: they may be made all the same, and go with those of the bench."""
        if (bench := self._work.bench) is None:
            return
        limits = self._work.limits
        processes = limits.processes + PROCESSES_OF_WALLS
        try:
            self._groups = await asyncio.to_thread(bench.for_process, self._work.name, limits.memory_mb, processes)
        except OSError as exc:
            raise ConfinedProcessError(f"the process can't be limited: {exc}") from exc

    def _clean_up(self) -> None:
        if self._groups is not None:
            self._groups.remove()
        if not self._walls.has_namespace:
            try:
                remove_tree(self._work.scratch)
            except OSError as exc:
                _log.error("%s: its scratch folder can't be removed: %s", self._work.name, exc)

    def _find_first_process(self) -> bool:
        launcher_lives = self._process is not None and self._process.returncode is None
        return self._first is not None and launcher_lives and self._first.find()

    async def _let_in(self) -> None:
        hello, _payload = await self.receive(_HELLO)
        if hello.protocol != wire.PROTOCOL:
            raise ConfinedProcessError(f"the process speaks protocol {hello.protocol}, not {wire.PROTOCOL}")
        if hello.prefix != str(self._work.interpreter.prefix):
            raise ConfinedProcessError(
                f"the process runs another Python ({hello.prefix}, {hello.version}) than it is to ({self._work.interpreter.prefix})"
            )
        if self._walls.has_namespace and not self._find_first_process():
            raise ConfinedProcessError("the namespace of the process has no first process to be seen in /proc")
        self.send({"kind": "enter"})

    async def _how_it_ended(self) -> str:
        """In words. A process that closed its wire gets a moment to end, and is not waited for longer."""
        if self._process is None:
            return "was not started"
        try:
            async with asyncio.timeout(1.0):
                await self._process.wait()
        except TimeoutError:
            return "closed its wire"
        return how_ended(self._process.returncode or 0)

    def _end_wire(self) -> None:
        """The process ended, but what it started without walls may hold its end of the wire. What it said before is read first."""
        if self._writer is not None:
            asyncio.get_running_loop().call_later(LAST_WORDS_S, self._writer.transport.abort)

    def _let_go(self) -> None:
        if self._end_watch is not None:
            self._end_watch.close()
        self._output.close()
        if self._first is not None:
            self._first.close()
        if self._writer is not None:
            self._writer.transport.abort()


_HELLO = msgspec.json.Decoder(_Hello)
