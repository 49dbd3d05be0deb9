"""Worker groups as an operator writes them: `[[workers]]`, one table a group.

The names and defaults are those of Malbox's worker profiles. Every key does what it says; what this version can't do is refused, and
never accepted and ignored.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from malbox_tui.config.section import Count, LowerCaseName, Milliseconds, PlainName, SettingsTable, no_keys, only

DEFAULT_PRIORITY = 5


_ONE_BY_ONE = "this version runs tasks one by one"


class PluginRestrictions(SettingsTable, frozen=True, kw_only=True):
    """[workers.plugin_restrictions], below the group that it is of: which plugins take part in the group's tasks."""

    allow: tuple[str, ...] = ()
    """Names of the plugins that may take part. Empty: all."""
    deny: tuple[str, ...] = ()
    """Names of plugins that may not. This wins over allow."""


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
    execution_mode: Annotated[str, only("Single", _ONE_BY_ONE)] = "Single"
    """How tasks are run."""
    batch_processing: Annotated[bool, only(False, _ONE_BY_ONE)] = False
    """Whether a worker takes batches of tasks."""
    max_batch_size: Annotated[int, only(1, _ONE_BY_ONE)] = 1
    """How many tasks are in one batch."""
    batch_timeout_ms: Annotated[int, only(500, _ONE_BY_ONE)] = 500
    """How long a worker waits for a batch to fill, in milliseconds."""
    plugin_restrictions: PluginRestrictions = PluginRestrictions()
    resource_limits: Annotated[dict[str, Any], no_keys("this version doesn't enforce it yet. Take the key out.")] = msgspec.field(
        default_factory=dict
    )
    """[workers.resource_limits]: this version enforces none of Malbox's limits for a group, and refuses every key in here."""
