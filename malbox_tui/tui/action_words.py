"""What somebody did, in words for one line: "canceled 3 tasks". Names of people, machines and groups are made safe to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from malbox_tui.model import commands
from malbox_tui.model.actions import LoggedAction, Retained, SampleTaken, Submitted
from malbox_tui.model.sample import visible

_WORDS: Mapping[type, tuple[str, str, Callable[[Any, tuple[int, ...]], str]]] = MappingProxyType(
    {
        commands.CancelTasks: ("canceled", "cancel", lambda action, ids: _tasks(ids)),
        commands.SetProfile: (
            "gave",
            "give",
            lambda action, ids: (
                f"{_tasks(ids)} {f'the profile {action.profile}' if action.profile else 'the profile of its kind'}"
            ),
        ),
        commands.SetPriority: ("gave", "give", lambda action, ids: f"{_tasks(ids)} priority {action.priority}"),
        commands.ChangeTasks: ("changed", "change", lambda action, ids: _tasks(ids)),
        commands.IdentifySamples: ("identified", "identify", lambda action, ids: _tasks(ids)),
        commands.RetryTasks: ("retried", "retry", lambda action, ids: _tasks(ids)),
        commands.ResizeGroup: ("resized", "resize", lambda action, ids: f"{_named(action.group)}{_limits(action)}"),
        commands.SaveLimits: ("saved", "save", lambda action, ids: "the limits of the worker groups"),
        commands.DisableMachines: ("disabled", "disable", lambda action, ids: _machines(action.machines)),
        commands.EnableMachines: ("enabled", "enable", lambda action, ids: _machines(action.machines)),
        commands.SetMachine: ("set", "set", lambda action, ids: _machines((action.machine.name,))),
        commands.RemoveMachines: ("removed", "remove", lambda action, ids: _machines(action.machines)),
        commands.ProbeMachines: ("probed", "probe", lambda action, ids: _machines(action.machines)),
        commands.AddWatch: ("added", "add", lambda action, ids: f"the watched folder {_named(action.watch.path)}"),
        commands.RemoveWatch: ("removed", "remove", lambda action, ids: f"the watched folder {_named(action.path)}"),
        commands.MarkSample: ("marked", "mark", lambda action, ids: _marks(action)),
        commands.PurgeSample: ("purged", "purge", lambda action, ids: f"sample {visible(action.sha256[:12])}{_with_tasks(ids)}"),
        commands.PausePool: ("paused", "pause", lambda action, ids: "the pool"),
        commands.ResumePool: ("resumed", "resume", lambda action, ids: "the pool"),
        commands.ReloadPlugins: ("read", "read", lambda action, ids: "the plugins again"),
        commands.Shutdown: ("stopped", "stop", lambda action, ids: f"the engine ({action.mode.value.replace('_', ' ')})"),
        SampleTaken: ("took", "take", lambda action, ids: f"sample {visible(action.sha256[:12])} as {action.form}"),
        Retained: ("removed", "remove", lambda action, ids: _retained(action)),
        Submitted: ("submitted", "submit", lambda action, ids: _samples(action)),
    }
)
"""An action → what was done, what was not, and to what (`ids`: the tasks)."""


def action_words(action: LoggedAction, done_to: tuple[int, ...], *, done: bool) -> str:
    """`canceled 3 tasks`, or `could not cancel task 7` when nothing was done. `done_to` are the tasks that it was done to."""
    did, do, to_what = _WORDS[type(action)]
    ids = done_to if done else getattr(action, "task_ids", ())
    return f"{did if done else f'could not {do}'} {to_what(action, ids)}"


def _named(name: str) -> str:
    """A name that is safe to show, and to be seen when it is empty."""
    return visible(name) or "''"


def _tasks(ids: tuple[int, ...]) -> str:
    return f"#{ids[0]}" if len(ids) == 1 else f"{len(ids)} tasks"


def _with_tasks(ids: tuple[int, ...]) -> str:
    return f" and {_tasks(ids)}" if ids else ""


def _retained(action: Retained) -> str:
    parts = [
        f"{count} {one if count == 1 else many}"
        for count, one, many in ((action.samples, "sample", "samples"), (action.results, "task's results", "tasks' results"))
        if count
    ]
    return f"{' and '.join(parts) or 'nothing'} ({action.size_bytes / 1024**2:.1f} MiB)"


def _limits(action: commands.ResizeGroup) -> str:
    limits = [
        f"{name} {value}" for name, value in (("min", action.min_workers), ("max", action.max_workers)) if value is not None
    ]
    return f" to {', '.join(limits)}" if limits else ""


def _machines(names: tuple[str, ...]) -> str:
    return f"machine {_named(names[0])}" if len(names) == 1 else f"{len(names)} machines"


def _marks(action: commands.MarkSample) -> str:
    parts = [*(f"+{_named(tag)}" for tag in action.tags), *(f"-{_named(tag)}" for tag in action.untags)]
    parts += ["with a note"] if action.note else []
    return f"sample {visible(action.sha256[:12])} {' '.join(parts)}".rstrip()


def _samples(action: Submitted) -> str:
    count = action.accepted + action.duplicates + action.refused
    parts = [f"{number} {word}" for number, word in ((action.duplicates, "known"), (action.refused, "refused")) if number]
    known_or_not = f" ({', '.join(parts)})" if parts else ""
    return f"{count} {'sample' if count == 1 else 'samples'}{known_or_not}"
