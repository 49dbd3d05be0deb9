"""The engine at one moment: what a screen or a status line is drawn from."""

from __future__ import annotations

import msgspec

from malbox_tui.model.events import Position
from malbox_tui.model.task import TaskState
from malbox_tui.model.worker import WorkerView


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker group: its limits, and how many of its workers are active and busy."""

    name: str
    min_workers: int
    max_workers: int
    active: int
    busy: int
    idle_timeout_s: float


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is small: counts, groups, workers. `clock` is the engine's time; `position` the last event it includes.

    `ended_per_minute` counts the tasks that ended in each of the latest minutes, the current one last. `free_bytes` is the room left
    on the disk under the data folder; None: not known.
    """

    clock: float
    position: Position
    counts: dict[TaskState, int]
    groups: tuple[GroupView, ...]
    workers: tuple[WorkerView, ...]
    paused: str | None = None
    stopping: str | None = None
    isolation: str = ""
    ended_per_minute: tuple[int, ...] = ()
    free_bytes: int | None = None
