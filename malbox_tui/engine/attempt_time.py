"""The clock of one attempt: how long each of its stages and the whole of it may take, and which limit was reached.

A limit that is reached cancels the attempt's token; what follows from it is decided where the outcome is. The clock stands while the
attempt waits for what is not its own doing: room on a full disk, its turn in a batch.
"""

from __future__ import annotations

import asyncio
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
    """Made when the attempt begins; `end` when it ends. `token` is cancelled with the parent, and when a limit is reached.

    There is one alarm for all limits. It is moved only when a limit comes nearer than it; one that rings early is set anew. `graces` is
    what is left to plugins once the token is cancelled: after a limit was reached, and for any other reason.
    """

    __slots__ = (
        "_alarm",
        "_clock_s",
        "_critical_s",
        "_ended",
        "_ends_at",
        "_grace_s",
        "_graces",
        "_runs_since",
        "_stage",
        "_stage_s",
        "_stage_until",
        "_stop_listening",
        "reached",
        "token",
    )

    def __init__(self, parent: CancelToken, critical_s: float, graces: tuple[float, float] = (0.0, 0.0)) -> None:
        self.token = parent.child()
        self._graces = graces
        self._grace_s = 0.0
        self._ends_at: float | None = None
        """On the loop's clock, when what still runs is killed."""
        self.reached: Reached | None = None
        self._critical_s = critical_s
        self._stage = TimeLimit.CRITICAL
        self._stage_s = critical_s
        self._stage_until = critical_s
        """What the clock shows when the stage is over."""
        self._clock_s = 0.0
        """What it showed when it last stood."""
        self._runs_since: float | None = clock.monotonic()
        self._alarm: asyncio.TimerHandle | None = None
        self._ended = False
        self._stop_listening = self.token.listen(self._on_cancel)

    @property
    def stands(self) -> bool:
        """The clock doesn't run at the moment."""
        return self._runs_since is None

    def enter(self, stage: TimeLimit, seconds: float) -> None:
        """Begin a stage, which may take so long; the one before is over. In the last one no limit is left that ends the attempt."""
        self._stage, self._stage_s = stage, seconds
        self._stage_until = self._shows() + seconds
        if stage is TimeLimit.STOPPING:
            self.end()
        else:
            self._set_alarm()

    def stand(self) -> None:
        """Let the clock stand until `go`."""
        self._clock_s, self._runs_since = self._shows(), None

    def go(self) -> None:
        """Let the clock run on."""
        if self._runs_since is None:
            self._runs_since = clock.monotonic()
            self._set_alarm()

    def end(self) -> None:
        """No limit is reached any more."""
        self._ended = True
        self._stop_listening()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def due(self, now: float) -> Due:
        """The limit that is reached next; `now` is the wall time."""
        if self._ends_at is not None and self._stage is not TimeLimit.STOPPING:
            return Due(TimeLimit.ENDING, now + max(0.0, self._ends_at - clock.monotonic()), self._grace_s)
        limit, seconds, left_s = self._next()
        return Due(limit, now + max(0.0, left_s), seconds, self.stands)

    def _on_cancel(self, reason: CancelReason) -> None:
        flush_s, cancel_s = self._graces
        self._grace_s = flush_s if reason is CancelReason.TIMEOUT else cancel_s
        self._ends_at = clock.monotonic() + self._grace_s

    def _shows(self) -> float:
        return self._clock_s if self._runs_since is None else self._clock_s + clock.monotonic() - self._runs_since

    def _next(self) -> tuple[TimeLimit, float, float]:
        """The nearest limit, how many seconds it allows, and how many of them are left."""
        shows = self._shows()
        if self._stage_until <= self._critical_s:
            return self._stage, self._stage_s, self._stage_until - shows
        return TimeLimit.CRITICAL, self._critical_s, self._critical_s - shows

    def _set_alarm(self) -> None:
        if self._runs_since is None or self._ended:
            return
        left_s = max(0.0, self._next()[2])
        if self._alarm is not None:
            if self._alarm.when() <= clock.monotonic() + left_s:
                return
            self._alarm.cancel()
        self._alarm = clock.alarm(left_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        limit, seconds, left_s = self._next()
        if self._runs_since is not None and left_s <= clock.RESOLUTION_S:
            if self.token.cancel(CancelReason.TIMEOUT):
                self.reached = Reached(limit, seconds)
        else:
            self._set_alarm()
