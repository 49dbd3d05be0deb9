"""Signals during an analysis: the first one gives the tasks back, the second is patient, the third ends the process at once.

Handlers run on the main thread between two steps of whatever it does, so they print with `os.write` only: a buffered stream may be in
the middle of a write.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

_STDERR = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_MESSAGES = {
    1: b"\nStopping: running attempts are given back.\n",
    2: b"\nStill giving attempts back; once more ends at once.\n",
    3: b"\nEnding at once. The next start recovers what was running.\n",
}


class Interruption:
    """While entered, SIGINT, SIGTERM and SIGHUP come here; what they meant before comes back at the end.

    An ignored SIGHUP (nohup) stays ignored.
    """

    def __init__(self) -> None:
        self.signals = 0
        """How many came."""
        self._on_first: list[Callable[[], None]] = []
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
        self._on_first.clear()

    def on_first(self, action: Callable[[], None]) -> None:
        """Do `action` in the handler of the first signal; at once if there was one already."""
        self._on_first.append(action)
        if self.signals:
            action()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        with suppress(OSError):
            os.write(_STDERR, _MESSAGES[min(self.signals, 3)])
        if self.signals == 1:
            for action in self._on_first:
                action()
        elif self.signals >= 3:
            os._exit(1)
