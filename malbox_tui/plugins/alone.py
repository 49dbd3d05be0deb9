"""A plugin's turn with one task."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins.conversation import Conversation, Hearing
from malbox_tui.plugins.ending import Ending, stopped
from malbox_tui.plugins.logs import log_of
from malbox_tui.plugins.parts import Part
from malbox_tui.plugins.seat import Seat
from malbox_tui.plugins.tray import ResultTray
from malbox_tui.plugins.turn import Turn


async def run_alone(seat: Seat, part: Part) -> None:
    """Let the plugin do its part. Cancelled: its process is killed, results that are whole stay in the store."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    turn = Turn(seat)
    tray = ResultTray(seat.around, part.job, seat.plugin.name)
    hearing = Hearing(seat.around, part.job, seat.plugin.name, tray)
    part.take_up(lambda reason: turn.halt(stopped(reason), seat.around.grace_s(reason)))
    try:
        ending = await turn.work(lambda: _attempt(seat, turn, part, hearing))
        tray.abort()
        if log := part.log + log_of(hearing.warnings, seat.take_output() + ending.traceback):
            tray.keep_log(log)
        ending = await _with_hits(seat, ending)
    except MalboxError as error:
        tray.abort()
        await seat.kill()
        part.lose(error)
    except BaseException:
        tray.abort()
        await seat.kill()
        raise
    else:
        part.end(ending, loop.time() - began, tray)


async def _attempt(seat: Seat, turn: Turn, part: Part, hearing: Hearing) -> Ending:
    process = await seat.ready_process()
    number = seat.next_number()
    turn.give(process, _order(process, number, part))
    word, payload = await Conversation(number, {number: hearing}, _raise).last_word(process)
    return turn.ending_of(word, payload)


def _order(process: ConfinedProcess, number: int, part: Part) -> dict[str, object]:
    sample = f"{process.places.inbox}/{part.job.sample_name}"
    return {"kind": "run", "run": number, "task_id": part.job.task_id, "sample": sample}


def _raise(_number: int, error: MalboxError) -> None:
    raise error


async def _with_hits(seat: Seat, ending: Ending) -> Ending:
    """With the limits that it reached for a reason. A process that reached one is replaced: what it left would be in the way."""
    hits = seat.hits(ending.hit)
    if not hits:
        return ending
    await seat.kill()
    reached = f"it reached its {' and its '.join(hits)}"
    is_stopped = ending.status not in (PluginStatus.COMPLETED, PluginStatus.FAILED)
    return replace(ending, reason=f"{ending.reason}; {reached}" if is_stopped else reached)
