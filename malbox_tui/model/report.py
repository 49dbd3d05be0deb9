"""What plugins found: verdicts, reports of Malbox's shape, and the record of one plugin's run.

Verdicts are ordered `unknown < clean < suspicious < malicious`; a sample's is the worst of its latest plugin reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec


class Classification(StrEnum):
    """What a plugin thinks of a sample, from the least to the most worrying."""

    UNKNOWN = "unknown"
    CLEAN = "clean"
    SUSPICIOUS = "suspicious"
    MALICIOUS = "malicious"

    @property
    def severity(self) -> int:
        """0 for unknown up to 3 for malicious."""
        return list(Classification).index(self)


class Confidence(StrEnum):
    """How sure a plugin is of its verdict."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """0 for low up to 2 for high."""
        return list(Confidence).index(self)


class Verdict(msgspec.Struct, frozen=True):
    """A judgement: score 0 to 100 (None: not scored), labels such as family names or rule names."""

    classification: Classification
    score: int | None = None
    confidence: Confidence | None = None
    labels: tuple[str, ...] = ()


GUEST_RUN = "guest-run"
"""The run on a task that the engine itself makes: of the sample in its guest. No plugin is called so."""


class ResultRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """One result in the result store. `format` is json, bytes or file; `path` is relative to the result store's root.

    By the manifest of its plugin: `title` is what people read instead of its name, `render` how a program may show it, and
    `is_for_people` false for one that only programs want. All that is empty or as usual where the manifest says nothing.
    """

    name: str
    format: str
    size_bytes: int
    sha256: str
    path: str
    title: str = ""
    render: str = ""
    is_for_people: bool = True

    @property
    def shown_name(self) -> str:
        """What people read."""
        return f"{self.title}: {self.name}" if self.title else self.name


class PluginStatus(StrEnum):
    """How one plugin's run on one task ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"
    SKIPPED = "skipped"


class Named(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a report names: its distinct indicators as fingerprints, by which those of several reports are told apart, and its distinct
    techniques ("T1055 Process Injection"), both in its order and bounded. `is_whole`: nothing was left out."""

    indicators: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    is_whole: bool = True


class PluginRun(msgspec.Struct, frozen=True):
    """One plugin's run on one task.

    `reason` says what went wrong or, of a completed one, how it ended and what kept it from finding more. `subject` is what it looked
    at: empty for the task's sample, else something that was collected of its run, such as a dropped file by its path in the guest.
    """

    name: str
    version: str
    status: PluginStatus
    seconds: float
    results: tuple[ResultRef, ...] = ()
    verdict: Verdict | None = None
    reason: str = ""
    subject: str = ""
    named: Named = Named()

    @property
    def is_degraded(self) -> bool:
        """It is completed, and found less than it might have: its reason is one of `degraded`."""
        return self.status is PluginStatus.COMPLETED and self.reason.startswith(_DEGRADED)


def degraded(why: str) -> str:
    """The reason of a run that had to do without something, or reached a limit, and went on."""
    return _DEGRADED + why


_DEGRADED = "degraded: "


class Identification(msgspec.Struct, frozen=True):
    """What kind of content a sample is. `kind` is short (pe, elf, script, …); None elsewhere means: not known, or any. `tags`: short
    words for what it is like (x64, dotnet, packed, office, …)."""

    kind: str
    mime: str | None = None
    platform: str | None = None
    arch: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()


class Indicator(msgspec.Struct, frozen=True):
    """An indicator of compromise: its kind (ipv4, domain, url, sha256, …) and value."""

    kind: str
    value: str
    context: str | None = None
    first_seen: str | None = None


class Technique(msgspec.Struct, frozen=True):
    """A technique of MITRE ATT&CK, such as T1055."""

    id: str
    name: str
    evidence: str | None = None


class ArtifactRef(msgspec.Struct, frozen=True):
    """A result that a report points at by name."""

    result_name: str
    kind: str
    description: str | None = None


class Section(msgspec.Struct, frozen=True):
    """A titled part of a report. Blocks are typed by their `type` and kept as the plugin sent them."""

    id: str
    title: str
    blocks: tuple[dict[str, Any], ...] = ()


class PluginIdentity(msgspec.Struct, frozen=True):
    """The plugin that wrote a report; `id` is its name in the manifest."""

    id: str
    version: str
    display_name: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin's report in Malbox's shape: the JSON result with the reserved name `report`."""

    plugin: PluginIdentity
    schema_version: int = 1
    summary: str | None = None
    verdict: Verdict | None = None
    indicators: tuple[Indicator, ...] = ()
    ttps: tuple[Technique, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    sections: tuple[Section, ...] = ()
    raw: Any = None


REPORT_RESULT = "report"
"""The reserved name of the result that holds a plugin's report."""


def worst(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The worst classification, the highest score, its best confidence, and all labels in the order seen.

    None when there is no verdict at all.
    """
    found = list(verdicts)
    if not found:
        return None
    classification = max((v.classification for v in found), key=lambda c: c.severity)
    scores = [v.score for v in found if v.score is not None]
    sure = [v.confidence for v in found if v.confidence is not None and v.classification is classification]
    return Verdict(
        classification=classification,
        score=max(scores) if scores else None,
        confidence=max(sure, key=lambda c: c.rank) if sure else None,
        labels=tuple(dict.fromkeys(label for v in found for label in v.labels)),
    )
