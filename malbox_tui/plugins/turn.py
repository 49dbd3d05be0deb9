"""One turn of a seat: an order to the plugin's process, from before the process is ready until its last word.

Whatever the plugin does ends the turn in an `Ending`. Only errors of the result store and cancellation leave it as exceptions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from malbox_tui.confine.endings import ConfinedProcessError, ProcessEnded
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins import replies
from malbox_tui.plugins.condition import GivenUp
from malbox_tui.plugins.conversation import LastWord
from malbox_tui.plugins.ending import Ending, NotBegun, last_line
from malbox_tui.plugins.replies import BadResult, shortened
from malbox_tui.plugins.seat import Seat

_CLOSED = Ending(PluginStatus.CANCELED, "the plugins are being closed")


class Turn:
    """Made for one use of `work`.

    `is_on_used_process`: the process had other orders before. `is_broken`: the process died, or broke the rules of the wire.
    """

    def __init__(self, seat: Seat) -> None:
        self.is_on_used_process = False
        self.is_broken = False
        self._seat = seat
        self._scope: asyncio.Timeout | None = None
        self._halted: Ending | None = None
        self._order: int | None = None
        self._timers: list[asyncio.TimerHandle] = []

    async def work(self, attempt: Callable[[], Awaitable[Ending]]) -> Ending:
        """How `attempt` ended; it is made again with a new process when the first one ended before it took the order up.

        Unless it ended by the process's own last word, the process is killed.
        """
        seat = self._seat
        if seat.is_closed:
            return _CLOSED
        seat.begin_turn(self.cut)
        try:
            async with asyncio.timeout(None) as self._scope:
                try:
                    return await attempt()
                except NotBegun as exc:
                    self._order = None
                    seat.condition.crashed(str(exc))
                    await seat.kill()
                    return await attempt()
        except TimeoutError:
            await seat.kill()
            return self._halted or _CLOSED
        except (ConfinedProcessError, BadResult, NotBegun) as exc:
            return await self._broken(exc)
        finally:
            self._over()

    def give(self, process: ConfinedProcess, order: dict[str, Any]) -> None:
        """Send the order. The limit that the manifest sets begins."""
        self._seat.set_aside()
        process.send(order)
        self.is_on_used_process = self._seat.count_order() > 1
        self._order = order["run"]
        if limit_s := self._seat.plugin.manifest.runtime.analysis_timeout:
            self.limit(limit_s, Ending(PluginStatus.TIMED_OUT, f"it took longer than its own limit of {limit_s} s"))

    def limit(self, seconds: float, ending: Ending) -> None:
        """Halt it after so long."""
        self._timers.append(asyncio.get_running_loop().call_later(seconds, self.halt, ending, self._seat.around.cancel_grace_s))

    def ending_of(self, word: LastWord, payload: bytes) -> Ending:
        """What the last word comes to."""
        self._seat.condition.worked()
        match word:
            case replies.Done():
                return Ending(PluginStatus.COMPLETED, self._seat.weakness)
            case replies.Failed(error=error):
                hit = self._seat.hit_by_traceback(payload)
                return Ending(PluginStatus.FAILED, shortened(last_line(payload) or error), payload, hit)
            case replies.Canceled():
                return self._halted or Ending(PluginStatus.FAILED, "it says that it was canceled, which nobody asked for")

    def halt(self, ending: Ending, grace_s: float) -> None:
        """Ask the plugin to end, and make it end after the grace period. A second call does nothing, nor does one after the end."""
        if self._halted is not None or self._scope is None:
            return
        self._halted = ending
        if self._order is None:
            self.cut()
            return
        self.cancel(self._order)
        self._timers.append(asyncio.get_running_loop().call_later(grace_s, self.cut))

    def cancel(self, number: int) -> None:
        """Tell the process that the order, or one run of it, is not wanted any more."""
        if self._order is None or self._scope is None or self._seat.process is None:
            return
        try:
            self._seat.process.send({"kind": "cancel", "run": number})
        except ConfinedProcessError:
            self.cut()

    def cut(self) -> None:
        """Kill, and make `work` return."""
        if self._scope is None:
            return
        if self._seat.process is not None:
            self._seat.process.destroy()
        if not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def _broken(self, error: Exception) -> Ending:
        output = self._seat.take_output()
        await self._seat.kill()
        if self._halted is not None:
            return self._halted
        self.is_broken = not isinstance(error, BadResult | GivenUp)
        reason = str(error)
        if self.is_broken:
            self._seat.condition.crashed(reason)
        if isinstance(error, ProcessEnded | NotBegun):
            hit = self._seat.hit_by_end(reason, output)
            reason += f", probably at its {hit}" if hit else ""
        return Ending(PluginStatus.FAILED, shortened(reason), output)

    def _over(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._scope = None
        self._seat.end_turn()
