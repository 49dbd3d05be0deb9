"""One measured figure, and how figures are printed: for a person as a line, for a program as one JSON object a line."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Beside whom a figure stands. `ratio` is ours to the peer's, above 1 is better for us, whichever way the unit counts; None when
    the peer could not be measured. `embedded`: the peer needs no server.
    """

    peer: str
    embedded: bool
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of `runs` measurements of `name`; None, and no runs, for one that could not be measured, for the reason `missing`.

    `aim` is what the project wants it to be, in words; empty: nothing in particular. `tasks` is how many tasks each run took,
    `pending` how many others stood in the queue meanwhile, None where that says nothing.
    """

    name: str
    value: float | None
    unit: str
    runs: int
    aim: str = ""
    compared: Comparison | None = None
    tasks: int | None = None
    pending: int | None = None
    missing: str = ""

    def as_json(self) -> str:
        """One object a line."""
        row: dict[str, object] = {"name": self.name, "value": self.value, "unit": self.unit, "runs": self.runs}
        if self.compared is not None:
            row |= {"peer": self.compared.peer, "ratio": self.compared.ratio, "embedded": self.compared.embedded}
        optional = {"tasks": self.tasks, "pending": self.pending, "missing": self.missing or None}
        row |= {key: value for key, value in optional.items() if value is not None}
        return msgspec.json.encode(row).decode()

    def as_line(self) -> str:
        """For a person."""
        of_peer = "" if self.compared is None else f", {self.compared.peer}"
        among = "" if self.pending is None else f", {self.pending:,} pending"
        notes = [f"median of {self.runs}" if self.runs > 1 else "", self._ratio_in_words(), self.missing, self.aim]
        return f"{self.name + of_peer + among:<60} {_rounded(self.value):>12} {self.unit:<8} {'  '.join(filter(None, notes))}".rstrip()

    def _ratio_in_words(self) -> str:
        if self.compared is None or self.compared.ratio is None:
            return ""
        return f"{'embedded' if self.compared.embedded else 'with a server'}, ours to it {self.compared.ratio:.2f}"


def median(
    name: str,
    values: Sequence[float],
    unit: str,
    aim: str = "",
    *,
    compared: Comparison | None = None,
    tasks: int | None = None,
    pending: int | None = None,
) -> Figure:
    """The figure of several measurements."""
    return Figure(name, statistics.median(values), unit, len(values), aim, compared, tasks, pending)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that is at least as large as `share` (0 to 1) of them."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(share * len(ranked)))]


def _rounded(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
