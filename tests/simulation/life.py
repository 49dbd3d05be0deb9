"""One engine of a run, while it lives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from malbox_tui.engine.engine import Engine
from tests.simulation.facts import Facts
from tests.simulation.operating import Operator
from tests.simulation.view import View


@dataclass(slots=True)
class Life:
    """An engine, how it is looked into, who operates it, and what was seen of it so far. Times are the loop's."""

    engine: Engine
    view: View
    facts: Facts
    operator: Operator
    born_at: float
    most_reverting: int
    max_crashes: int
    ready: bool = False
    stop_asked_at: float | None = None
    delays: int = 0
    delayed_at: float = -math.inf
    """When something was slow or failed that an attempt has to wait for."""
    heard: list[int] = field(default_factory=list)
    """The numbers of the durable events that a reader got."""
