"""What an operator can ask of the engine. A command carries its actor, its targets, the state it expects them in, and a key
that makes sending it twice harmless."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.task import TaskState
from malbox_tui.model.watching import WatchSpec


class _Action(msgspec.Struct, frozen=True, tag_field="command", tag=True, kw_only=True):
    pass


class CancelTasks(_Action, frozen=True, kw_only=True):
    """End tasks for good. `expected` (None: any) is the state the operator saw them in."""

    task_ids: tuple[int, ...]
    expected: TaskState | None = None


class SetPriority(_Action, frozen=True, kw_only=True):
    """Give pending tasks another priority; higher goes first."""

    task_ids: tuple[int, ...]
    priority: int


class SetProfile(_Action, frozen=True, kw_only=True):
    """Give pending tasks another profile. An empty one leaves it to the kind of their content, and to the default."""

    task_ids: tuple[int, ...]
    profile: str


class ChangeTasks(_Action, frozen=True, kw_only=True):
    """Let pending tasks ask for something else; None leaves what there is, and an empty platform or arch asks for none any more."""

    task_ids: tuple[int, ...]
    task_type: str | None = None
    platform: str | None = None
    arch: str | None = None
    tags: tuple[str, ...] | None = None
    timeout_s: float | None = None


class IdentifySamples(_Action, frozen=True, kw_only=True):
    """Find out what the samples of pending tasks are, before their run."""

    task_ids: tuple[int, ...]


class RetryTasks(_Action, frozen=True, kw_only=True):
    """Make a new task for each of these final ones, with `retry_of` set."""

    task_ids: tuple[int, ...]


class ResizeGroup(_Action, frozen=True, kw_only=True):
    """Give a worker group other limits at once; None leaves one as it is."""

    group: str = "default"
    min_workers: int | None = None
    max_workers: int | None = None


class SaveLimits(_Action, frozen=True, kw_only=True):
    """Keep min and max of all worker groups for the next start. The operator's configuration file is left as it is."""


class DisableMachines(_Action, frozen=True, kw_only=True):
    """Take machines out for maintenance; one that serves a task when the task is done."""

    machines: tuple[str, ...]


class EnableMachines(_Action, frozen=True, kw_only=True):
    """Bring disabled, quarantined or missing machines back: each serves again as soon as it is proven clean."""

    machines: tuple[str, ...]


class SetMachine(_Action, frozen=True, kw_only=True):
    """Add a machine or, where there is one of its name, change it: once no task holds it, it is as given, and is proven clean."""

    machine: MachineSpec


class RemoveMachines(_Action, frozen=True, kw_only=True):
    """Take machines out of the pool for good; one that serves a task when the task is done. The hypervisor keeps them."""

    machines: tuple[str, ...]


class ProbeMachines(_Action, frozen=True, kw_only=True):
    """Try machines that no task holds: each is reverted and has to answer, now."""

    machines: tuple[str, ...]


class AddWatch(_Action, frozen=True, kw_only=True):
    """Watch a folder of the engine's host from now on, and after the next start."""

    watch: WatchSpec


class RemoveWatch(_Action, frozen=True, kw_only=True):
    """Watch a folder no more. What is being handed in is handed in to its end; nothing of the folder's is touched."""

    path: str


class MarkSample(_Action, frozen=True, kw_only=True):
    """Add to what people noted of a sample: a note (empty: none), tags, and tags that are to go."""

    sha256: str
    note: str = ""
    tags: tuple[str, ...] = ()
    untags: tuple[str, ...] = ()


class PurgeSample(_Action, frozen=True, kw_only=True):
    """Remove a sample for good: its tasks, their results, and all that was noted of it. Not while one of the tasks waits or runs."""

    sha256: str


class PausePool(_Action, frozen=True, kw_only=True):
    """Take no more tasks; what runs goes on."""


class ResumePool(_Action, frozen=True, kw_only=True):
    """Take tasks again."""


class ReloadPlugins(_Action, frozen=True, kw_only=True):
    """Read all plugins again, those that were given up included: tasks that begin afterwards have them as they are then."""


class ShutdownMode(StrEnum):
    """What happens to running tasks: finish them, give them back to the queue, or cancel them."""

    DRAIN = "drain"
    GIVE_BACK = "give_back"
    CANCEL = "cancel"


class Shutdown(_Action, frozen=True, kw_only=True):
    """Stop taking tasks and end. Asking again with a harder mode hardens the first.

    `within_s` bounds a drain: what runs longer is given back. None: the drain takes as long as the tasks do.
    """

    mode: ShutdownMode
    within_s: float | None = None


Action = (
    CancelTasks
    | SetPriority
    | SetProfile
    | ChangeTasks
    | IdentifySamples
    | RetryTasks
    | ResizeGroup
    | SaveLimits
    | DisableMachines
    | EnableMachines
    | SetMachine
    | RemoveMachines
    | ProbeMachines
    | AddWatch
    | RemoveWatch
    | MarkSample
    | PurgeSample
    | PausePool
    | ResumePool
    | ReloadPlugins
    | Shutdown
)


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """An action by someone, from somewhere (`origin`; empty: the console with the pool inside). A second command with the same `key`
    (empty: none) is answered as the first was and does nothing."""

    action: Action
    actor: str
    key: str = ""
    origin: str = ""


class TargetResult(msgspec.Struct, frozen=True):
    """What became of one target of a command; `new_task_id` is the task that a retry made."""

    task_id: int
    done: bool
    message: str
    new_task_id: int | None = None


class CommandOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a command did: `done` is false when it was refused whole or for every target."""

    done: bool
    message: str
    targets: tuple[TargetResult, ...] = ()
