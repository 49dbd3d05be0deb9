"""A task and all its reports as one document: elements in the order in which they are read, and, for programs, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import PluginRun, ResultRef, Verdict
from malbox_tui.model.sample import Sample, escape, visible
from malbox_tui.model.task import Task
from malbox_tui.model.verdict import count_words, summary_of_task
from malbox_tui.reports.blocks import elements_of
from malbox_tui.reports.elements import Element, Heading, Picture, Pointer, Problem, Said, Table
from malbox_tui.reports.gathering import PluginReport
from malbox_tui.reports.words import removed_words, sentence, timestamp, verdict_words

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class TaskReport:
    """A task with what its plugins reported."""

    record: TaskRecord
    reports: Sequence[PluginReport]
    pictures: Mapping[ResultRef, Picture] = field(default_factory=dict)
    """Those that reports name and that are to be shown in it."""

    @property
    def title(self) -> str:
        """On one line, safe to show."""
        return f"Task {self.record.task.id}: {_first_name(self.record.sample)}"


def elements(report: TaskReport) -> Iterator[Element]:
    """The document, from its title to the list of results."""
    task, sample = report.record.task, report.record.sample
    summary, removed_at = summary_of_task(task), timestamp(report.record.results_removed_at)
    yield Heading(1, report.title, is_safe=True)
    yield _facts(
        ("verdict", verdict_words(task.verdict) or "none"),
        ("named", count_words(summary)),
        ("techniques", ", ".join(map(visible, summary.techniques))),
        ("state", task.state.value.replace("_", " ")),
        ("how it ended", sentence(task.reason)),
        ("machine", visible(task.machine or "")),
        ("added", timestamp(task.created_at) or ""),
        ("ended", timestamp(task.finished_at) or ""),
        ("results", "" if removed_at is None else removed_words(removed_at)),
    )
    if summary.reasons:
        yield Heading(2, "Why")
        yield Said(summary.reasons)
    yield Heading(2, "Sample")
    yield _facts(*_of_sample(sample))
    for part in report.reports:
        yield Heading(2, _of_run(part.run))
        if part.run.verdict is not None:
            yield _facts(("verdict", verdict_words(part.run.verdict)))
        if part.content is None:
            yield Problem(part.problem)
        else:
            yield from _with_pictures(part, report.pictures)
    yield Heading(2, "Plugins and results")
    yield Table(("plugin", "status", "result", "format", "bytes", "SHA-256"), list(_of_plugins(task)))


def as_value(report: TaskReport) -> dict[str, Any]:
    """The document for programs: `reports` are of Malbox's shape, as the plugins sent them; names of samples are escaped reversibly."""
    task, sample = report.record.task, report.record.sample
    summary = summary_of_task(task)
    identified = sample.identification
    return {
        "schema_version": SCHEMA_VERSION,
        "task": {
            "id": task.id,
            "type": task.type,
            "state": task.state.value,
            "ended_by": None if task.ended_by is None else task.ended_by.value,
            "reason": task.reason,
            "machine": task.machine,
            "created_at": timestamp(task.created_at),
            "started_at": timestamp(task.started_at),
            "finished_at": timestamp(task.finished_at),
            "results_removed_at": timestamp(report.record.results_removed_at),
        },
        "sample": {
            "sha256": sample.sha256,
            "size_bytes": sample.size_bytes,
            "names": list(dict.fromkeys(escape(name.name) for name in sample.names)),
            "kind": None if identified is None else identified.kind,
            "mime": None if identified is None else identified.mime,
        },
        "verdict": _verdict_value(task.verdict),
        "indicators": summary.indicators,
        "techniques": list(summary.techniques),
        "reasons": list(summary.reasons),
        "reports": [_report_value(part) for part in report.reports],
    }


def _with_pictures(part: PluginReport, pictures: Mapping[ResultRef, Picture]) -> Iterator[Element]:
    """Each picture below what names it."""
    shown = {result.name: pictures[result] for result in part.run.results if result in pictures}
    for element in elements_of(part.content):
        yield element
        if isinstance(element, Pointer) and element.what == "image" and element.name in shown:
            yield shown[element.name]


def _report_value(part: PluginReport) -> dict[str, Any]:
    subject = {"subject": part.run.subject} if part.run.subject else {}
    if part.content is None:
        return {"plugin": {"id": part.run.name, "version": part.run.version}, "problem": part.problem, **subject}
    return {**part.content, **subject}


def _verdict_value(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    confidence = None if verdict.confidence is None else verdict.confidence.value
    return {
        "classification": verdict.classification.value,
        "score": verdict.score,
        "confidence": confidence,
        "labels": list(verdict.labels),
    }


def _of_sample(sample: Sample) -> Iterator[tuple[str, str]]:
    yield "SHA-256", sample.sha256
    yield "size", f"{sample.size_bytes:,} bytes"
    if (identified := sample.identification) is not None:
        words = (identified.kind, identified.platform, identified.arch, identified.mime)
        yield "kind", ", ".join(visible(word) for word in words if word)
        yield "what it is", visible(identified.description or "")
    for place, name in enumerate(dict.fromkeys(name.name for name in sample.names)):
        yield "" if place else "name", escape(name)


def _of_plugins(task: Task) -> Iterator[Sequence[str]]:
    for run in task.plugins:
        yield _of_run(run), run.status.value.replace("_", " "), run.reason, "", "", ""
        for result in run.results:
            yield "", "", result.name, result.format, str(result.size_bytes), result.sha256


def _of_run(run: PluginRun) -> str:
    return f"{run.name} {run.version}" + (f" on {run.subject}" if run.subject else "")


def _first_name(sample: Sample) -> str:
    return escape(sample.names[0].name) if sample.names else sample.sha256


def _facts(*pairs: tuple[str, str]) -> Table:
    """Those that say something; they are safe to show already."""
    return Table((), [pair for pair in pairs if pair[1]], is_safe=True)
