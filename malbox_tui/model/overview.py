"""The engine at one moment: what a screen or a status line is drawn from."""

from __future__ import annotations

import msgspec

from malbox_tui.model.events import Position
from malbox_tui.model.machine import MachineView
from malbox_tui.model.task import TaskState
from malbox_tui.model.upkeep import Freed, StoreFigures
from malbox_tui.model.watching import WatchView
from malbox_tui.model.worker import WorkerView


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker group: its limits, and how many of its workers are active and busy.

    `slots` is how many tasks one of its workers may hold at once, each by itself, `batch_size` how many it runs together (1: none);
    `takes` says in words which tasks it takes, `priority` how much it is preferred. `saved` is false while min and max differ from
    what the next start would use.
    """

    name: str
    min_workers: int
    max_workers: int
    active: int
    busy: int
    idle_timeout_s: float
    slots: int = 1
    batch_size: int = 1
    takes: str = ""
    priority: int = 5
    saved: bool = True


class ProfileView(msgspec.Struct, frozen=True, kw_only=True):
    """One profile that a task may be given: its name, what it is, in words, the kinds of content that it is chosen for, and whether it
    is the one for all others."""

    name: str
    about: str
    kinds: tuple[str, ...] = ()
    is_default: bool = False


class ConsoleView(msgspec.Struct, frozen=True, kw_only=True):
    """Someone who follows a served engine: who, from where, since when, and whether it may only look."""

    actor: str
    origin: str
    since: float
    read_only: bool = False


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is small: counts, groups, workers, machines. `clock` is the engine's time; `position` the last event it includes.

    `paused` is why no task is taken; None when tasks are. `troubles` are what an operator has to know while it lasts, a sentence each;
    `store_failing` says that one of them is a store that takes nothing.
    `ended_per_minute` counts the tasks that ended in each of the latest minutes, the current one last. `free_bytes` is the room left
    on the disk under the data folder; None: not known. `consoles` are those that follow a served engine, the asker included.
    `watches` are the folders that are watched and `profiles` those that there are, in the order of the configuration.
    `low_disk` is why nothing is taken in, a sentence: less than `floor_bytes` are free; empty: there is room. `kept` is what the store
    held when it was counted last, None: not counted yet. `freed` is what was removed since the engine began.
    """

    clock: float
    position: Position
    counts: dict[TaskState, int]
    groups: tuple[GroupView, ...]
    workers: tuple[WorkerView, ...]
    machines: tuple[MachineView, ...] = ()
    paused: str | None = None
    stopping: str | None = None
    isolation: str = ""
    ended_per_minute: tuple[int, ...] = ()
    free_bytes: int | None = None
    troubles: tuple[str, ...] = ()
    store_failing: bool = False
    consoles: tuple[ConsoleView, ...] = ()
    watches: tuple[WatchView, ...] = ()
    profiles: tuple[ProfileView, ...] = ()
    low_disk: str = ""
    floor_bytes: int = 0
    kept: StoreFigures | None = None
    freed: Freed = Freed()
