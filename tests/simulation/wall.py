"""The wall clock of a run, which outlives its engines and their loops."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.loop import SimulatedLoop


@dataclass(slots=True)
class Wall:
    """The wall clock: that of the loop, and whatever it was moved by."""

    loop_time: float = 0.0
    moved: float = 1_700_000_000.0
    loop: SimulatedLoop | None = None
    lease_s: float = 0.0

    def now(self) -> float:
        return self.moved + self.moment()

    def moment(self) -> float:
        """The loop's time."""
        return self.loop_time if self.loop is None else self.loop.time()

    def jump(self, seconds: float) -> None:
        self.moved += seconds
