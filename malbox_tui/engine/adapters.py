"""What an engine works with: the other side of each of its boundaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from malbox_tui.ports import (
    ActionBook,
    Clock,
    GuestPlugin,
    IntakeBook,
    LimitsStore,
    MachineBook,
    Machinery,
    MarkBook,
    PauseBook,
    PluginRunner,
    Quarantine,
    ResultStore,
    Stockroom,
    Store,
    UpkeepBook,
)


@dataclass(frozen=True, slots=True)
class Adapters:
    """What the engine works with. It opens and closes all of them."""

    store: Store
    quarantine: Quarantine
    results: ResultStore
    runner: PluginRunner
    wall: Clock
    machinery: Machinery = field(default_factory=Machinery)
    limits: LimitsStore | None = None
    """Where changed limits of worker groups are kept; None: they can't be."""
    book: MachineBook | None = None
    """Where machines that were added, changed or removed are kept; None: they are for this run only."""
    marks: MarkBook | None = None
    """Where the marks in guests are kept for the next start; None: nowhere, and its first reverts are not proven."""
    pauses: PauseBook | None = None
    """Where a pause is kept for the next start; None: nowhere, and that one takes tasks."""
    actions: ActionBook | None = None
    """The log of actions, which the store keeps; None: it can't be read."""
    intakes: IntakeBook | None = None
    """The accounts of intakes, which the store keeps; None: they are not kept."""
    owner: str = "operator"
    """Who runs the engine: who acts where nobody is named."""
    upkeep: UpkeepBook | None = None
    """What the store has for its upkeep; None, here or of the stockroom: nothing is removed or given out."""
    stockroom: Stockroom | None = None
    """What gives samples out, and counts."""
    free_bytes: Callable[[], int | None] = lambda: None
    """The room on the disk under the data folder; None: not known. Must not block."""
    guest_plugins: Sequence[GuestPlugin] = ()
    """Programs that run in guests beside samples."""
