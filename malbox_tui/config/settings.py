"""The settings of an engine, with the defaults of a configuration file that says nothing. Each one does what its comment says.

The docstrings of sections and keys are shown to operators too: `config init` writes them into its file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0, le=1024)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=7 * 86400)]
_Positive = Annotated[int, msgspec.Meta(gt=0)]
_MAX_MB = 1024 * 1024


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class GeneralSettings(_Section, frozen=True, kw_only=True):
    """[general]: the worker group `default`."""

    max_workers: _Count = 4
    """How many workers there may be at once; those above min_workers come when there is more work than workers."""
    min_workers: _Count = 1
    """How many workers stay, also without work. Not above max_workers."""
    idle_timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=86_400_000)] = 60_000
    """After so long without work a worker above min_workers leaves. In milliseconds."""


class IntakeSettings(_Section, frozen=True, kw_only=True):
    """[intake]: what is taken as a sample."""

    max_sample_bytes: _Positive = 512 * 1024 * 1024
    """A larger file is refused. In bytes."""


class AnalysisSettings(_Section, frozen=True, kw_only=True):
    """[analysis]: the limits of one attempt."""

    timeout_s: _Seconds = 300.0
    """How long the plugins may take together on one sample, in seconds."""
    cancel_grace_s: _Seconds = 5.0
    """How long a plugin that was asked to stop may take before its process tree is killed, in seconds."""
    lease_s: _Seconds = 30.0
    """How long an attempt owns its task without renewing, in seconds."""
    max_crashes: Annotated[int, msgspec.Meta(ge=1, le=100)] = 3
    """After so many crashes in a row with the task running, it is failed."""


class Isolation(StrEnum):
    """How plugins are confined: with bubblewrap where it works, only with bubblewrap, or by resource limits alone."""

    AUTO = "auto"
    REQUIRED = "required"
    LIMITS = "limits"


class ConfinementSettings(_Section, frozen=True, kw_only=True):
    """[confinement]: the walls round each plugin process."""

    isolation: Isolation = Isolation.AUTO
    """auto: with bubblewrap where it works; required: only with bubblewrap; limits: by resource limits alone."""
    memory_mb: Annotated[int, msgspec.Meta(ge=64, le=_MAX_MB)] = 1024
    """Address space of one plugin process, in MiB."""
    scratch_mb: Annotated[int, msgspec.Meta(gt=0, le=_MAX_MB)] = 256
    """How much a plugin may write to its private temporary folder, in MiB."""


class PluginSettings(_Section, frozen=True, kw_only=True):
    """[plugins]: which run, what they may produce, and their own options."""

    disabled: tuple[str, ...] = ()
    """Names of plugins that don't take part, such as "yara-x". `malbox-tui doctor` lists those that do."""
    max_output_bytes: _Positive = 256 * 1024
    """How much of a plugin's stdout and stderr is kept for one task, in bytes; the rest is cut, and marked so."""
    max_result_bytes: _Positive = 64 * 1024 * 1024
    """How large one result may be, in bytes."""
    max_results: _Positive = 256
    """How many results one plugin may give for one task."""
    config: dict[str, dict[str, str]] = {}
    """[plugins.config.NAME]: options of the plugin NAME. yara-x has `rules`, the absolute path of a folder with rule files of yours
    (.yar and .yara, at any depth) or of one file, and `scan_timeout_s`, a whole number in quotes. The metadata of a rule decides its
    verdict: `classification` ("malicious", "suspicious", "informational"; without it "suspicious"), `score` (0 to 100) and
    `confidence` ("low", "medium", "high"). The other built-in plugins have no options."""


class Settings(_Section, frozen=True, kw_only=True):
    """A whole configuration."""

    general: GeneralSettings = GeneralSettings()
    intake: IntakeSettings = IntakeSettings()
    analysis: AnalysisSettings = AnalysisSettings()
    confinement: ConfinementSettings = ConfinementSettings()
    plugins: PluginSettings = PluginSettings()
