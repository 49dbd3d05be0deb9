"""How much is kept of a run in a guest, which may make any amount."""

from __future__ import annotations

from dataclasses import dataclass

from malbox_tui.config.machines import MachinerySettings

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class GuestBounds:
    """Of one run: how many of the files that were dropped or changed; how much of each and of all of them, of its network traffic and
    of its memory, in bytes."""

    files: int
    file_bytes: int
    all_files_bytes: int
    traffic_bytes: int
    memory_bytes: int


def bounds_of(settings: MachinerySettings) -> GuestBounds:
    """As they are configured."""
    return GuestBounds(
        files=settings.max_dropped_files,
        file_bytes=settings.max_dropped_file_mb * _MIB,
        all_files_bytes=settings.max_dropped_mb * _MIB,
        traffic_bytes=settings.max_traffic_mb * _MIB,
        memory_bytes=settings.max_memory_mb * _MIB,
    )
