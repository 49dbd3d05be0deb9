"""The clock of one attempt: how long each of its stages and the whole of it may take, and which limit was reached.

A limit that is reached cancels the attempt's token; what follows from it is decided where the outcome is. The clock stands while the
attempt waits for what is not its own doing: room on a full disk, its turn in a batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.model.due import Due, TimeLimit


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that an attempt reached, and how many seconds it allowed."""

    limit: TimeLimit
    seconds: float


class AttemptTime:
    """Made when the attempt begins; `end` when it ends. `token` is cancelled with the parent, and when a limit is reached."""

    def __init__(self, parent: CancelToken, critical_s: float) -> None:
        self.token = parent.child()
        self.reached: Reached | None = None
        self._critical = _Countdown(TimeLimit.CRITICAL, critical_s, self._reach)
        self._stage: _Countdown | None = None
        self._stands = False
        self._critical.go()

    @property
    def stands(self) -> bool:
        """The clock doesn't run at the moment."""
        return self._stands

    @contextmanager
    def stage(self, limit: TimeLimit, seconds: float) -> Iterator[None]:
        """The body is one stage, which may take so long. Stages follow each other; one is never inside another."""
        self._stage = _Countdown(limit, seconds, self._reach)
        if not self._stands:
            self._stage.go()
        try:
            yield
        finally:
            self._stage.stand()
            self._stage = None

    def stand(self) -> None:
        """Let the clock stand until `go`."""
        self._stands = True
        for countdown in self._countdowns():
            countdown.stand()

    def go(self) -> None:
        """Let the clock run on."""
        self._stands = False
        for countdown in self._countdowns():
            countdown.go()

    def end(self) -> None:
        """No limit is reached any more."""
        self.stand()

    def due(self, now: float) -> Due:
        """The limit that is reached next; `now` is the wall time."""
        nearest = min(self._countdowns(), key=lambda countdown: countdown.left_s)
        return Due(nearest.limit, now + nearest.left_s, nearest.seconds, self._stands)

    def _countdowns(self) -> list[_Countdown]:
        return [self._critical] if self._stage is None else [self._stage, self._critical]

    def _reach(self, countdown: _Countdown) -> None:
        if self.reached is None and self.token.cancel(CancelReason.TIMEOUT):
            self.reached = Reached(countdown.limit, countdown.seconds)


class _Countdown:
    """So many seconds of a clock that may stand."""

    def __init__(self, limit: TimeLimit, seconds: float, on_end: Callable[[_Countdown], None]) -> None:
        self.limit = limit
        self.seconds = seconds
        self._on_end = on_end
        self._left_s = seconds
        self._runs_since: float | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def left_s(self) -> float:
        """Never below 0."""
        gone = 0.0 if self._runs_since is None else clock.monotonic() - self._runs_since
        return max(0.0, self._left_s - gone)

    def go(self) -> None:
        if self._runs_since is None:
            self._runs_since = clock.monotonic()
            self._alarm = clock.alarm(self._left_s, self._ring)

    def stand(self) -> None:
        self._left_s = self.left_s
        self._runs_since = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        self._on_end(self)
