"""What `--json` prints: tasks and receipts as objects of a stable shape. Times are RFC 3339 in UTC; names and other foreign text
are escaped as `model.sample` does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from malbox_tui.cli.text import sentence, timestamp
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import PluginRun, ResultRef, Verdict
from malbox_tui.model.sample import Sample, SampleName, escape, visible
from malbox_tui.model.submission import Duplicate, Opened, Refused
from malbox_tui.model.task import ChosenProfile, Task
from malbox_tui.model.verdict import Summary, summary_of_sample, summary_of_task

Record = dict[str, Any]


def task_record(row: TaskRecord, results: PurePath) -> Record:
    """One task with its sample; paths of results are those under the folder `results`."""
    task = row.task
    return {
        "record": "task",
        "id": task.id,
        "sample": _sample(row.sample),
        "type": task.type,
        "state": task.state.value,
        "ended_by": task.ended_by.value if task.ended_by is not None else None,
        "reason": sentence(task.reason),
        "priority": task.priority,
        "attempts": task.attempts,
        "crashes": task.crashes,
        "retry_of": task.retry_of,
        "worker": task.worker,
        "machine": _optional(task.machine),
        "requires": {
            "platform": _optional(task.requires.platform),
            "arch": _optional(task.requires.arch),
            "tags": [visible(tag) for tag in task.requires.tags],
            "machine": _optional(task.requires.pin),
            "avoid": [visible(name) for name in task.requires.avoid],
        },
        "created_at": timestamp(task.created_at),
        "started_at": timestamp(task.started_at),
        "finished_at": timestamp(task.finished_at),
        "results_removed_at": timestamp(row.results_removed_at),
        "timeout_s": task.timeout_s,
        "enforce_timeout": task.enforce_timeout,
        "profile": _profile(task.profile),
        "owner": visible(task.owner) or None,
        "wishes": {
            "plugins": list(task.wishes.only),
            "options": {name: {key: visible(text) for key, text in given.items()} for name, given in task.wishes.options.items()},
        },
        "run": {"arguments": [visible(text) for text in task.run.arguments], "memory_dump": task.run.memory_dump},
        "stages": {name: round(seconds, 6) for name, seconds in task.stages.items()},
        "verdict": _verdict(task.verdict),
        **_found(summary_of_task(task)),
        "plugins": [_plugin(run, results) for run in task.plugins],
    }


def duplicate_record(receipt: Duplicate, original: TaskRecord | None) -> Record:
    """A content that has a task already; `original` is that task as it is now, if it could be read."""
    return {
        "record": "duplicate",
        **_named(receipt.name),
        "sha256": receipt.sha256,
        "size_bytes": receipt.size_bytes,
        "of": receipt.task_id,
        "state": (original.task.state if original is not None else receipt.state).value,
        "verdict": _verdict(original.task.verdict) if original is not None and original.task.state.is_final else None,
    }


def opened_record(receipt: Opened) -> Record:
    """An archive whose members were handed in."""
    return {
        "record": "opened",
        **_named(receipt.name),
        "sha256": receipt.archive.sha256 or None,
        "size_bytes": receipt.archive.size_bytes if receipt.archive.sha256 else None,
        "reason": sentence(receipt.archive.words),
    }


def refused_record(receipt: Refused) -> Record:
    """Something that was not taken, and why."""
    return {
        "record": "refused",
        **_named(receipt.name),
        "code": receipt.refusal.code,
        "things": receipt.refusal.things,
        "reason": sentence(receipt.refusal.reason),
    }


def sample_record(sample: Sample, tasks: Sequence[Task]) -> Record:
    """One content with its tasks, the oldest first; the verdict is of the latest reports on it."""
    summary = summary_of_sample(tasks)
    return {
        "record": "sample",
        **_sample(sample),
        "notes": [{"at": timestamp(note.at), "actor": visible(note.actor), "text": sentence(note.text)} for note in sample.notes],
        "first_seen_at": timestamp(sample.first_seen_at),
        "verdict": _verdict(summary.verdict),
        **_found(summary),
        "tasks": [
            {
                "id": task.id,
                "state": task.state.value,
                "created_at": timestamp(task.created_at),
                "finished_at": timestamp(task.finished_at),
                "verdict": _verdict(task.verdict),
            }
            for task in tasks
        ],
    }


def _named(name: SampleName) -> Record:
    return {"name": escape(name.name), "path": escape(name.origin), "archive": name.archive or None}


def _sample(sample: Sample) -> Record:
    identification = sample.identification
    return {
        "sha256": sample.sha256,
        "names": _unique(escape(name.name) for name in sample.names),
        "origins": _unique(escape(name.origin) for name in sample.names if name.origin),
        "archives": _unique(name.archive for name in sample.names if name.archive),
        "size_bytes": sample.size_bytes,
        "kind": visible(identification.kind) if identification is not None else None,
        "mime": _optional(identification.mime) if identification is not None else None,
        "platform": _optional(identification.platform) if identification is not None else None,
        "arch": _optional(identification.arch) if identification is not None else None,
        "kind_tags": [visible(tag) for tag in identification.tags] if identification is not None else [],
        "tags": [visible(tag) for tag in sample.tags],
    }


def _profile(chosen: ChosenProfile | None) -> Record | None:
    if chosen is None or not chosen.name:
        return None
    return {"name": visible(chosen.name), "chosen_by": chosen.by.value, "kind": visible(chosen.kind) or None}


def _verdict(verdict: Verdict | None) -> Record | None:
    if verdict is None:
        return None
    return {
        "classification": verdict.classification.value,
        "score": verdict.score,
        "confidence": verdict.confidence.value if verdict.confidence is not None else None,
        "labels": [visible(label) for label in verdict.labels],
    }


def _found(summary: Summary) -> Record:
    return {
        "indicators": summary.indicators,
        "techniques": [visible(title) for title in summary.techniques],
        "reasons": [sentence(reason) for reason in summary.reasons],
    }


def _plugin(run: PluginRun, results: PurePath) -> Record:
    return {
        "name": visible(run.name),
        "version": visible(run.version),
        "subject": visible(run.subject),
        "status": run.status.value,
        "seconds": round(run.seconds, 6),
        "reason": sentence(run.reason),
        "verdict": _verdict(run.verdict),
        "results": [_result(reference, results) for reference in run.results],
    }


def _result(reference: ResultRef, results: PurePath) -> Record:
    return {
        "name": visible(reference.name),
        "format": reference.format,
        "size_bytes": reference.size_bytes,
        "sha256": reference.sha256,
        "path": escape(bytes(results / reference.path)),
        "title": visible(reference.title) or None,
        "render": visible(reference.render) or None,
        "is_for_people": reference.is_for_people,
    }


def _optional(text: str | None) -> str | None:
    return None if text is None else visible(text)


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
