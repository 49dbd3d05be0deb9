"""Signals during an analysis. SIGTERM lets running tasks finish; a second one, Ctrl+C and a hangup give them back; one more is
patient, and the next ends the process at once.

Handlers run on the main thread between two steps of whatever it does, so they print with `os.write` only: a buffered stream may be in
the middle of a write.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from types import FrameType, TracebackType
from typing import Any

_STDERR = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stage(IntEnum):
    """How far the end has come; each signal leads at least one further."""

    NONE = 0
    DRAINING = 1
    GIVING_BACK = 2
    PATIENT = 3
    ENDING = 4


_MESSAGES = {
    Stage.DRAINING: b"\nStopping: no task is taken any more, running ones finish. Once more gives them back.\n",
    Stage.GIVING_BACK: b"\nStopping: running attempts are given back.\n",
    Stage.PATIENT: b"\nStill giving attempts back; once more ends at once.\n",
    Stage.ENDING: b"\nEnding at once. The next start recovers what was running.\n",
}


class Interruption:
    """While entered, SIGINT, SIGTERM and SIGHUP come here; what they meant before comes back at the end.

    An ignored SIGHUP (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self.stage = Stage.NONE
        self._on: dict[Stage, list[Callable[[], None]]] = {Stage.DRAINING: [], Stage.GIVING_BACK: []}
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        for number in _SIGNALS:
            former = signal.getsignal(number)
            if number is signal.SIGHUP and former == signal.SIG_IGN:
                continue
            self._former[number] = former
            signal.signal(number, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)
        for actions in self._on.values():
            actions.clear()

    @property
    def came(self) -> bool:
        """Whether a signal asked for an end."""
        return self.stage is not Stage.NONE

    def on(self, stage: Stage, action: Callable[[], None]) -> None:
        """Do `action` in the signal handler when the end comes to `stage`; at once if it is there already, or further.

        Only draining and giving back can be acted on; who is told to give back may have been told to drain before.
        """
        self._on[stage].append(action)
        if (stage is Stage.GIVING_BACK and self.stage >= stage) or stage is self.stage:
            action()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.stage is Stage.NONE:
            self.stage = Stage.DRAINING if number == signal.SIGTERM else Stage.GIVING_BACK
        else:
            self.stage = Stage(min(self.stage + 1, Stage.ENDING))
        with suppress(OSError):
            os.write(_STDERR, _MESSAGES[self.stage])
        for action in self._on.get(self.stage, ()):
            action()
        if self.stage is Stage.ENDING:
            os._exit(1)
