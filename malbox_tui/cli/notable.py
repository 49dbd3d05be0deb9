"""What needs a person's eye: tasks that didn't complete, that completed in part, or that found something."""

from __future__ import annotations

from malbox_tui.cli.text import sentence
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Classification, PluginStatus, Verdict
from malbox_tui.model.task import Task, TaskState

NOTABLE = frozenset({Classification.SUSPICIOUS, Classification.MALICIOUS})


def is_notable(record: TaskRecord) -> bool:
    """True for a final task that a person should look at."""
    return bool(shortfall(record.task)) or found_something(record.task.verdict)


def found_something(verdict: Verdict | None) -> bool:
    """True when the verdict is suspicious or malicious."""
    return verdict is not None and verdict.classification in NOTABLE


def shortfall(task: Task) -> str:
    """Why a final task has less than all its results, safe to print; empty when it has them, or isn't final."""
    if not task.state.is_final:
        return ""
    is_whole = any(run.results for run in task.plugins) and all(run.status is PluginStatus.COMPLETED for run in task.plugins)
    return "" if task.state is TaskState.COMPLETED and is_whole else sentence(task.reason)
