"""A plugin's turn with the tasks of a batch at once.

1. Nothing that the plugin sends reaches the result store before it is certain: at the batch's last word for tasks that are whole, and
   at its stop for one that was stopped meanwhile.
2. A batch that broke leaves no trace of itself but a remark in the logs: its tasks wait for a turn of their own, and the process is
   replaced.
3. What is still said of a task that is over is ignored.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from malbox_tui.confine.endings import BrokenWire
from malbox_tui.confine.steps import NextStep
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins.conversation import Conversation, Hearing
from malbox_tui.plugins.ending import Ending, stopped
from malbox_tui.plugins.held import HoldingRoom
from malbox_tui.plugins.logs import log_of, of_a_broken_batch, of_before, of_the_batch
from malbox_tui.plugins.parts import Part
from malbox_tui.plugins.replies import BadResult
from malbox_tui.plugins.seat import Seat
from malbox_tui.plugins.tray import ResultTray
from malbox_tui.plugins.turn import Turn

_SHARE_OF_TIME = 0.5
"""How much of the shortest time of its tasks a batch may take: the rest is for the turns that follow if it breaks."""

_NOTHING_LEFT = Ending(PluginStatus.CANCELED, "all of its tasks are over")


@dataclass
class _Place:
    """Where a part's run is kept; `number` is 0 until it was ordered."""

    tray: ResultTray
    hearing: Hearing
    number: int = 0


class Together:
    """Made for one use of `run`. The plugin must be one that takes batches."""

    def __init__(self, seat: Seat, parts: Sequence[Part]) -> None:
        self._seat = seat
        self._turn = Turn(seat)
        room = HoldingRoom()
        self._places = {part: self._place(part, room) for part in parts}
        """Of the parts that are not over."""
        self._numbers: dict[int, Part] = {}
        self._tasks = len(parts)
        self._limit_s = min(part.job.timeout_s for part in parts) * _SHARE_OF_TIME
        self._began = 0.0
        self._printed = b""
        self._aside = b""

    async def run(self) -> None:
        """Let the plugin do its parts; those that are not over then wait for a turn of their own.

        Cancelled: its process is killed, and nothing is kept of what was not over.
        """
        self._began = asyncio.get_running_loop().time()
        for part in list(self._places):
            part.take_up(functools.partial(self._drop, part))
        self._turn.limit(self._limit_s, Ending(PluginStatus.TIMED_OUT, f"it took longer than {self._limit_s:g} s"))
        try:
            await self._finish(await self._turn.work(self._attempt))
        except BaseException:
            for place in self._places.values():
                place.tray.abort()
            await self._seat.kill()
            raise

    async def _attempt(self) -> Ending:
        process = await self._seat.ready_process()
        if not self._seat.takes_batches:
            raise BrokenWire("the process says that it takes no batches any more")
        order = self._seat.next_number()
        for part, place in self._places.items():
            place.number = self._seat.next_number()
            self._numbers[place.number] = part
        members = [
            {"run": place.number, "task_id": part.job.task_id, "sample": part.job.sample_name, "given": dict(part.given)}
            for part, place in self._places.items()
        ]
        self._turn.give(process, {"kind": "batch", "run": order, "inbox": str(process.places.inbox), "members": members})
        hearings = {place.number: place.hearing for place in self._places.values()}
        word, payload = await Conversation(order, hearings, self._lose).last_word(process)
        return self._turn.ending_of(word, payload)

    async def _finish(self, ending: Ending) -> None:
        """A batch of which nothing was wanted any more may end as it likes: what counts is that the process spoke a last word."""
        hits = self._seat.hits(ending.hit)
        is_wanted = bool(self._places)
        is_whole = ending.status is PluginStatus.COMPLETED and not hits
        if is_whole or self._seat.is_closed:
            is_whole = await self._keep_all(ending) and is_whole
        else:
            reason = f"it reached its {' and its '.join(hits)}" if hits else ending.reason
            for part in list(self._places):
                self._put_back(part, self._take_out(part), reason, ending.traceback)
        if hits or (is_wanted and not is_whole):
            await self._seat.kill()
        await self._seat.clear_up()

    async def _keep_all(self, ending: Ending) -> bool:
        """Whether the result store took every part's results."""
        are_all_kept = True
        while self._places:
            part = next(iter(self._places))
            place = self._take_out(part)
            try:
                self._keep(part, place, ending)
            except BadResult as exc:
                are_all_kept = False
                self._put_back(part, place, str(exc), b"")
            await NextStep()
        return are_all_kept

    def _drop(self, part: Part, reason: str) -> None:
        """It was stopped: it is over with what is whole, and the others go on."""
        place = self._take_out(part)
        try:
            self._keep(part, place, stopped(reason))
        except BadResult:
            part.end(stopped(reason), self._share_s(), place.tray)
        self._tell_process(place)

    def _lose(self, number: int, error: MalboxError) -> None:
        part = self._numbers[number]
        place = self._take_out(part)
        part.lose(error)
        self._tell_process(place)

    def _take_out(self, part: Part) -> _Place:
        place = self._places.pop(part)
        place.hearing.is_open = False
        place.tray.abort()
        return place

    def _keep(self, part: Part, place: _Place, ending: Ending) -> None:
        """The part is over. Raises `BadResult` when the store won't hear of the name of a result; then it is not."""
        try:
            place.tray.settle()
            if log := self._before() + of_the_batch(self._output(), self._tasks) + log_of(place.hearing.warnings):
                place.tray.keep_log(log)
        except MalboxError as error:
            part.lose(error)
        else:
            part.end(ending, self._share_s(), place.tray)

    def _put_back(self, part: Part, place: _Place, reason: str, traceback: bytes) -> None:
        printed = self._output() + traceback
        part.put_back(self._before() + of_a_broken_batch(reason, printed, self._tasks) + log_of(place.hearing.warnings))

    def _tell_process(self, place: _Place) -> None:
        """A part that it may still work at is over; when none is left, the whole turn ends."""
        if self._places:
            self._turn.cancel(place.number)
        else:
            self._turn.halt(_NOTHING_LEFT, self._seat.around.cancel_grace_s)

    def _before(self) -> bytes:
        """What was printed before they were taken up."""
        self._aside += self._seat.take_aside()
        return of_before(self._aside)

    def _output(self) -> bytes:
        """All that was printed until now."""
        self._printed = (self._printed + self._seat.take_output())[: self._seat.around.settings.max_output_bytes]
        return self._printed

    def _share_s(self) -> float:
        return (asyncio.get_running_loop().time() - self._began) / self._tasks

    def _place(self, part: Part, room: HoldingRoom) -> _Place:
        tray = ResultTray(self._seat.around, part.job, self._seat.plugin.name, room)
        return _Place(tray, Hearing(self._seat.around, part.job, self._seat.plugin.name, tray))
