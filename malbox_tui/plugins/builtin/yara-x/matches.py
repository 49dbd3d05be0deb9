"""Matches, and the verdict that follows from the metadata of their rules."""

import re
from dataclasses import dataclass
from typing import Any

import malbox_plugin_sdk as malbox
import yara_x

SEVERITIES = {
    "unknown": (0, malbox.Classification.Unknown),
    "informational": (0, malbox.Classification.Unknown),
    "clean": (0, malbox.Classification.Unknown),
    "suspicious": (1, malbox.Classification.Suspicious),
    "malicious": (2, malbox.Classification.Malicious),
}
"""A rule that claims *clean* says nothing: one match proves no harmlessness."""

CONFIDENCES = {"low": malbox.Confidence.Low, "medium": malbox.Confidence.Medium, "high": malbox.Confidence.High}
MAX_TEXT = 300
MAX_PLACES = 8


@dataclass(frozen=True)
class Match:
    """One rule that matched. `score` is 0 to 100, None when the rule gives none."""

    rule: str
    namespace: str
    tags: tuple[str, ...]
    description: str
    severity: int
    score: int | None
    confidence: malbox.Confidence
    technique: malbox.Ttp | None
    places: tuple[tuple[str, int, int], ...]
    """(pattern, offset, length) of the first matches."""

    @property
    def where(self) -> str:
        """The places in words."""
        return ", ".join(f"{pattern} at {offset:#x}" for pattern, offset, _length in self.places)

    def to_json(self) -> dict[str, Any]:
        """The shape of the result `matches`."""
        return {
            "rule": self.rule,
            "file": self.namespace,
            "tags": list(self.tags),
            "description": self.description,
            "score": self.score,
            "patterns": [{"id": pattern, "offset": offset, "length": length} for pattern, offset, length in self.places],
        }


def matches_of(results: yara_x.ScanResults) -> list[Match]:
    """The matches of a scan, the worst first."""
    matches = [_match(rule) for rule in results.matching_rules]
    return sorted(matches, key=lambda match: (-match.severity, -(match.score or 0), match.rule))


def verdict_of(matches: list[Match]) -> tuple[malbox.Classification, int | None, malbox.Confidence]:
    """The worst classification, its highest score and best confidence."""
    worst = max(match.severity for match in matches)
    of_the_worst = [match for match in matches if match.severity == worst]
    classification = next(kind for severity, kind in SEVERITIES.values() if severity == worst)
    scores = [match.score for match in of_the_worst if match.score is not None]
    order = list(CONFIDENCES.values())
    return classification, max(scores, default=None), max((m.confidence for m in of_the_worst), key=order.index)


def _match(rule: yara_x.Rule) -> Match:
    metadata: dict[str, Any] = dict(rule.metadata)
    severity, _kind = SEVERITIES.get(str(metadata.get("classification", "suspicious")).lower(), SEVERITIES["suspicious"])
    places = [(pattern.identifier, match.offset, match.length) for pattern in rule.patterns for match in pattern.matches]
    return Match(
        rule=rule.identifier,
        namespace=rule.namespace,
        tags=tuple(rule.tags),
        description=str(metadata.get("description", ""))[:MAX_TEXT],
        severity=severity,
        score=_score(metadata.get("score")),
        confidence=CONFIDENCES.get(str(metadata.get("confidence", "low")).lower(), malbox.Confidence.Low),
        technique=_technique(metadata.get("technique")),
        places=tuple(places[:MAX_PLACES]),
    )


def _score(value: Any) -> int | None:
    return min(100, max(0, value)) if isinstance(value, int) and not isinstance(value, bool) else None


def _technique(value: Any) -> malbox.Ttp | None:
    found = re.fullmatch(r"(T\d{4}(?:\.\d{3})?)\s+(.{1,200})", str(value or ""))
    return malbox.Ttp(found[1], found[2]) if found else None
