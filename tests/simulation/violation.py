"""What ends a simulated run that went wrong."""

from __future__ import annotations


class Violation(AssertionError):
    """An invariant doesn't hold. `invariant` is its sentence, `facts` what was seen instead."""

    def __init__(self, invariant: str, facts: str) -> None:
        self.invariant = invariant
        self.facts = facts
        super().__init__(f"{invariant}: {facts}")
