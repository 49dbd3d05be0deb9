"""The store, the quarantine and the results, as attempts have them."""

from __future__ import annotations

from dataclasses import dataclass

from malbox_tui.engine.store_health import StoreHealth
from malbox_tui.ports import Quarantine, ResultStore, Store


@dataclass(frozen=True, slots=True)
class Stores:
    """Where an attempt reads its sample from and leaves what it came to."""

    store: Store
    quarantine: Quarantine
    results: ResultStore
    health: StoreHealth
