"""How much a server takes from those who ask: so many at once, so large, so slow, and no more."""

from __future__ import annotations

from dataclasses import dataclass

from malbox_tui.remote.protocol import BEAT_S

MAX_TASK_IDS = 10_000
"""A command or a filter names so many tasks at most."""
MAX_MACHINES = 1000
"""A command names so many machines at most."""
MAX_TEXT_CHARS = 200
"""So long a header or a key of someone who asks may be; of a longer header the rest is ignored."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`connections` is how many there may be at once; `told` more are answered that there are too many, and further ones are cut.

    A request has `header_s` to name itself, and a JSON body `body_s` to come. Of an upload, `least_bytes` have to come in each
    `stall_s` that it is waited for. Who takes nothing of an answer for `stall_s` is cut; so is, after `idle_s`, a connection on which
    nothing is asked. `lines` is how many lines of the event stream are kept for readers that are behind, `line_bytes` how large they
    may be together.
    """

    connections: int = 256
    told: int = 32
    header_bytes: int = 64 * 1024
    header_s: float = 10.0
    body_s: float = 30.0
    stall_s: float = 30.0
    least_bytes: int = 4096
    idle_s: int = 75
    beat_s: float = BEAT_S
    lines: int = 8192
    line_bytes: int = 16 * 1024 * 1024
