"""Worker groups as an operator writes them: `[[workers]]`, one table a group.

The names and defaults are those of Malbox's worker profiles. Every key does what it says; what this version can't do is refused, and
never accepted and ignored.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from malbox_tui.config.section import MAX_MB, Count, LowerCaseName, Milliseconds, PlainName, SettingsTable, only

DEFAULT_PRIORITY = 5


MAX_BATCH_SIZE = 256
DEFAULT_BATCH_TIMEOUT_MS = 500


class ExecutionMode(StrEnum):
    """How a worker runs its tasks: each by itself, or in batches."""

    SINGLE = "Single"
    BATCH = "Batch"


class PluginRestrictions(SettingsTable, frozen=True, kw_only=True):
    """[workers.plugin_restrictions], below the group that it is of: which plugins take part in the group's tasks."""

    allow: tuple[str, ...] = ()
    """Names of the plugins that may take part. Empty: all."""
    deny: tuple[str, ...] = ()
    """Names of plugins that may not. This wins over allow."""


class ResourceLimitSettings(SettingsTable, frozen=True, kw_only=True):
    """[workers.resource_limits], below the group that it is of: what its plugins may use. What this host can't enforce is refused when
    the engine starts; `malbox-tui doctor` says how each limit is enforced."""

    memory_mb: Annotated[int, msgspec.Meta(ge=64, le=MAX_MB)] | None = None
    """Memory of one plugin with all processes that it starts, and with what it writes to its temporary folder, in MiB. Where the engine
    can make no control groups: address space of each of these processes. Left out: memory_mb of [confinement]."""
    cpu_cores: Annotated[float, msgspec.Meta(ge=0.1, le=1024)] | None = None
    """How many cores the plugins of one task may keep busy together. Part of a core, as in 0.5, needs control groups. Left out: all."""
    disk_mb: Annotated[int, msgspec.Meta(gt=0, le=MAX_MB)] | None = None
    """How much one plugin may write to its temporary folder, in MiB. Needs bubblewrap. Left out: scratch_mb of [confinement]."""
    network_kbps: (
        Annotated[int, only(0, "plugins on this host have no network; that of a machine is bounded by its own network_kbps")]
        | None
    ) = None
    """0: no network, which needs bubblewrap; machines that run the group's tasks have none either. Left out: whatever the isolation
    gives, which is none with bubblewrap."""
    best_effort: bool = False
    """Whether the engine starts although it can't enforce one of these limits. It then says which one."""


class WorkerSettings(SettingsTable, frozen=True, kw_only=True):
    """[[workers]]: one more worker group, with limits of its own. Write the table once for each group. A task goes to the group of the
    highest priority that can take it and has a worker free, or room for one."""

    name: PlainName
    """What the group is called. Each group has another name, and `default` is the one of [general]."""
    compatible_tasks: tuple[LowerCaseName, ...] | None = None
    """Types of the tasks that it takes, such as "static" and "dynamic". Left out: all."""
    compatible_platforms: tuple[LowerCaseName, ...] | None = None
    """Platforms of the tasks that it takes, such as "windows" and "linux". Left out: all."""
    priority: Annotated[int, msgspec.Meta(ge=0, le=255)] = DEFAULT_PRIORITY
    """Higher is preferred; [general] has 5."""
    min_workers: Count = 0
    """How many workers stay, also without work. Not above max_workers."""
    max_workers: Count | None = None
    """How many workers there may be at once. Left out: as many as max_workers of [general] says."""
    idle_timeout_ms: Milliseconds = 500
    """After so long without work a worker above min_workers leaves. In milliseconds."""
    max_concurrent_tasks: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """How many tasks one worker runs at once."""
    execution_mode: ExecutionMode = ExecutionMode.SINGLE
    """Single: each task by itself. Batch: tasks that need no machine are collected and given to the plugins together; each still has
    a state, a time limit and a result of its own."""
    batch_processing: bool | None = None
    """Whether a worker takes batches: the same as execution_mode, which it must not contradict. Left out: as execution_mode says."""
    max_batch_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_BATCH_SIZE)] = 1
    """How many tasks are in one batch at most. Batch needs 2 or more."""
    batch_timeout_ms: Milliseconds = DEFAULT_BATCH_TIMEOUT_MS
    """How long tasks wait for a batch to fill before it is run as it is, in milliseconds."""
    plugin_restrictions: PluginRestrictions = PluginRestrictions()
    resource_limits: ResourceLimitSettings = ResourceLimitSettings()
