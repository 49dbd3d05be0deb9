"""A plugin's turn with one task.

A task that reaches a limit or breaks its process, where that process had served others before, is run once more in a fresh one: what
they left in it (files, memory, children that nobody waits for) may be to blame, and no task pays for another.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.report import PluginStatus, degraded
from malbox_tui.plugins.conversation import Conversation, Hearing
from malbox_tui.plugins.ending import Ending, stopped
from malbox_tui.plugins.logs import log_of, of_a_used_process, of_before
from malbox_tui.plugins.parts import Part
from malbox_tui.plugins.seat import Seat
from malbox_tui.plugins.tray import ResultTray
from malbox_tui.plugins.turn import Turn


async def run_alone(seat: Seat, part: Part) -> None:
    """Let the plugin do its part. Cancelled: its process is killed, results that are whole stay in the store."""
    began = asyncio.get_running_loop().time()
    broke_by = await _run(seat, part, began)
    if not part.is_over:
        await _run(seat, part, began, broke_by)


async def _run(seat: Seat, part: Part, began: float, broke_by: str = "") -> str:
    """Until the part is over or, in a process that had other orders before, put back to be run once more: then says what broke it.

    `broke_by`: what broke the run before this one.
    """
    turn = Turn(seat)
    tray = ResultTray(seat.around, part.job, seat.plugin.name)
    hearing = Hearing(seat.around, part.job, seat.plugin.name, tray)
    stops: list[str] = []

    def stop(reason: str) -> None:
        stops.append(reason)
        turn.halt(stopped(reason), seat.around.grace_s(reason))

    part.take_up(stop)
    try:
        ending = await turn.work(lambda: _attempt(seat, turn, part, hearing))
        tray.abort()
        log = part.log + of_before(seat.take_aside()) + log_of(hearing.warnings, seat.take_output() + ending.traceback)
        hits = seat.hits(ending.hit)
        ending = _with_hits(ending, hits)
        if hits:
            await seat.kill()
        await seat.clear_up()
        if turn.is_on_used_process and (hits or turn.is_broken) and not (stops or _is_stopped(ending)):
            part.put_back(of_a_used_process(ending.reason, log))
            return ending.reason
        if broke_by and _is_stopped(ending):
            ending = replace(ending, reason=f"{ending.reason}; its first try: {broke_by}")
        if log:
            tray.keep_log(log)
    except MalboxError as error:
        tray.abort()
        await seat.kill()
        part.lose(error)
    except BaseException:
        tray.abort()
        await seat.kill()
        raise
    else:
        part.end(ending, asyncio.get_running_loop().time() - began, tray)
    return ""


async def _attempt(seat: Seat, turn: Turn, part: Part, hearing: Hearing) -> Ending:
    process = await seat.ready_process()
    number = seat.next_number()
    turn.give(process, _order(process, number, part))
    word, payload = await Conversation(number, {number: hearing}, _raise).last_word(process)
    return turn.ending_of(word, payload)


def _order(process: ConfinedProcess, number: int, part: Part) -> dict[str, object]:
    inbox = process.places.inbox
    given = {thing: f"{inbox}/{name}" for thing, name in part.given.items()}
    sample = f"{inbox}/{part.job.sample_name}"
    return {"kind": "run", "run": number, "task_id": part.job.task_id, "sample": sample, "given": given}


def _raise(_number: int, error: MalboxError) -> None:
    raise error


def _is_stopped(ending: Ending) -> bool:
    return ending.status not in (PluginStatus.COMPLETED, PluginStatus.FAILED)


def _with_hits(ending: Ending, hits: tuple[str, ...]) -> Ending:
    """With the limits that it reached for a reason. A failed run failed by them, whatever else it says."""
    if not hits:
        return ending
    reached = f"it reached its {' and its '.join(hits)}"
    if ending.status is PluginStatus.FAILED:
        return replace(ending, reason=reached)
    if ending.reason:
        return replace(ending, reason=f"{ending.reason}; {reached}")
    return replace(ending, reason=degraded(reached))
