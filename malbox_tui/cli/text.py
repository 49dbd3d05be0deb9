"""Values as words for one line of a terminal or one field of a record. Nothing foreign leaves here unescaped."""

from __future__ import annotations

from collections.abc import Mapping

from malbox_tui.reports.words import sentence as sentence
from malbox_tui.reports.words import timestamp as timestamp


def size(size_bytes: int) -> str:
    """A size in at most eight characters: `17 B`, `1.4 KiB`, `512 MiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 999.5:
            return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"
    return f"{value / 1024:.1f} PiB"


def duration(seconds: float) -> str:
    """A length of time: `0.34 s`, `12 s`, `4 min 05 s`, `2 h 03 min`."""
    if seconds < 9.995:
        return f"{max(seconds, 0.0):.2f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def tallied(counts: Mapping[str, int]) -> str:
    """`3 completed, 1 failed`: what there is none of is left out."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count)
