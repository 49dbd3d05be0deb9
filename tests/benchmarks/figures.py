"""One measured figure, and how figures are printed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of `runs` measurements of `name`. `aim` is what the project wants it to be, in words; empty: nothing in particular."""

    name: str
    value: float
    unit: str
    runs: int
    aim: str = ""

    def as_json(self) -> str:
        """One object a line."""
        return msgspec.json.encode({"name": self.name, "value": self.value, "unit": self.unit, "runs": self.runs}).decode()

    def as_line(self) -> str:
        """For a person."""
        value = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:,.1f}"
        of_runs = f"median of {self.runs}" if self.runs > 1 else ""
        return f"{self.name:<52} {value:>12} {self.unit:<10} {of_runs:<14} {self.aim}".rstrip()


def median(name: str, values: Sequence[float], unit: str, aim: str = "") -> Figure:
    """The figure of several measurements."""
    return Figure(name, statistics.median(values), unit, len(values), aim)
