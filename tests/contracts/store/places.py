"""Where the stores of the contract keep their things."""

from __future__ import annotations

import asyncio
from pathlib import Path

from malbox_tui.ports import Store
from malbox_tui.simulated.store import FaultyStore
from malbox_tui.simulated.world import World
from malbox_tui.store.memory import MemoryStore
from tests.store.builders import NOON, sqlite_store


class Place:
    """Where a store keeps its things: `store()` gives an object over the same things each time."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind = kind
        self._folder = folder
        self._memory = MemoryStore()

    def store(self) -> Store:
        if self._kind == "faulty":
            return FaultyStore(self._memory, World(1, asyncio.sleep), FixedClock())  # noqa: TID251 - nothing is slow
        return self._memory if self._kind == "memory" else sqlite_store(self._folder / "store.sqlite")


class FixedClock:
    """It is noon."""

    def now(self) -> float:
        return NOON
