"""The settings of an engine, with the defaults of a configuration file that says nothing. Each one does what its comment says.

The docstrings of sections and keys are shown to operators too: `config init` writes them into its file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from malbox_tui.config.machines import MachinerySettings, MachineSettings
from malbox_tui.config.profiles import ProfileSettings
from malbox_tui.config.retention import RetentionSettings
from malbox_tui.config.section import MAX_MB, Count, Milliseconds, Positive, Seconds, SettingsTable
from malbox_tui.config.watching import WatchSettings
from malbox_tui.config.workers import DEFAULT_PRIORITY, WorkerSettings
from malbox_tui.model.limits import UNLIMITED, ResourceLimits

__all__ = [
    "DEFAULT_GROUP",
    "AnalysisSettings",
    "ConfinementSettings",
    "GeneralSettings",
    "GroupSettings",
    "IntakeSettings",
    "Isolation",
    "MachineSettings",
    "MachinerySettings",
    "PluginSettings",
    "ProfileSettings",
    "RetentionSettings",
    "ServeSettings",
    "Settings",
    "WatchSettings",
    "WorkerSettings",
]

DEFAULT_GROUP = "default"
"""The name of the group that `[general]` describes."""


class GeneralSettings(SettingsTable, frozen=True, kw_only=True):
    """[general]: the worker group `default`, which takes every task, and how the engine ends."""

    max_workers: Count = 4
    """How many workers there may be at once; those above min_workers come when there is more work than workers."""
    min_workers: Count = 1
    """How many workers stay, also without work. Not above max_workers."""
    idle_timeout_ms: Milliseconds = 60_000
    """After so long without work a worker above min_workers leaves. In milliseconds."""
    drain_timeout_s: Seconds = 60.0
    """How long running tasks may take to finish after SIGTERM before they are given back, in seconds."""


class IntakeSettings(SettingsTable, frozen=True, kw_only=True):
    """[intake]: what is taken as a sample."""

    max_sample_bytes: Positive = 512 * 1024 * 1024
    """A larger file is refused. In bytes."""
    archive_passwords: tuple[str, ...] = ()
    """Passwords for archives, tried after those that a submission gives and after infected, malware, virus and password."""
    max_archive_depth: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    """How many archives deep members are samples; an archive that is deeper is taken as one file."""
    max_archive_members: Positive = 10_000
    """How many entries an archive may have, with those of all archives in it."""
    max_archive_bytes: Positive = 4 * 1024 * 1024 * 1024
    """How much may come out of an archive, and of all archives in it, in bytes."""
    max_archive_ratio: Positive = 1000
    """How many times its own size may come out of an archive; 32 MiB always may."""
    archive_timeout_s: Seconds = 300.0
    """How long opening an archive, and all archives in it, may take, in seconds."""


class AnalysisSettings(SettingsTable, frozen=True, kw_only=True):
    """[analysis]: the limits of one attempt."""

    timeout_s: Seconds = 300.0
    """How long the plugins, and the sample in its machine, may run, in seconds. A submission may ask for another time."""
    critical_timeout_s: Seconds = 1800.0
    """How long a whole attempt may take, from the moment a worker takes the task, in seconds. Above timeout_s."""
    initializing_timeout_s: Seconds = 120.0
    """How long it may take to lay the sample out, in seconds. The time while a full disk is waited for does not count."""
    preparing_timeout_s: Seconds = 900.0
    """How long a task may wait for its machine to be up and answering, in seconds; then another machine is tried."""
    collecting_timeout_s: Seconds = 60.0
    """How long it may take to collect what a sample left in its machine, once it has ended or its time is over, in seconds; as long
    again for a dump of its memory, and for the plugins to look at what was collected."""
    stopping_timeout_s: Seconds = 60.0
    """How long a task waits for its clean-up at the end, in seconds; what takes longer goes on without it."""
    profile: str = ""
    """The name of the profile of tasks for which none is chosen, by hand or by the kind of their content. Empty: none."""
    enforce_timeout: bool = False
    """Whether a machine is watched for the whole timeout_s, also when its sample has ended before. No other task is kept so."""
    cancel_grace_s: Seconds = 5.0
    """How long a plugin that was asked to stop may take before its process tree is killed, in seconds."""
    flush_grace_s: Seconds = 10.0
    """How long a plugin may take to hand over what it has when the time of its task is over, before its process tree is killed, in
    seconds."""
    lease_s: Seconds = 30.0
    """How long an attempt owns its task without renewing, in seconds."""
    max_crashes: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    """After so many crashes in a row with the task running, it is failed."""

    @property
    def longest_grace_s(self) -> float:
        """How long a plugin may take to end at most, whyever it is to."""
        return max(self.cancel_grace_s, self.flush_grace_s)


class Isolation(StrEnum):
    """How plugins are confined: with bubblewrap where it works, only with bubblewrap, or by resource limits alone."""

    AUTO = "auto"
    REQUIRED = "required"
    LIMITS = "limits"


class ConfinementSettings(SettingsTable, frozen=True, kw_only=True):
    """[confinement]: the walls round each plugin process."""

    isolation: Isolation = Isolation.AUTO
    """auto: with bubblewrap where it works; required: only with bubblewrap; limits: by resource limits alone."""
    memory_mb: Annotated[int, msgspec.Meta(ge=64, le=MAX_MB)] = 1024
    """Address space of one plugin process, in MiB."""
    scratch_mb: Annotated[int, msgspec.Meta(gt=0, le=MAX_MB)] = 256
    """How much a plugin may write to its private temporary folder, in MiB."""


class PluginSettings(SettingsTable, frozen=True, kw_only=True):
    """[plugins]: which run, what they may produce, and their own options."""

    disabled: tuple[str, ...] = ()
    """Names of plugins that don't take part, such as "yara-x". `malbox-tui plugin list` shows all of them."""
    required: tuple[str, ...] = ()
    """Names of plugins without which a task is worth nothing: it fails when one of them does. Where none is required, a task fails only
    when every plugin does."""
    health_check_s: Seconds = 60.0
    """How often a plugin that waits for work is asked how it is, in seconds. One that doesn't answer is started anew."""
    max_output_bytes: Positive = 256 * 1024
    """How much of a plugin's stdout and stderr is kept for one task, in bytes; the rest is cut, and marked so."""
    max_result_bytes: Positive = 64 * 1024 * 1024
    """How large one result may be, in bytes."""
    max_results: Positive = 256
    """How many results one plugin may give for one task."""
    interpreters: dict[str, str] = msgspec.field(default_factory=dict)
    """[plugins.interpreters]: the plugin NAME runs under the Python at an absolute path, 3.11 or newer, instead of the engine's own:
    NAME = "/opt/environment/bin/python"."""
    config: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """[plugins.config.NAME]: options of the plugin NAME. yara-x has `rules`, the absolute path of a folder with rule files of yours
    (.yar and .yara, at any depth) or of one file, and `scan_timeout_s`, a whole number in quotes. The metadata of a rule decides its
    verdict: `classification` ("malicious", "suspicious", "informational"; without it "suspicious"), `score` (0 to 100) and
    `confidence` ("low", "medium", "high"). The other built-in plugins have no options."""


