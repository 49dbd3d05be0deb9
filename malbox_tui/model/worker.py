"""Workers as the outside sees them."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class WorkerKind(StrEnum):
    """Baseline workers never idle out; demand workers leave after the idle timeout."""

    BASELINE = "baseline"
    DEMAND = "demand"


class WorkerState(StrEnum):
    """What a worker does at the moment. `leaving` finishes what it holds and takes nothing more."""

    IDLE = "idle"
    BUSY = "busy"
    LEAVING = "leaving"


class StopReason(StrEnum):
    """Why a worker left."""

    REQUESTED = "requested"
    IDLE = "idle"
    SURPLUS = "surplus"
    ERROR = "error"


class WorkerView(msgspec.Struct, frozen=True):
    """One worker at one moment. `since` is when it entered its state; `task_id` is None while it is idle."""

    id: str
    group: str
    kind: WorkerKind
    state: WorkerState
    since: float
    started_at: float
    task_id: int | None = None
    tasks_done: int = 0
