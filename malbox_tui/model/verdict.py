"""What the latest reports on a task or a sample come to: the worst classification, the highest score, how many distinct indicators and
techniques they name, and why, a sentence each. All of it follows from the runs that are stored with tasks.

Foreign words in the sentences (labels, names of plugins) are escaped.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence

import msgspec

from malbox_tui.model.report import Indicator, Named, PluginRun, PluginStatus, Technique, Verdict, worst
from malbox_tui.model.sample import visible
from malbox_tui.model.task import Task

MAX_INDICATORS = 512
"""So many of one report are told apart from those of others."""
MAX_TECHNIQUES = 64
MAX_TECHNIQUE_CHARACTERS = 120
MAX_LABELS = 8
"""So many labels are in one sentence."""
MAX_REASONS = 24

_FINGERPRINT_BYTES = 6
"""Two of a thousand indicators have the same one once in half a billion reports."""

_UNHEARD = {
    PluginStatus.FAILED: "failed",
    PluginStatus.TIMED_OUT: "ran out of time",
    PluginStatus.CANCELED: "was canceled",
}
"""How a plugin that has no say ended; one that was skipped was not to have any."""


class Summary(msgspec.Struct, frozen=True):
    """What reports come to. `verdict`: None when none of them judges. `is_whole`: no report named more than could be counted."""

    verdict: Verdict | None = None
    indicators: int = 0
    techniques: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    is_whole: bool = True


class PastVerdict(msgspec.Struct, frozen=True):
    """What one task of a sample came to, and when it ended."""

    task_id: int
    at: float
    verdict: Verdict | None


def named_in(indicators: Iterable[Indicator], techniques: Iterable[Technique]) -> Named:
    """What a report names, bounded."""
    prints = list(dict.fromkeys(map(_fingerprint, indicators)))
    titles = list(dict.fromkeys(map(_title, techniques)))
    return Named(
        indicators=tuple(prints[:MAX_INDICATORS]),
        techniques=tuple(titles[:MAX_TECHNIQUES]),
        is_whole=len(prints) <= MAX_INDICATORS and len(titles) <= MAX_TECHNIQUES,
    )


def summary_of_task(task: Task) -> Summary:
    """What the reports of a task come to. Which plugins have no say is in the task's own reason."""
    return _summary([(run, "") for run in task.plugins])


def summary_of_sample(tasks: Iterable[Task]) -> Summary:
    """What the latest reports of all tasks of one content come to: of each plugin those of the last task in which it completed, or of
    the last one at all if it never did."""
    latest: dict[str, tuple[tuple[bool, float, int], Task]] = {}
    for task in tasks:
        for name in dict.fromkeys(run.name for run in task.plugins):
            completed = any(run.status is PluginStatus.COMPLETED and not run.subject for run in _runs_of(task, name))
            rank = (completed, task.finished_at or 0.0, task.id)
            if name not in latest or latest[name][0] < rank:
                latest[name] = (rank, task)
    return _summary([(run, f"in task {task.id}") for name, (_, task) in latest.items() for run in _runs_of(task, name)])


def history(tasks: Iterable[Task]) -> list[PastVerdict]:
    """What tasks that have ended came to, the latest first."""
    ended = [PastVerdict(task.id, task.finished_at, task.verdict) for task in tasks if task.finished_at is not None]
    return sorted(ended, key=lambda past: (past.at, past.task_id), reverse=True)


def count_words(summary: Summary, noun: str = "distinct indicator") -> str:
    """`12 distinct indicators, 2 techniques`; empty when nothing is named."""
    more = "" if summary.is_whole else "at least "
    counts = ((summary.indicators, noun), (len(summary.techniques), "technique"))
    return ", ".join(f"{more}{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts if number)


def short_counts(task: Task) -> str:
    """What the reports of a task name, as short as a list wants it: `12 indicators, 2 techniques`; empty for nothing."""
    return count_words(summary_of_task(task), "indicator")


def _runs_of(task: Task, plugin: str) -> list[PluginRun]:
    return [run for run in task.plugins if run.name == plugin]


def _summary(runs: Sequence[tuple[PluginRun, str]]) -> Summary:
    """`runs`, each with where it took place, in words; empty: in the task that is spoken of."""
    techniques = dict.fromkeys(title for run, _ in runs for title in run.named.techniques)
    return Summary(
        verdict=worst(run.verdict for run, _ in runs if run.verdict is not None),
        indicators=len({print_ for run, _ in runs for print_ in run.named.indicators}),
        techniques=tuple(techniques),
        reasons=_bounded(
            [
                *(_judgement(run, where) for run, where in sorted(runs, key=_by_weight) if run.verdict is not None),
                *(_naming(run, where) for run, where in runs if run.named.techniques),
                *(_silence(run, where) for run, where in runs if where and run.status in _UNHEARD),
            ]
        ),
        is_whole=all(run.named.is_whole for run, _ in runs),
    )


def _by_weight(entry: tuple[PluginRun, str]) -> tuple[int, int]:
    """The worst first; what weighs the same stays in its order."""
    verdict = entry[0].verdict
    return (0, 0) if verdict is None else (-verdict.classification.severity, -(verdict.score or 0))


def _judgement(run: PluginRun, where: str) -> str:
    verdict = run.verdict
    assert verdict is not None, "asked of runs that judged"
    score = "" if verdict.score is None else f", score {verdict.score}"
    sure = "" if verdict.confidence is None else f", with {verdict.confidence.value} confidence"
    labels = [visible(label) for label in verdict.labels[:MAX_LABELS]]
    more = f" and {len(verdict.labels) - MAX_LABELS} more" if len(verdict.labels) > MAX_LABELS else ""
    named = f": {', '.join(labels)}{more}" if labels else ""
    return f"{_who(run, where)} says {verdict.classification.value}{score}{sure}{named}."


def _naming(run: PluginRun, where: str) -> str:
    titles = [visible(title) for title in run.named.techniques]
    return f"{_who(run, where)} names {'the technique' if len(titles) == 1 else f'{len(titles)} techniques'}: {_listed(titles)}."


def _silence(run: PluginRun, where: str) -> str:
    why = f": {run.reason.rstrip('.')}" if run.reason else ""
    return f"{_who(run, where)} has no say: it {_UNHEARD[run.status]}{why}."


def _who(run: PluginRun, where: str) -> str:
    parts = [visible(run.name), f"on {visible(run.subject)}" if run.subject else "", where]
    return " ".join(part for part in parts if part)


def _listed(texts: Sequence[str]) -> str:
    shown = ", ".join(texts[:MAX_LABELS])
    return f"{shown} and {len(texts) - MAX_LABELS} more" if len(texts) > MAX_LABELS else shown


def _bounded(reasons: list[str]) -> tuple[str, ...]:
    if len(reasons) <= MAX_REASONS:
        return tuple(reasons)
    return (*reasons[: MAX_REASONS - 1], f"And {len(reasons) - MAX_REASONS + 1} more of the kind.")


def _fingerprint(indicator: Indicator) -> str:
    content = f"{indicator.kind}\0{indicator.value}".encode("utf-8", "surrogatepass")
    return urlsafe_b64encode(hashlib.blake2b(content, digest_size=_FINGERPRINT_BYTES).digest()).decode()


def _title(technique: Technique) -> str:
    return " ".join(part for part in (technique.id, technique.name) if part)[:MAX_TECHNIQUE_CHARACTERS]
