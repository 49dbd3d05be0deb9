"""Values as words that are safe to show, wherever they stand."""

from __future__ import annotations

from datetime import UTC, datetime

from malbox_tui.model.report import Verdict
from malbox_tui.model.sample import visible


def sentence(text: str) -> str:
    r"""Foreign or mixed prose on one line, safe to print: unprintable characters as `\xNN`, a backslash as it is.

    Unlike `visible` this can't be undone; names inside such a text were escaped when it was made, and are not escaped twice.
    """
    return "\\".join(map(visible, text.split("\\")))


def timestamp(at: float | None) -> str | None:
    """Seconds since the epoch in RFC 3339, UTC, with milliseconds: `2026-01-02T03:04:05.678Z`."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def removed_words(at: str) -> str:
    """That a task's results are gone since `at`."""
    return f"Its results were removed on {at}; what they came to stays."


def verdict_words(verdict: Verdict | None) -> str:
    """A verdict on one line, its labels escaped; empty for none."""
    if verdict is None:
        return ""
    words = [verdict.classification.value]
    if verdict.score is not None:
        words.append(f"score {verdict.score}")
    if verdict.confidence is not None:
        words.append(f"confidence {verdict.confidence.value}")
    labels = ", ".join(visible(label) for label in verdict.labels)
    return ", ".join(words) + (f": {labels}" if labels else "")
