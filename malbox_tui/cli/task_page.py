"""One task in full, as lines of text: pure, and safe to print."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePath

from malbox_tui.cli.text import duration, sentence, size, timestamp
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import PluginRun
from malbox_tui.model.sample import Sample, escape, visible
from malbox_tui.model.task import Task, TaskState
from malbox_tui.model.verdict import Summary, count_words, summary_of_task
from malbox_tui.reports.words import removed_words, verdict_words

_LABEL_WIDTH = 10


def task_lines(row: TaskRecord, results: PurePath) -> Iterator[str]:
    """The task, its sample, its stages and its plugins; results with their paths under the folder `results`, if they are there."""
    task, sample = row.task, row.sample
    yield f"Task {task.id}: {task.state.value}"
    yield from _fields(_task_fields(task))
    if (removed_at := timestamp(row.results_removed_at)) is not None:
        yield from _fields([("results", removed_words(removed_at))])
    yield from summary_lines(summary_of_task(task))
    yield ""
    yield f"Sample {sample.sha256}"
    yield from _fields([*sample_fields(sample), *_marks(sample)])
    if task.stages:
        yield ""
        yield "Stages"
        yield from _fields(
            [(state.value, duration(task.stages[state.value])) for state in TaskState if state.value in task.stages], 20
        )
    for run in task.plugins:
        yield ""
        yield from _plugin_lines(run, results if removed_at is None else None)


def summary_lines(summary: Summary) -> Iterator[str]:
    """What reports name, and why they come to what they do, a sentence each."""
    fields = [("named", count_words(summary)), ("techniques", ", ".join(map(visible, summary.techniques)))]
    fields += [("why" if not place else "", sentence(reason)) for place, reason in enumerate(summary.reasons)]
    yield from _fields([(label, text) for label, text in fields if text])


def _task_fields(task: Task) -> list[tuple[str, str]]:
    fields = [
        ("verdict", verdict_words(task.verdict)),
        ("ended by", task.ended_by.value.replace("_", " ") if task.ended_by is not None else ""),
        ("reason", sentence(task.reason)),
        ("type", visible(task.type)),
        ("profile", visible(str(task.profile or ""))),
        ("plugins", ", ".join(task.wishes.only)),
        ("options", " ".join(visible(shlex.quote(option)) for option in task.wishes.written_options())),
        ("owner", visible(task.owner)),
        ("priority", str(task.priority)),
        ("attempts", str(task.attempts) + (f" ({task.crashes} crashed)" if task.crashes else "")),
        ("time limit", _time_limit(task)),
        ("arguments", " ".join(visible(shlex.quote(argument)) for argument in task.run.arguments)),
        ("memory", "is kept when its sample has ended" if task.run.memory_dump else ""),
        ("retry of", str(task.retry_of) if task.retry_of is not None else ""),
        ("worker", visible(task.worker or "")),
        ("machine", visible(task.machine or "")),
        ("created", timestamp(task.created_at) or ""),
        ("started", timestamp(task.started_at) or ""),
        ("finished", timestamp(task.finished_at) or ""),
    ]
    return [(label, text) for label, text in fields if text]


def _time_limit(task: Task) -> str:
    watched = "; its machine is watched for all of it" if task.enforce_timeout else ""
    return f"{task.timeout_s:g} s for the analysis{watched}"


def sample_fields(sample: Sample) -> list[tuple[str, str]]:
    """What is known of a content, each with its label."""
    fields = [("size", _size(sample.size_bytes))]
    if (identified := sample.identification) is not None:
        details = [visible(text) for text in (identified.mime, identified.platform, identified.arch) if text]
        details += [visible(tag) for tag in identified.tags if tag != identified.arch]
        fields.append(("kind", visible(identified.kind) + (f" ({', '.join(details)})" if details else "")))
        if identified.description:
            fields.append(("", visible(identified.description)))
    fields += [("name", escape(name)) for name in dict.fromkeys(name.name for name in sample.names)]
    fields += [("from", escape(origin)) for origin in dict.fromkeys(name.origin for name in sample.names if name.origin)]
    return fields


def _marks(sample: Sample) -> list[tuple[str, str]]:
    notes = f"{len(sample.notes)}; `malbox-tui sample {sample.sha256[:12]}` shows them" if sample.notes else ""
    return [(label, text) for label, text in (("tags", ", ".join(map(visible, sample.tags))), ("notes", notes)) if text]


def _size(size_bytes: int) -> str:
    return size(size_bytes) + (f" ({size_bytes} bytes)" if size_bytes >= 1024 else "")


def _plugin_lines(run: PluginRun, results: PurePath | None) -> Iterator[str]:
    on = f" on {visible(run.subject)}" if run.subject else ""
    yield f"Plugin {visible(run.name)} {visible(run.version)}{on}: {run.status.value.replace('_', ' ')} in {duration(run.seconds)}"
    fields = [("verdict", verdict_words(run.verdict)), ("reason", sentence(run.reason))]
    yield from _fields([(label, text) for label, text in fields if text])
    for result in run.results:
        if result.is_for_people:
            facts = f"{result.format}, {size(result.size_bytes)}, SHA-256 {result.sha256}"
            yield f"  result     {visible(result.shown_name)} ({facts})"
            if results is not None:
                yield f"    {escape(bytes(results / result.path))}"


def _fields(fields: list[tuple[str, str]], width: int = _LABEL_WIDTH) -> Iterator[str]:
    for label, text in fields:
        yield f"  {label:<{width}} {text}"
