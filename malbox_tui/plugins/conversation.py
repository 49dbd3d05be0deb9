"""What a plugin's process says about an order, from the order to its last word: taken in, bounded, and passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from malbox_tui.confine.endings import BrokenWire, ConfinedProcessError, ProcessEnded
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.events import PluginProgress
from malbox_tui.plugins import replies
from malbox_tui.plugins.ending import NotBegun
from malbox_tui.plugins.replies import REPLIES, BadResult, shortened
from malbox_tui.plugins.surroundings import Surroundings
from malbox_tui.plugins.tray import ResultTray
from malbox_tui.ports import PluginJob

MAX_SMALL_REPLIES = 20_000
"""Progress, warnings and events of one run."""

PROGRESS_INTERVAL_S = 0.05
"""Progress that follows sooner is not passed on."""

MAX_STALE_REPLIES = 1000

LastWord = replies.Done | replies.Failed | replies.Canceled


class Hearing:
    """What is said about the run of `plugin` on `job`: results go to `tray`, progress is passed on, warnings are collected."""

    def __init__(self, around: Surroundings, job: PluginJob, plugin: str, tray: ResultTray) -> None:
        self.warnings: list[str] = []
        self.is_open = True
        """Whether anything that is said is still wanted."""
        self._job = job
        self._plugin = plugin
        self._tray = tray
        self._around = around
        self._small_replies = 0
        self._next_progress_at = 0.0

    def take(self, reply: replies.RunReply, payload: bytes) -> None:
        """Raises `BadResult`, `BrokenWire`, and what the result store raises."""
        if not self.is_open:
            return
        match reply:
            case replies.Begun():
                return
            case replies.ResultBegin(name=name, format=format):
                self._tray.begin(name, format)
            case replies.ResultChunk():
                self._tray.chunk(payload)
            case replies.ResultEnd():
                self._tray.end()
            case replies.Done() if self._tray.unfinished is not None:
                raise BadResult(f"it ended before its result {self._tray.unfinished} was whole")
            case replies.Done() | replies.Failed() | replies.Canceled():
                self.is_open = False
            case _:
                self._take_small(reply)

    def _take_small(self, reply: replies.RunReply) -> None:
        self._small_replies += 1
        if self._small_replies > MAX_SMALL_REPLIES:
            raise BrokenWire(f"the process sent more than {MAX_SMALL_REPLIES} progress reports, warnings and events")
        if isinstance(reply, replies.Progress):
            self._tell_progress(reply)
        if isinstance(reply, replies.Emitted):
            self._around.on_event(self._plugin, reply)
        if isinstance(reply, replies.Warned) and len(self.warnings) < self._around.settings.max_results:
            self.warnings.append(reply.message)

    def _tell_progress(self, reply: replies.Progress) -> None:
        """As often as a person can read, the last one whatever comes before."""
        now = asyncio.get_running_loop().time()
        if now < self._next_progress_at and reply.fraction < 1.0:
            return
        self._next_progress_at = now + PROGRESS_INTERVAL_S
        message = shortened(reply.message, 200)
        self._around.on_news(
            PluginProgress(task_id=self._job.task_id, plugin=self._plugin, fraction=reply.fraction, message=message)
        )


class Conversation:
    """About the order `order`, which is that of a single run, or of a batch of `runs` with other numbers.

    `on_lost` is told of a run whose results can't be kept, with the result store's error; what it raises ends the conversation.
    """

    def __init__(self, order: int, runs: Mapping[int, Hearing], on_lost: Callable[[int, MalboxError], None]) -> None:
        self._order = order
        self._runs = runs
        self._on_lost = on_lost
        self._begun = False
        self._stale_replies = 0

    async def last_word(self, process: ConfinedProcess) -> tuple[LastWord, bytes]:
        """How the process says that the order ended, with the payload of that.

        Raises `NotBegun`, `BadResult`, `ConfinedProcessError`, and what `on_lost` raises.
        """
        while True:
            reply, payload = await self._next(process)
            if reply.run in self._runs:
                self._hear(reply, payload)
            if reply.run == self._order and isinstance(reply, replies.Done | replies.Failed | replies.Canceled):
                if isinstance(reply, replies.Done) and any(run.is_open for run in self._runs.values()):
                    raise BrokenWire("the process ended a batch without a last word on each of its tasks")
                return reply, payload

    async def _next(self, process: ConfinedProcess) -> tuple[replies.RunReply, bytes]:
        while True:
            try:
                reply, payload = await process.receive(REPLIES)
            except ProcessEnded as exc:
                if self._begun:
                    raise
                raise NotBegun(str(exc)) from exc
            if isinstance(reply, replies.RunReply) and (reply.run == self._order or reply.run in self._runs):
                self._begun = True
                return reply, payload
            self._stale()

    def _hear(self, reply: replies.RunReply, payload: bytes) -> None:
        if reply.run != self._order and isinstance(reply, replies.Failed):
            raise BrokenWire("the process said of one task of a batch that it failed")
        try:
            self._runs[reply.run].take(reply, payload)
        except ConfinedProcessError:
            raise
        except MalboxError as error:
            self._on_lost(reply.run, error)

    def _stale(self) -> None:
        self._stale_replies += 1
        if self._stale_replies > MAX_STALE_REPLIES:
            raise BrokenWire("the process goes on about tasks that are over")
