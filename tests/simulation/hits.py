"""What a run of seeds has reached: each move of the task and machine tables, each fault, each action of an operator, each
ending, each time limit, and batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from malbox_tui.model.machine import MACHINE_MOVES, MachineState, MachineTrigger
from malbox_tui.model.task import TRANSITIONS, EndedBy, TaskState, Trigger
from malbox_tui.simulated.faults import Fault
from tests.simulation.plan import ACTIONS, ENDINGS

Hits = Counter[str]
"""Name of what was reached → how often."""

ENOUGH = 80
"""How often each thing has to be reached in `ENOUGH_IN` seeds."""
ENOUGH_IN = 500


def task_move(state: TaskState, trigger: Trigger) -> str:
    return f"task: {state} + {trigger}"


def machine_move(state: MachineState, trigger: MachineTrigger) -> str:
    return f"machine: {state} + {trigger}"


def fault(name: Fault) -> str:
    return f"fault: {name}"


def action(kind: type) -> str:
    return f"operator: {kind.__name__}"


def ending(name: str) -> str:
    return f"ending: {name}"


def limit(ended_by: EndedBy) -> str:
    return f"limit: {ended_by}"


BATCHES = ("batch: full", "batch: not full, and waited for")
WATCHED = "a machine was watched to the end"
REROUTED = "a task went back, to be served as its profile says"
LIMITS = (EndedBy.ANALYSIS_TIMEOUT, EndedBy.CRITICAL_TIMEOUT, EndedBy.STAGE_TIMEOUT)

NEVER_MADE = (
    # A task that nothing serves any more is held, and never failed by the engine.
    task_move(TaskState.PENDING, Trigger.FAIL),
    # A ready machine runs: it is switched off, and so passes `reverting`, before it is out for maintenance.
    machine_move(MachineState.READY, MachineTrigger.DISABLE),
)
"""Moves of the tables that the engine has no reason for."""

EXPECTED: tuple[str, ...] = (
    *(task_move(*move) for move in TRANSITIONS if task_move(*move) not in NEVER_MADE),
    *(machine_move(*move) for move in MACHINE_MOVES if machine_move(*move) not in NEVER_MADE),
    *(fault(name) for name in Fault),
    *(action(kind) for kind in ACTIONS),
    *(ending(name) for name in ENDINGS),
    *(limit(ended_by) for ended_by in LIMITS),
    *BATCHES,
    WATCHED,
)
"""All that has to be reached."""


def too_rare(hits: Hits, seeds: int) -> list[str]:
    """What was reached too rarely for that many seeds; nothing is asked of a run shorter than `ENOUGH_IN`."""
    if seeds < ENOUGH_IN:
        return []
    return [f"{name}: {hits[name]} hits in {seeds} seeds" for name in EXPECTED if hits[name] * ENOUGH_IN < ENOUGH * seeds]


def table(hits: Hits) -> Iterable[str]:
    """A line for each thing, in the order of `EXPECTED`; what was counted beside comes last."""
    names = [*EXPECTED, *sorted(set(hits) - set(EXPECTED))]
    width = max(map(len, names))
    return (f"{name:<{width}} {hits[name]:>9,}" for name in names)
