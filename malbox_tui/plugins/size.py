"""How much memory the processes of a plugin have, so that one that leaks is replaced between tasks and not killed in one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from malbox_tui.confine.work import Limits

_MIB = 1024 * 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

FULL = 0.85
"""Of the limit: what is left is for the task to come."""
GROWN = 0.25
"""Of the limit: a plugin that is large from its start on is not replaced for that."""


@dataclass(frozen=True, slots=True)
class Size:
    """`address_mb`: the address space of the largest process; `resident_mb`: the memory of all."""

    address_mb: float = 0.0
    resident_mb: float = 0.0

    def is_near(self, limits: Limits, when_ready: Size) -> bool:
        """Whether it has grown near to a limit since it was `when_ready`."""
        pairs = (
            (self.address_mb, when_ready.address_mb, limits.address_space_mb),
            (self.resident_mb, when_ready.resident_mb, limits.memory_mb),
        )
        return any(now >= FULL * limit and now - then >= GROWN * limit for now, then, limit in pairs)


def size_of(pids: Iterable[int]) -> Size:
    """That of these processes; one that has ended has none."""
    address, resident = 0, 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            pages = Path(f"/proc/{pid}/statm").read_text().split()
            address = max(address, int(pages[0]))
            resident += int(pages[1])
    return Size(address * _PAGE_BYTES / _MIB, resident * _PAGE_BYTES / _MIB)
