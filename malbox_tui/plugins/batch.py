"""What a bench does with tasks: each plugin's turns with its parts of them, the plugins side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence

from malbox_tui.model.plan import Execution
from malbox_tui.plugins.alone import run_alone
from malbox_tui.plugins.ending import Ending, stopped
from malbox_tui.plugins.parts import Member, Part
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
    """Let each plugin do its parts of all tasks: those that may run together do, then the sequential ones, one at a time.

    Returns when each member was told what was found. Cancelled: all processes are killed.
    """
    together = [seat for seat in seats if seat.plugin.manifest.runtime.execution is not Execution.SEQUENTIAL]
    in_turn = [seat for seat in seats if seat.plugin.manifest.runtime.execution is Execution.SEQUENTIAL]
    plugins = [seat.plugin for seat in (*together, *in_turn)]
    running = [Member(member, plugins, around) for member in members]
    for asked, member in zip(members, running, strict=True):
        if asked.stop.reason is not None:
            member.halt(asked.stop.reason)
        member.tell_if_over()
    try:
        async with asyncio.TaskGroup() as group:
            watches = [group.create_task(member.watch()) for member in running]
            async with asyncio.TaskGroup() as side_by_side:
                for seat in together:
                    side_by_side.create_task(_serve(seat, running))
            for seat in in_turn:
                await _serve(seat, running)
            for watch in watches:
                watch.cancel()
    finally:
        for member in running:
            member.leave()


async def _serve(seat: Seat, members: Sequence[Member]) -> None:
    name = seat.plugin.name
    parts = [member.parts[name] for member in members if name in member.parts]
    for piece in _pieces(parts):
        if len(_waiting(piece)) > 1 and await _takes_batches(seat, piece) and len(_waiting(piece)) > 1:
            await Together(seat, _waiting(piece)).run()
        for part in piece:
            if not part.is_over:
                await run_alone(seat, part)


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
    piece: list[Part] = []
    size_bytes = 0
    for part in parts:
        name_bytes = len(json.dumps(part.job.sample_name))
        if piece and (len(piece) == MAX_BATCH or size_bytes + name_bytes > _MAX_NAMES_BYTES):
            yield piece
            piece, size_bytes = [], 0
        piece.append(part)
        size_bytes += name_bytes
    if piece:
        yield piece
