"""Time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        ...
