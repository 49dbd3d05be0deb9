"""What kind of content a sample is, asked of the plugin whose work that is, before its run and without keeping anything of it."""

from __future__ import annotations

from dataclasses import replace

from malbox_tui.model.report import Identification, PluginStatus
from malbox_tui.plugins.conversation import Conversation, Hearing
from malbox_tui.plugins.ending import Ending
from malbox_tui.plugins.held import HoldingRoom
from malbox_tui.plugins.seat import Seat
from malbox_tui.plugins.tray import ResultTray
from malbox_tui.plugins.turn import Turn
from malbox_tui.ports import PluginJob

LIMIT_S = 60.0
"""How long it may take, from when the plugin is ready."""


async def identify(seat: Seat, sample_name: str) -> Identification | None:
    """What the plugin says; None when it doesn't know, breaks, or takes too long. Cancelled: its process is killed."""
    await seat.use({})
    turn = Turn(seat)
    quiet = replace(seat.around, on_news=lambda _news: None)
    job = PluginJob(0, "", sample_name)
    tray = ResultTray(quiet, job, seat.plugin.name, HoldingRoom())
    try:
        await turn.work(lambda: _attempt(seat, turn, sample_name, Hearing(quiet, job, seat.plugin.name, tray)))
        seat.take_output()
        await seat.clear_up()
        await seat.after_task()
    except BaseException:
        await seat.kill()
        raise
    return tray.identification


async def _attempt(seat: Seat, turn: Turn, sample_name: str, hearing: Hearing) -> Ending:
    process = await seat.ready_process()
    number = seat.next_number()
    turn.limit(LIMIT_S, Ending(PluginStatus.TIMED_OUT, f"it took longer than {LIMIT_S:g} s"))
    sample = f"{process.places.inbox}/{sample_name}"
    turn.give(process, {"kind": "run", "run": number, "task_id": 0, "sample": sample})
    word, payload = await Conversation(number, {number: hearing}, _raise).last_word(process)
    return turn.ending_of(word, payload)


def _raise(_number: int, error: Exception) -> None:
    raise error
