"""The room that the disk is to have: below it nothing is taken in and no task begins, and what runs goes on. It resumes by itself.

It takes a tenth more than the floor to resume, so that a disk that is just there doesn't make it come and go.
"""

from __future__ import annotations

from collections.abc import Callable

from malbox_tui.engine import clock

LOOK_S = 5.0
"""How often the disk is looked at when nobody asks."""
RESUMES_AT = 1.1
"""How many times the floor has to be free before it resumes."""


class DiskFloor:
    """`free_bytes` must not block; None: not known, and there is no floor. `on_change` is called when it begins and when it ends."""

    def __init__(self, free_bytes: Callable[[], int | None], floor_bytes: int, on_change: Callable[[], None]) -> None:
        self._free_bytes = free_bytes
        self._floor_bytes = floor_bytes
        self._on_change = on_change
        self._free: int | None = None
        self._is_low = False

    @property
    def is_known(self) -> bool:
        """Whether it can be seen how much is free."""
        return self._free_bytes() is not None

    @property
    def floor_bytes(self) -> int:
        """The least room; 0: none is asked for."""
        return self._floor_bytes

    def reload(self, floor_bytes: int) -> None:
        """From now on this is the least."""
        self._floor_bytes = floor_bytes
        self.look()

    def look(self) -> str:
        """Look at the disk now: why nothing is taken in, a sentence; empty: there is room."""
        self._free = self._free_bytes()
        needed = self._floor_bytes * (RESUMES_AT if self._is_low else 1)
        was_low, self._is_low = self._is_low, self._free is not None and self._free < needed
        if self._is_low is not was_low:
            self._on_change()
        return self.problem

    @property
    def problem(self) -> str:
        """What was seen last, as `look` says it."""
        if not self._is_low or self._free is None:
            return ""
        free, floor, enough = (_mebibytes(count) for count in (self._free, self._floor_bytes, self._floor_bytes * RESUMES_AT))
        return (
            f"Only {free} are free on the disk under the data, and {floor} are to be (retention.min_free_mb): nothing is taken in "
            f"and no task begins until {enough} are free. Free some space."
        )

    @property
    def reason(self) -> str:
        """Why tasks wait, in few words; empty: they don't wait for this."""
        return f"disk below {_mebibytes(self._floor_bytes)}" if self._is_low else ""

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            self.look()
            await clock.sleep(LOOK_S)


def _mebibytes(count: float) -> str:
    mebibytes = count / 1024**2
    return f"{mebibytes / 1024:.1f} GiB" if mebibytes >= 1024 else f"{mebibytes:.0f} MiB"
