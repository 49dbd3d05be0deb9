"""What a bench does with tasks: each plugin's turns with its parts of them, in the plan's order, side by side where that may be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.plan import Step
from malbox_tui.plugins.alone import run_alone
from malbox_tui.plugins.ending import Ending, stopped
from malbox_tui.plugins.floor import Ticket
from malbox_tui.plugins.needs import meet_needs
from malbox_tui.plugins.parts import Member, Part
from malbox_tui.plugins.scopes import enter_scopes, leave_scopes
from malbox_tui.plugins.seat import Seat
from malbox_tui.plugins.surroundings import Surroundings
from malbox_tui.plugins.together import Together
from malbox_tui.plugins.turn import Turn
from malbox_tui.ports import BatchMember

MAX_BATCH = 256
"""How many tasks a plugin gets at once; more are more batches."""

_MAX_NAMES_BYTES = 32 * 1024
"""Of the samples of one batch, so that the order fits into a header of the wire."""


async def run_members(seats: Sequence[Seat], members: Sequence[BatchMember], around: Surroundings) -> None:
    """Let each plugin do its parts of all tasks, each after those that the plan has it wait for.

    Returns when each member was told what was found. Cancelled: all processes are killed.
    """
    by_name = {seat.plugin.name: seat for seat in seats}
    in_order = [by_name[step.plugin] for step in around.plan.steps]
    running = [Member(member, [seat.plugin for seat in in_order], around) for member in members]
    for asked, member in zip(members, running, strict=True):
        if asked.stop.reason is not None:
            member.halt(asked.stop.reason)
        member.tell_if_over()
    try:
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(member.watch()) for member in running]
            await enter_scopes(in_order, frozenset(member.job.task_type for member in running))
            async with asyncio.TaskGroup() as side_by_side:
                at_work: dict[str, asyncio.Task[None]] = {}
                for step in around.plan.steps:
                    before = [at_work[name] for name in step.after]
                    at_work[step.plugin] = side_by_side.create_task(_serve(by_name[step.plugin], step, running, before))
            for watch in watches:
                watch.cancel()
        await leave_scopes(in_order)
    finally:
        for member in running:
            member.leave()


async def _serve(seat: Seat, step: Step, members: Sequence[Member], before: Sequence[asyncio.Task[None]]) -> None:
    if before:
        await asyncio.wait(before)
    parts = [part for member in members if (part := await _ready_part(seat, step, member)) is not None]
    for piece in _pieces(parts):
        if not _waiting(piece):
            continue
        ticket = seat.around.floor.ask(seat.plugin.name, step.execution)
        if not await _granted(ticket, piece):
            continue
        try:
            await _work(seat, piece)
        finally:
            ticket.give_back()


async def _ready_part(seat: Seat, step: Step, member: Member) -> Part | None:
    """What the plugin has to do with the task; None when that is nothing any more."""
    part = member.parts.get(step.plugin)
    if part is None or part.is_over:
        return None
    try:
        await meet_needs(step, member, part, seat.inbox, seat.around)
    except MalboxError as error:
        part.lose(error)
    return next(iter(_waiting([part])), None)


async def _granted(ticket: Ticket, piece: Sequence[Part]) -> bool:
    """Whether the plugin may work now; False when all the parts ended before it might."""
    if ticket.waits:

        def withdraw_with_the_last() -> None:
            if not _waiting(piece):
                ticket.withdraw()

        for part in piece:
            part.when_over = withdraw_with_the_last
            part.wait()
    try:
        return await ticket.granted()
    finally:
        for part in piece:
            part.when_over = _do_nothing
            part.wait_no_more()


def _do_nothing() -> None:
    """When a part is over and nobody waits for that."""


async def _work(seat: Seat, piece: Sequence[Part]) -> None:
    await seat.use(piece[0].options)
    if len(_waiting(piece)) > 1 and await _takes_batches(seat, piece) and len(_waiting(piece)) > 1:
        await Together(seat, _waiting(piece)).run()
        await seat.after_task()
    for part in piece:
        if not part.is_over:
            await run_alone(seat, part)
            await seat.after_task()


def _waiting(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if not part.is_over]


async def _takes_batches(seat: Seat, parts: Sequence[Part]) -> bool:
    """Whether the plugin does. To find that out its process is made ready, unless it was before, or all parts end meanwhile.

    One that can't be made ready is left to say so of each task.
    """
    if seat.takes_batches is None:
        turn = Turn(seat)

        def end_with_the_last() -> None:
            if not _waiting(parts):
                turn.cut()

        for part in parts:
            part.when_over = end_with_the_last
        await turn.work(lambda: _ready(seat))
    return bool(seat.takes_batches)


async def _ready(seat: Seat) -> Ending:
    await seat.ready_process()
    return stopped("nothing was asked of it")


def _pieces(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """What a plugin gets at once, all with the same options, since its process has one set of them."""
    alike: dict[tuple[tuple[str, str], ...], list[Part]] = {}
    for part in parts:
        alike.setdefault(tuple(sorted(part.options.items())), []).append(part)
    for those in alike.values():
        yield from _sized(those)


def _sized(parts: Sequence[Part]) -> Iterator[list[Part]]:
    piece: list[Part] = []
    size_bytes = 0
    for part in parts:
        name_bytes = len(json.dumps((part.job.sample_name, dict(part.given))))
        if piece and (len(piece) == MAX_BATCH or size_bytes + name_bytes > _MAX_NAMES_BYTES):
            yield piece
            piece, size_bytes = [], 0
        piece.append(part)
        size_bytes += name_bytes
    if piece:
        yield piece
