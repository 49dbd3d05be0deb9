"""How the run of a sample came to its end: told by its guest, by the hypervisor, or by whoever gets to it first.

A guest can't tell that it was switched off, and a hypervisor not that a program has ended: both are asked at once. A machine that its
guest switched off is a normal end; one that went down in any other way is lost.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from malbox_tui.engine import clock
from malbox_tui.engine.hypervisor import MachineHands
from malbox_tui.engine.tracker import was_cancelled
from malbox_tui.model.errors import GuestUnreachable, MachineError, MachineUnable
from malbox_tui.model.machine import Downfall
from malbox_tui.ports import GuestEnd, GuestExit, GuestProgram, GuestSession

log = logging.getLogger(__name__)

MAX_OUTPUT_BYTES = 256 * 1024
"""How much of what a sample prints is kept."""
DOWN_GRACE_S = 5.0
"""A guest that answers no more may be on its way down: so long the hypervisor has to say so."""
PING_S = 1.0
"""How often a guest that starts anew is asked whether it is there."""

_BY_GUEST = frozenset({Downfall.SHUT_DOWN, Downfall.CRASHED})


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How far a run came. `exit`: how the sample ended; None: it did not. `down`: how its machine went down, None: it didn't. `lost`:
    its guest was lost."""

    exit: GuestExit | None = None
    down: Downfall | None = None
    lost: GuestUnreachable | None = None

    @property
    def has_guest(self) -> bool:
        """Its guest can still be asked."""
        return self.down is None and self.lost is None

    @property
    def has_rebooted(self) -> bool:
        """The guest started anew with the sample in it."""
        return self.exit is not None and self.exit.end is GuestEnd.REBOOTED

    def __str__(self) -> str:
        """In a sentence."""
        if self.lost is not None:
            return str(self.lost)
        if self.exit is None:
            return "The sample was still running."
        if self.down is Downfall.CRASHED and self.exit.end is GuestEnd.POWERED_OFF:
            return "The system of its guest crashed."
        return _WORDS[self.exit.end].format(self.exit.code)


_WORDS = {
    GuestEnd.EXITED: "The sample ended with exit status {}.",
    GuestEnd.KILLED: "The sample was killed by signal {}.",
    GuestEnd.UNKNOWN: "The sample ended, and its guest does not know how.",
    GuestEnd.POWERED_OFF: "The sample switched its machine off.",
    GuestEnd.REBOOTED: "The sample started its guest anew.",
}

_LOST = {
    Downfall.SHUT_DOWN: "its guest switched the machine off",
    Downfall.CRASHED: "the system of its guest crashed",
    Downfall.SWITCHED_OFF: "somebody switched the machine off",
    Downfall.FAILED: "the hypervisor's process of the machine died",
}


async def end_of(program: GuestProgram, hands: MachineHands, machine: str) -> RunEnd:
    """Returns when the sample has ended, or its machine or guest is gone. Whatever the adapters raise is in the answer."""
    async with asyncio.TaskGroup() as asking:
        guest = asking.create_task(_told_by_guest(program, machine))
        hypervisor = asking.create_task(_told_by_hypervisor(hands, machine))
        await asyncio.wait({guest, hypervisor}, return_when=asyncio.FIRST_COMPLETED)
        if not hypervisor.done() and _may_be_down(guest.result()):
            await asyncio.wait({hypervisor}, timeout=DOWN_GRACE_S)
        guest.cancel()
        hypervisor.cancel()
    return _combined(_result(guest), _result(hypervisor))


async def end_before_start(lost: GuestUnreachable, hands: MachineHands, machine: str) -> RunEnd:
    """What became of a guest that was `lost` before the sample was started in it: its hypervisor may know more."""
    try:
        async with clock.within(DOWN_GRACE_S):
            down = await hands.until_down()
    except (MachineError, TimeoutError):
        return RunEnd(lost=lost)
    return RunEnd(down=down, lost=GuestUnreachable(machine, f"{_LOST[down]} before the sample was started"))


async def end_of_watch(so_far: RunEnd, session: GuestSession, hands: MachineHands, machine: str, back_within_s: float) -> RunEnd:
    """After the sample's end, returns when its machine or guest is gone: one that started anew has to answer again within a time."""
    async with asyncio.TaskGroup() as watching:
        hypervisor = watching.create_task(_told_by_hypervisor(hands, machine))
        ends = {hypervisor}
        if so_far.has_rebooted:
            ends.add(watching.create_task(_stays_away(session, machine, back_within_s)))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
    found = next(result for end in (hypervisor, *ends) if (result := _result(end)) is not None)
    return replace(found, exit=so_far.exit)


def _may_be_down(told: RunEnd) -> bool:
    return told.lost is not None or (told.exit is not None and told.exit.end is GuestEnd.POWERED_OFF)


def _combined(guest: RunEnd | None, hypervisor: RunEnd | None) -> RunEnd:
    """What the hypervisor knows of the machine, the guest of the sample."""
    if hypervisor is None:
        assert guest is not None, "one of them has told"
        is_off = guest.exit is not None and guest.exit.end is GuestEnd.POWERED_OFF
        return replace(guest, down=Downfall.SHUT_DOWN) if is_off else guest
    if guest is not None and guest.exit is not None:
        return replace(hypervisor, exit=guest.exit)
    return hypervisor if hypervisor.lost is not None else replace(hypervisor, exit=GuestExit(None, end=GuestEnd.POWERED_OFF))


def _result(asked: asyncio.Task[RunEnd]) -> RunEnd | None:
    return asked.result() if asked.done() and not asked.cancelled() else None


async def _told_by_guest(program: GuestProgram, machine: str) -> RunEnd:
    try:
        return RunEnd(await program.wait(MAX_OUTPUT_BYTES))
    except GuestUnreachable as error:
        return RunEnd(lost=error)
    except asyncio.CancelledError as error:
        if was_cancelled():
            raise
        return RunEnd(lost=broken(machine, error))
    except Exception as error:  # noqa: BLE001 - whatever an adapter raises, its guest is of no use any more
        return RunEnd(lost=broken(machine, error))


async def _told_by_hypervisor(hands: MachineHands, machine: str) -> RunEnd:
    try:
        down = await hands.until_down()
    except MachineUnable:
        # It can't tell: the guest has to.
        await asyncio.get_running_loop().create_future()
        raise
    except MachineError as error:
        return RunEnd(lost=GuestUnreachable(machine, error.problem))
    return RunEnd(down=down, lost=None if down in _BY_GUEST else GuestUnreachable(machine, f"{_LOST[down]} while the sample ran"))


async def _stays_away(session: GuestSession, machine: str, back_within_s: float) -> RunEnd:
    """Returns when the guest did not answer again; never when it did."""
    try:
        async with clock.within(back_within_s):
            while not await _answers(session):
                await clock.sleep(PING_S)
    except TimeoutError:
        return RunEnd(
            lost=GuestUnreachable(machine, f"its guest started anew, and did not answer again within {back_within_s:g} s")
        )
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody ends this")


async def _answers(session: GuestSession) -> bool:
    try:
        await session.ping()
    except MachineError:
        return False
    return True


def broken(machine: str, error: BaseException) -> GuestUnreachable:
    """What an adapter's own fault comes to."""
    log.error("the adapter of machine %s broke", machine, exc_info=error)
    return GuestUnreachable(machine, f"its adapter broke: {type(error).__name__}: {error}".rstrip(": "))
