"""The engine in numbers, as Prometheus reads them (its text format, version 0.0.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from malbox_tui.model.machine import MachineState
from malbox_tui.model.overview import Overview
from malbox_tui.model.task import FINAL_STATES, TaskState
from malbox_tui.model.worker import WorkerState

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Samples = Iterable[tuple[Labels, float]]


def metrics_text(overview: Overview, version: str, streams: int) -> str:
    """All metrics. `streams` is how many read the event stream."""
    counts = overview.counts
    workers = Counter((worker.group, worker.state) for worker in overview.workers)
    machines = Counter(machine.state for machine in overview.machines)
    final = [state for state in TaskState if state in FINAL_STATES]
    families = (
        _gauge("build_info", "The program that serves.", [({"version": version}, 1)]),
        _gauge("tasks", "Tasks in each state.", [({"state": state}, counts.get(state, 0)) for state in TaskState]),
        _counter("tasks_ended_total", "Tasks that ended, by how.", [({"state": state}, counts.get(state, 0)) for state in final]),
        _gauge("queue_pending", "Tasks that wait to be taken.", [({}, counts.get(TaskState.PENDING, 0))]),
        _gauge(
            "workers",
            "Workers of each group in each state.",
            [({"group": g.name, "state": state}, workers[g.name, state]) for g in overview.groups for state in WorkerState],
        ),
        _gauge("workers_min", "Workers that a group keeps.", [({"group": g.name}, g.min_workers) for g in overview.groups]),
        _gauge("workers_max", "Workers that a group may have.", [({"group": g.name}, g.max_workers) for g in overview.groups]),
        _gauge("machines", "Machines in each state.", [({"state": state}, machines[state]) for state in MachineState]),
        _gauge("paused", "1 while no task is taken.", [({}, overview.paused is not None)]),
        _gauge("stopping", "1 while the engine ends.", [({}, overview.stopping is not None)]),
        _gauge("store_failing", "1 while the store takes nothing.", [({}, overview.store_failing)]),
        _gauge("troubles", "What an operator has to see to.", [({}, len(overview.troubles))]),
        _gauge("event_streams", "Readers of the event stream.", [({}, streams)]),
        _gauge("events_seq", "The number of the latest event.", [({}, overview.position.seq)]),
        _gauge(
            "disk_free_bytes",
            "Room on the disk under the data folder.",
            [] if overview.free_bytes is None else [({}, overview.free_bytes)],
        ),
    )
    return "".join(line for family in families for line in family)


def _gauge(name: str, help: str, samples: Samples) -> list[str]:
    return _family(name, "gauge", help, samples)


def _counter(name: str, help: str, samples: Samples) -> list[str]:
    return _family(name, "counter", help, samples)


def _family(name: str, kind: str, help: str, samples: Samples) -> list[str]:
    rows = [f"malbox_{name}{_braces(labels)} {value:.17g}\n" for labels, value in samples]
    return [f"# HELP malbox_{name} {help}\n", f"# TYPE malbox_{name} {kind}\n", *rows] if rows else []


def _braces(labels: Labels) -> str:
    inside = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
