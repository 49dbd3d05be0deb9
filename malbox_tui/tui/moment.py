"""What all cells depend on besides the thing they show."""

from __future__ import annotations

from dataclasses import dataclass

from malbox_tui.tui.glyphs import tone


@dataclass(frozen=True, slots=True)
class Moment:
    """What cells depend on besides the thing itself: the engine's time, and the theme."""

    now: float
    dark: bool = True

    def tone(self, name: str) -> str:
        """The colour of a tone in this theme."""
        return tone(name, dark=self.dark)