class ServeSettings(SettingsTable, frozen=True, kw_only=True):
    """[serve]: the socket of `malbox-tui serve`."""

    group: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """The name of a group of this host whose members may use the socket too, and see and do everything there; empty: nobody but you and
    root."""


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One worker group as it starts.

    `task_types` and `platforms`: what its workers take, None: everything. A platform list says nothing of tasks without a
    platform. `plugins_allowed`: the plugins that may take part, empty: all; `plugins_denied`: those that may not, whatever is
    allowed. `slots`: how many tasks one worker holds at once, each by itself. `batch_size`: how many it runs together, 1: none;
    `batch_wait_s` is how long such a batch is waited for. `limits`: what plugins may use. A group of higher `priority` is preferred.
    """

    name: str = DEFAULT_GROUP
    min_workers: int = 1
    max_workers: int = 4
    idle_timeout_s: float = 60.0
    priority: int = DEFAULT_PRIORITY
    slots: int = 1
    task_types: frozenset[str] | None = None
    platforms: frozenset[str] | None = None
    plugins_allowed: frozenset[str] = frozenset()
    plugins_denied: frozenset[str] = frozenset()
    limits: ResourceLimits = UNLIMITED
    batch_size: int = 1
    batch_wait_s: float = 0.5


class Settings(SettingsTable, frozen=True, kw_only=True):
    """A whole configuration."""

    general: GeneralSettings = GeneralSettings()
    workers: tuple[WorkerSettings, ...] = ()
    machinery: MachinerySettings = MachinerySettings()
    machines: tuple[MachineSettings, ...] = ()
    intake: IntakeSettings = IntakeSettings()
    watch: tuple[WatchSettings, ...] = ()
    analysis: AnalysisSettings = AnalysisSettings()
    confinement: ConfinementSettings = ConfinementSettings()
    plugins: PluginSettings = PluginSettings()
    profiles: tuple[ProfileSettings, ...] = ()
    serve: ServeSettings = ServeSettings()
    retention: RetentionSettings = RetentionSettings()

    def groups(self) -> tuple[GroupSettings, ...]:
        """All worker groups: `default` first, then the others in the order of the file."""
        general = self.general
        default = GroupSettings(
            min_workers=general.min_workers,
            max_workers=general.max_workers,
            idle_timeout_s=general.idle_timeout_ms / 1000,
        )
        return (default, *(_group(worker, general) for worker in self.workers))


def _group(worker: WorkerSettings, general: GeneralSettings) -> GroupSettings:
    return GroupSettings(
        name=worker.name,
        min_workers=worker.min_workers,
        max_workers=general.max_workers if worker.max_workers is None else worker.max_workers,
        idle_timeout_s=worker.idle_timeout_ms / 1000,
        priority=worker.priority,
        slots=worker.max_concurrent_tasks,
        task_types=None if worker.compatible_tasks is None else frozenset(worker.compatible_tasks),
        platforms=None if worker.compatible_platforms is None else frozenset(worker.compatible_platforms),
        plugins_allowed=frozenset(worker.plugin_restrictions.allow),
        plugins_denied=frozenset(worker.plugin_restrictions.deny),
        batch_size=worker.max_batch_size,
        batch_wait_s=worker.batch_timeout_ms / 1000,
        limits=msgspec.convert(worker.resource_limits, ResourceLimits, from_attributes=True),
    )
