"""Workers as the outside sees them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from malbox_tui.model.due import Due


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
    """One worker at one moment. `since` is when it entered its state; `task_ids` is empty while it is idle.

    `slots` is how many tasks it may hold at once. `note` says of an idle worker what it could take. `dues`: for each of `task_ids`
    the time limit that is reached next, None before its attempt began.
    """

    id: str
    group: str
    kind: WorkerKind
    state: WorkerState
    since: float
    started_at: float
    task_ids: tuple[int, ...] = ()
    slots: int = 1
    tasks_done: int = 0
    note: str = ""
    dues: tuple[Due | None, ...] = ()

    @property
    def task_id(self) -> int | None:
        """The task it has held longest; None while it is idle."""
        return self.task_ids[0] if self.task_ids else None
