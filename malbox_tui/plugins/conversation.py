"""What a plugin's process says about one task, from the order to run until its last word: taken in, bounded, and passed on."""

from __future__ import annotations

from collections.abc import Callable

from malbox_tui.confine.endings import BrokenWire, ProcessEnded
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.model.events import EventBody, PluginProgress, PluginResultAvailable
from malbox_tui.plugins import replies
from malbox_tui.plugins.ending import NotBegun
from malbox_tui.plugins.replies import REPLIES, BadResult, shortened
from malbox_tui.plugins.tray import ResultTray
from malbox_tui.ports import PluginJob

MAX_SMALL_REPLIES = 20_000
"""Progress, warnings and events of one run."""

MAX_STALE_REPLIES = 1000

LastWord = replies.Done | replies.Failed | replies.Canceled


class Conversation:
    """The run `run` of `plugin` on `job`. Results go to `tray`, news to `tell`, at most `max_warnings` to `warnings`."""

    def __init__(
        self, job: PluginJob, plugin: str, run: int, tray: ResultTray, tell: Callable[[EventBody], None], max_warnings: int
    ) -> None:
        self.warnings: list[str] = []
        self._job = job
        self._plugin = plugin
        self._run = run
        self._tray = tray
        self._tell = tell
        self._max_warnings = max_warnings
        self._begun = False
        self._stale_replies = 0
        self._small_replies = 0

    async def last_word(self, process: ConfinedProcess) -> tuple[LastWord, bytes]:
        """How the process says that the run ended, with the payload of that.

        Raises `NotBegun`, `BadResult`, `ConfinedProcessError`, and what the result store raises.
        """
        while True:
            try:
                reply, payload = await process.receive(REPLIES)
            except ProcessEnded as exc:
                if self._begun:
                    raise
                raise NotBegun(str(exc)) from exc
            if not isinstance(reply, replies.RunReply) or reply.run != self._run:
                self._stale()
                continue
            self._begun = True
            match reply:
                case replies.Done() if self._tray.unfinished is not None:
                    raise BadResult(f"it ended before its result {self._tray.unfinished} was whole")
                case replies.Done() | replies.Failed() | replies.Canceled():
                    return reply, payload
                case _:
                    self._take(reply, payload)

    def _take(self, reply: replies.RunReply, payload: bytes) -> None:
        match reply:
            case replies.Begun():
                return
            case replies.ResultBegin(name=name, format=format):
                self._tray.begin(name, format)
            case replies.ResultChunk():
                self._tray.chunk(payload)
            case replies.ResultEnd():
                name = self._tray.end()
                self._tell(PluginResultAvailable(task_id=self._job.task_id, plugin=self._plugin, result_name=name))
            case _:
                self._take_small(reply)

    def _take_small(self, reply: replies.RunReply) -> None:
        self._small_replies += 1
        if self._small_replies > MAX_SMALL_REPLIES:
            raise BrokenWire(f"the process sent more than {MAX_SMALL_REPLIES} progress reports, warnings and events")
        if isinstance(reply, replies.Progress):
            message = shortened(reply.message, 200)
            self._tell(PluginProgress(task_id=self._job.task_id, plugin=self._plugin, fraction=reply.fraction, message=message))
        if isinstance(reply, replies.Warned) and len(self.warnings) < self._max_warnings:
            self.warnings.append(reply.message)

    def _stale(self) -> None:
        self._stale_replies += 1
        if self._stale_replies > MAX_STALE_REPLIES:
            raise BrokenWire("the process goes on about tasks that are over")
