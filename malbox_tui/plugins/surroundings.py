"""What all plugins of a runner share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from malbox_tui.config.settings import PluginSettings
from malbox_tui.confine.work import Walls
from malbox_tui.model.events import EventBody
from malbox_tui.ports import ResultStore


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`on_news` is told of starts, ends and results of plugins, on the loop's thread."""

    walls: Walls
    settings: PluginSettings
    cancel_grace_s: float
    flush_grace_s: float
    results: ResultStore
    on_news: Callable[[EventBody], None]

    def grace_s(self, stop_reason: str) -> float:
        """How long a plugin may go on after a stop: longer when its time is over, for then what it has is wanted."""
        return self.flush_grace_s if stop_reason == "timeout" else self.cancel_grace_s
