"""A program that was started in a guest, watched through the agent, or through what it leaves when the agent began anew.

A second process in the guest, its holder, waits for it and writes down how it ended. The agent tells once of the holder's end, and
only the agent that started it; after that what is written down counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from malbox_tui.guest.agent import Agent, ExecStatus
from malbox_tui.guest.pause import patience, pause
from malbox_tui.guest.system import Birth, GuestSystem, ProcessFacts, number
from malbox_tui.guest.transfer import once_more
from malbox_tui.model.errors import GuestRefused, GuestUnreachable, MachineError
from malbox_tui.ports import GuestEnd, GuestExit

START_S = 30.0
"""How long the guest may take from the start of the holder to that of the program."""

NOBODY = 0
"""A holder of which nobody knows the number: what is written down tells of the program."""

_POLL_S = 0.25
_WORDS_BYTES = 512
_KILL_ROUNDS = 4
_LOOK_FOR_IT_S = 2.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a program uses of its conversation: `read` a file's beginning, `facts` of all processes, `regain` the guest, `boot` names
    the guest's present stay."""

    agent: Agent
    system: GuestSystem
    read: Callable[[str, int], Awaitable[tuple[bytes, bool]]]
    facts: Callable[[], Awaitable[Sequence[ProcessFacts]]]
    regain: Callable[[], Awaitable[GuestEnd | None]]
    boot: Callable[[], bytes]


