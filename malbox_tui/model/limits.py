"""What the host plugins of a worker group may use."""

from __future__ import annotations

import msgspec


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """None: as much as any plugin may use.

    `memory_mb` and `disk_mb` (its private files) bound each plugin with all processes that it starts. `cpu_cores` bounds the plugins of
    one task together. `network_kbps` 0 is no network. With `best_effort`, what the host can't enforce is left out; without, it is an
    error.
    """

    memory_mb: int | None = None
    cpu_cores: float | None = None
    disk_mb: int | None = None
    network_kbps: int | None = None
    best_effort: bool = False


UNLIMITED = ResourceLimits()
