"""What `--json` prints of an engine and of what is done to it: objects of a stable shape, one a line, with `record`.

Times are RFC 3339 in UTC; names and other foreign text are escaped as `model.sample` does it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from malbox_tui.cli.records import Record
from malbox_tui.cli.text import sentence, timestamp
from malbox_tui.config.machine_tables import table_of
from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import CommandOutcome, TargetResult
from malbox_tui.model.events import Event, Gap
from malbox_tui.model.machine import MachineFacts, MachineView
from malbox_tui.model.overview import GroupView, Overview
from malbox_tui.model.sample import escape, visible
from malbox_tui.model.submission import Accepted
from malbox_tui.model.task import TaskState
from malbox_tui.model.watching import WatchView
from malbox_tui.model.worker import WorkerView


def target_record(command: str, target: TargetResult) -> Record:
    """What became of one task of a command."""
    return {
        "record": "outcome",
        "command": command,
        "task_id": target.task_id,
        "done": target.done,
        "message": sentence(target.message),
        "new_task_id": target.new_task_id,
    }


def outcome_record(command: str, outcome: CommandOutcome) -> Record:
    """What came of a command that is for no task."""
    return {"record": "outcome", "command": command, "done": outcome.done, "message": sentence(outcome.message)}


def accepted_record(receipt: Accepted) -> Record:
    """A sample that became a task."""
    return {
        "record": "accepted",
        "task_id": receipt.task_id,
        "name": escape(receipt.name.name),
        "origin": escape(receipt.name.origin),
        "sha256": receipt.sha256,
        "size_bytes": receipt.size_bytes,
    }


def group_record(group: GroupView) -> Record:
    """A worker group."""
    return {
        "record": "group",
        "name": visible(group.name),
        "min": group.min_workers,
        "max": group.max_workers,
        "active": group.active,
        "busy": group.busy,
        "slots": group.slots,
        "batch_size": group.batch_size,
        "takes": sentence(group.takes),
        "saved": group.saved,
    }


def worker_record(worker: WorkerView) -> Record:
    """A worker."""
    return {
        "record": "worker",
        "id": worker.id,
        "group": visible(worker.group),
        "kind": worker.kind.value,
        "state": worker.state.value,
        "since": timestamp(worker.since),
        "started_at": timestamp(worker.started_at),
        "task_ids": list(worker.task_ids),
        "slots": worker.slots,
        "tasks_done": worker.tasks_done,
    }


def watch_record(watch: WatchView) -> Record:
    """A watched folder."""
    return {
        "record": "watch",
        "path": visible(watch.path),
        "state": watch.state.value,
        "recursive": watch.recursive,
        "afterwards": watch.afterwards,
        "added": watch.added,
        "known": watch.known,
        "refused": watch.refused,
        "waiting": watch.waiting,
        "left_out": watch.left_out,
        "problem": sentence(watch.problem),
    }


def machine_record(machine: MachineView) -> Record:
    """A machine."""
    return {
        "record": "machine",
        "name": visible(machine.name),
        "provider": visible(machine.provider),
        "platform": visible(machine.platform),
        "arch": visible(machine.arch),
        "tags": [visible(tag) for tag in machine.tags],
        "state": machine.state.value,
        "since": timestamp(machine.since),
        "reason": sentence(machine.reason),
        "task_id": machine.task_id,
        "failures": machine.failures,
        "leaving": machine.leaving,
    }


def machine_page_record(machine: MachineView) -> Record:
    """All about a machine: `configuration` has the keys of `[[machines]]` that it was given."""
    facts = machine.facts or MachineFacts()
    return {
        **machine_record(machine),
        "configuration": {} if machine.spec is None else _safe(table_of(machine.spec)),
        "memory_mb": facts.memory_mb,
        "vcpus": facts.vcpus,
        "warnings": [sentence(warning) for warning in facts.warnings],
        "screenshot_at": timestamp(machine.screenshot_at),
        "history": [
            {
                "at": timestamp(moment.at),
                "state": moment.state.value,
                "task_id": moment.task_id,
                "reason": sentence(moment.reason),
            }
            for moment in machine.history
        ],
    }


def stats_record(counts: dict[TaskState, int], overview: Overview | None, paused: str | None) -> Record:
    """Numbers of the store, why no task is taken (null: tasks are, by a running engine), and of the engine if one runs (else null)."""
    engine = None
    if overview is not None:
        engine = {
            "clock": timestamp(overview.clock),
            "epoch": overview.position.epoch,
            "workers": len(overview.workers),
            "busy": sum(group.busy for group in overview.groups),
            "ended_per_minute": list(overview.ended_per_minute),
            "stopping": overview.stopping,
            "isolation": sentence(overview.isolation),
            "free_bytes": overview.free_bytes,
            "troubles": [sentence(trouble) for trouble in overview.troubles],
        }
    tasks = {state.value: counts.get(state, 0) for state in TaskState}
    return {"record": "stats", "tasks": tasks, "paused": _optional(paused), "engine": engine}


def event_record(event: Event) -> Record:
    """An event: its place, its kind as `event`, and what it says."""
    body: dict[str, Any] = msgspec.to_builtins(event.body)
    return {
        "record": "event",
        "seq": event.position.seq,
        "epoch": event.position.epoch,
        "at": timestamp(event.at),
        "durable": event.durable,
        **_safe(body),
    }


def gap_record(gap: Gap) -> Record:
    """A place where events were dropped."""
    return {"record": "gap", "resumes_after": gap.resumes_after.seq}


def action_record(record: ActionRecord) -> Record:
    """What somebody did."""
    return {
        "record": "action",
        "number": record.number,
        "at": timestamp(record.at),
        "actor": visible(record.actor),
        "origin": sentence(record.origin),
        "action": _safe(msgspec.to_builtins(record.action)),
        "done": record.done,
        "message": sentence(record.message),
        "task_ids": list(record.done_to),
    }


def _optional(text: str | None) -> str | None:
    return None if text is None else sentence(text)


def _safe(value: Any) -> Any:
    """The same with all texts on one line and safe to print."""
    if isinstance(value, str):
        return sentence(value)
    if isinstance(value, dict):
        return {sentence(key): _safe(item) for key, item in value.items()}
    return [_safe(item) for item in value] if isinstance(value, list) else value