class QgaProgram:
    """Implements `GuestProgram`; made by `begin`."""

    def __init__(self, around: Surroundings, base: str, holder: int, birth: Birth) -> None:
        self._around = around
        self._base = base
        self._holder = holder
        self._birth = birth
        self._end: GuestExit | None = None
        self._boot = around.boot()
        self._waiting = asyncio.Lock()

    @classmethod
    async def begin(cls, around: Surroundings, base: str, holder: int) -> QgaProgram:
        """The program of which `holder` was just started. Raises `GuestRefused` when it doesn't come to its start, `GuestUnreachable`.

        It may turn on its guest before it was seen: one that took it down at once has a holder and no process.
        """
        loop = asyncio.get_running_loop()
        program = cls(around, base, holder, Birth(holder, 0))
        status, over_at = None, loop.time() + START_S
        for seconds in patience(_POLL_S):
            try:
                birth = around.system.born(await _left(around, f"{base}.pid"))
                if birth is not None:
                    program._birth, program._end = birth, None if status is None else program._exit_of(status)
                    return program
                if status is not None or loop.time() > over_at:
                    break
                status = await _ended(around.agent, holder)
            except GuestUnreachable:
                if (end := await program._regained()) is not None:
                    program._end = end
                    return program
                over_at = loop.time() + START_S
            await pause(seconds)
        words = await _left(around, f"{base}.out")
        said = words.decode("utf-8", "backslashreplace").strip()
        raise around.agent.refused(f"a program could not be started there{f': {said}' if said else ''}")

    @property
    def pid(self) -> int:
        """As `GuestProgram.pid`."""
        return self._birth.pid

    async def wait(self, max_output_bytes: int) -> GuestExit:
        """As `GuestProgram.wait`."""
        async with self._waiting:
            if self._end is None:
                self._end = await self._until_it_ends()
        if self._end.end in (GuestEnd.POWERED_OFF, GuestEnd.REBOOTED):
            return self._end
        try:
            output, is_whole = await self._printed(max_output_bytes)
        except MachineError:
            # It ended, and then its guest went down, or is gone: the first doesn't undo how it ended.
            await self._regained()
            output, is_whole = b"", False
        return replace(self._end, output=output, is_whole=is_whole)

    async def kill(self) -> None:
        """As `GuestProgram.kill`: what is of its session, and what it and those have started. May raise `GuestRefused`."""
        if self._end is not None or self._around.boot() != self._boot:
            return
        known = {self._birth}
        for _round in range(_KILL_ROUNDS):
            victims = _family(await self._around.facts(), known)
            if not victims:
                return
            known |= victims
            # Parents first: a shell would write down that its child was killed.
            oldest_first = sorted(victims, key=lambda victim: (victim.at, victim.pid))
            await once_more(partial(self._kill, [victim.pid for victim in oldest_first]))

    async def output(self, max_bytes: int) -> bytes:
        """As `GuestProgram.output`."""
        return (await self._printed(max_bytes))[0]

    async def _until_it_ends(self) -> GuestExit:
        for seconds in patience(_POLL_S):
            try:
                status = await self._around.agent.status(self._holder)
            except GuestRefused:
                # This agent knows nothing of it, or told it to somebody who was cancelled.
                return await self._regained() or await self._until_written_down()
            except MachineError:
                if (end := await self._regained()) is not None:
                    return end
                continue
            if status.exited:
                return self._exit_of(status) or await self._until_written_down()
            await pause(seconds)
        raise AssertionError("patience has no end")

    async def _until_written_down(self) -> GuestExit:
        loop = asyncio.get_running_loop()
        look_at, is_gone = loop.time() + _LOOK_FOR_IT_S, False
        for seconds in patience(_POLL_S):
            try:
                code = number((await _left(self._around, f"{self._base}.code")).strip())
                if code is not None:
                    return self._exited(code)
                if is_gone:
                    return GuestExit(None, end=GuestEnd.UNKNOWN)
                if loop.time() >= look_at:
                    is_gone = all(facts.birth != self._birth for facts in await self._around.facts())
                    look_at = loop.time() + _LOOK_FOR_IT_S
            except MachineError:
                if (end := await self._regained()) is not None:
                    return end
            await pause(seconds)
        raise AssertionError("patience has no end")

    async def _regained(self) -> GuestExit | None:
        """None: the guest is as it was. Else how it went down."""
        end = await self._around.regain()
        if end is None and self._around.boot() != self._boot:
            end = GuestEnd.REBOOTED
        return None if end is None else GuestExit(None, end=end)

    def _exit_of(self, status: ExecStatus) -> GuestExit | None:
        """None: the holder was killed, and so can't have told."""
        return None if status.code is None else self._exited(status.code)

    def _exited(self, code: int) -> GuestExit:
        signal = self._around.system.signal_of(code)
        return GuestExit(code) if signal is None else GuestExit(signal, end=GuestEnd.KILLED)

    async def _printed(self, max_bytes: int) -> tuple[bytes, bool]:
        printed, all_whole = b"", True
        for path in self._around.system.outputs(self._base):
            try:
                content, is_whole = await self._around.read(path, max(0, max_bytes - len(printed)))
            except GuestRefused:
                content, is_whole = b"", False
            printed, all_whole = printed + content, all_whole and is_whole
        return printed, all_whole

    async def _kill(self, pids: Sequence[int]) -> None:
        process = await self._around.agent.start(self._around.system.kill(pids))
        async with asyncio.timeout(START_S):
            for seconds in patience(_POLL_S):
                if (await self._around.agent.status(process)).exited:
                    return
                await pause(seconds)


def _family(processes: Sequence[ProcessFacts], known: set[Birth]) -> set[Birth]:
    """Those of `processes` that are `known`, of the session of one of these, or started by one of all these."""
    by_pid = {facts.birth.pid: facts for facts in processes}
    gone_or_there = {birth.pid for birth in known if birth.pid not in by_pid or by_pid[birth.pid].birth == birth}
    family: dict[int, Birth] = {}
    grows = True
    while grows:
        grows = False
        for facts in processes:
            of_it = (
                facts.birth in known or facts.session in gone_or_there or facts.process.parent in gone_or_there | family.keys()
            )
            if of_it and facts.birth.pid not in family:
                family[facts.birth.pid] = facts.birth
                grows = True
    return set(family.values())


async def _left(around: Surroundings, path: str) -> bytes:
    """The beginning of a file; nothing when there is none."""
    try:
        return (await around.read(path, _WORDS_BYTES))[0]
    except GuestRefused:
        return b""


async def _ended(agent: Agent, holder: int) -> ExecStatus | None:
    """None: it runs, or this agent knows nothing of it."""
    try:
        status = await agent.status(holder)
    except GuestRefused:
        return None
    return status if status.exited else None
