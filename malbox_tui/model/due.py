"""Time limits of an attempt, and when the next one of them is reached."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class TimeLimit(StrEnum):
    """What bounds an attempt in time: its plugins together, the whole of it, and each of its other stages. `ending`: what still runs
    for it was asked to end, and is killed when that is over."""

    ANALYSIS = "analysis"
    CRITICAL = "critical"
    INITIALIZING = "initializing"
    PREPARING = "preparing"
    STOPPING = "stopping"
    ENDING = "ending"


class Due(msgspec.Struct, frozen=True):
    """The limit that is reached next: when (seconds since the epoch) if nothing happens before, and how many seconds it allows in all.

    `stands`: the clock of the attempt stands while it waits for something that is not its own doing (a full disk, its turn in a
    batch); `at` then moves on with the time.
    """

    limit: TimeLimit
    at: float
    seconds: float
    stands: bool = False
