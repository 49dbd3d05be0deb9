"""What happened in the engine. One event a change, so that a log of events can be replayed to the same screen.

An event's place is `(engine_id, epoch, seq)`: the store's identity, the number of the engine's start, and a number that grows by one
with each event and never repeats in one store.
"""

from __future__ import annotations

import msgspec

from malbox_tui.model.actions import LoggedAction
from malbox_tui.model.machine import MachineState
from malbox_tui.model.report import PluginStatus, ResultRef, Verdict
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from malbox_tui.model.upkeep import Cause
from malbox_tui.model.worker import StopReason, WorkerKind, WorkerState


class _Body(msgspec.Struct, frozen=True, tag_field="event", tag=True, kw_only=True):
    pass


class _TaskBody(_Body, frozen=True, tag=True, kw_only=True):
    task_id: int


class TaskCreated(_TaskBody, frozen=True, kw_only=True):
    """A submission became a task."""

    sha256: str
    type: str
    priority: int
    name: str
    retry_of: int | None = None


class TaskStarting(_TaskBody, frozen=True, kw_only=True):
    """A worker took the task and loads it; `machine` is reserved for it."""

    worker: str
    attempt: int
    machine: str | None = None


class TaskStageChanged(_TaskBody, frozen=True, kw_only=True):
    """The task moved on to another state that is not final."""

    state: TaskState


class TaskGivenBack(_TaskBody, frozen=True, kw_only=True):
    """An attempt was interrupted; the task is pending again."""

    reason: str
    crashes: int


class TaskPriorityChanged(_TaskBody, frozen=True, kw_only=True):
    """A pending task got another priority."""

    priority: int


class TaskProfileChanged(_TaskBody, frozen=True, kw_only=True):
    """A pending task got another profile, in words (empty: none), and with it perhaps other needs."""

    profile: str
    requires: RequirementClass


class TaskChanged(_TaskBody, frozen=True, kw_only=True):
    """A pending task asks for something else now."""

    requires: RequirementClass
    timeout_s: float


class TaskIdentified(_TaskBody, frozen=True, kw_only=True):
    """It was found out what the sample of a pending task is."""

    kind: str
    tags: tuple[str, ...] = ()


class _TaskEnded(_TaskBody, frozen=True, tag=True, kw_only=True):
    ended_by: EndedBy
    reason: str
    verdict: Verdict | None = None


class TaskCompleted(_TaskEnded, frozen=True, kw_only=True):
    """The task ended with evidence, or with the statement that there is none."""


class TaskFailed(_TaskEnded, frozen=True, kw_only=True):
    """The task ended without what was asked of it."""


class TaskTimedOut(_TaskEnded, frozen=True, kw_only=True):
    """A time limit ended the task; its partial results are kept."""


class TaskCanceled(_TaskEnded, frozen=True, kw_only=True):
    """A person ended the task."""


class WorkerStarted(_Body, frozen=True, kw_only=True):
    """A worker entered its group."""

    worker: str
    group: str
    kind: WorkerKind


class WorkerChanged(_Body, frozen=True, kw_only=True):
    """A worker's kind or state is another one now; `task_id` is what it holds."""

    worker: str
    kind: WorkerKind
    state: WorkerState
    task_id: int | None = None


class WorkerStopped(_Body, frozen=True, kw_only=True):
    """A worker left its group; `detail` names the error when the reason is one."""

    worker: str
    group: str
    reason: StopReason
    detail: str = ""


class GroupResized(_Body, frozen=True, kw_only=True):
    """A worker group has other limits now."""

    group: str
    min_workers: int
    max_workers: int


class MachineChanged(_Body, frozen=True, kw_only=True):
    """A machine is in another state now; `task_id` is what holds it, `reason` why it can't serve."""

    machine: str
    state: MachineState
    task_id: int | None = None
    reason: str = ""


class StoreFailing(_Body, frozen=True, kw_only=True):
    """The store takes nothing: no task is taken until it does. Passing news: it can't be stored."""

    problem: str


class StoreWorks(_Body, frozen=True, kw_only=True):
    """The store takes what it is given again: that this is stored proves it."""


class PoolPaused(_Body, frozen=True, kw_only=True):
    """No task is taken until the pool is resumed; what runs goes on."""

    reason: str


class PoolResumed(_Body, frozen=True, kw_only=True):
    """Tasks are taken again."""


class PlannedStep(msgspec.Struct, frozen=True):
    """One plugin in a task's plan: when it begins, in words, or why it doesn't take part."""

    plugin: str
    when: str
    takes_part: bool = True


class PluginsPlanned(_TaskBody, frozen=True, kw_only=True):
    """The plugins that are about to work on a task, in their order. Passing news."""

    steps: tuple[PlannedStep, ...]


class PluginStarted(_TaskBody, frozen=True, kw_only=True):
    """A plugin began its work on a task."""

    plugin: str


class PluginStopped(_TaskBody, frozen=True, kw_only=True):
    """A plugin ended its work on a task, or was skipped for the `reason`."""

    plugin: str
    status: PluginStatus
    seconds: float
    reason: str = ""


class PluginResultAvailable(_TaskBody, frozen=True, kw_only=True):
    """A plugin's result is in the result store."""

    plugin: str
    result_name: str


class PluginProgress(_TaskBody, frozen=True, kw_only=True):
    """How far a plugin says it is, from 0 to 1. Passing news: it is told and not stored."""

    plugin: str
    fraction: float
    message: str


class ScreenshotTaken(_TaskBody, frozen=True, kw_only=True):
    """A picture of the screen of a task's machine was kept, and can be read. Passing news."""

    machine: str
    result: ResultRef


class SampleMarked(_Body, frozen=True, kw_only=True):
    """Somebody noted something of a sample: a note (empty: none), tags, and tags that went."""

    sha256: str
    actor: str
    note: str = ""
    tags: tuple[str, ...] = ()
    untags: tuple[str, ...] = ()


class SampleRemoved(_Body, frozen=True, kw_only=True):
    """A sample is gone, with its tasks, of which so many were in each final state."""

    sha256: str
    cause: Cause
    task_ids: tuple[int, ...]
    states: dict[TaskState, int]


class ResultsRemoved(_Body, frozen=True, kw_only=True):
    """The results of tasks are gone; what the tasks came to stays."""

    task_ids: tuple[int, ...]
    cause: Cause


class ActionTaken(_Body, frozen=True, kw_only=True):
    """Somebody did something, or was refused it: what the log of actions keeps (see `ActionRecord`)."""

    actor: str
    action: LoggedAction
    done: bool
    message: str
    origin: str = ""
    done_to: tuple[int, ...] = ()


class EngineStarted(_Body, frozen=True, kw_only=True):
    """The engine began an epoch; `recovered` tasks had been interrupted by the end of the one before."""

    recovered: int


class EngineStopping(_Body, frozen=True, kw_only=True):
    """The engine takes no more tasks; `mode` is drain, give_back or cancel."""

    mode: str


class ConfigReloaded(_Body, frozen=True, kw_only=True):
    """The engine goes on with a configuration that was read again."""


class FolderTold(_Body, frozen=True, kw_only=True):
    """There is something to say of a watched folder: a sentence; `bad`: it is a trouble, or a refusal."""

    folder: str
    message: str
    bad: bool


EventBody = (
    TaskCreated
    | TaskStarting
    | TaskStageChanged
    | TaskGivenBack
    | TaskPriorityChanged
    | TaskProfileChanged
    | TaskChanged
    | TaskIdentified
    | TaskCompleted
    | TaskFailed
    | TaskTimedOut
    | TaskCanceled
    | WorkerStarted
    | WorkerChanged
    | WorkerStopped
    | GroupResized
    | MachineChanged
    | StoreFailing
    | StoreWorks
    | PoolPaused
    | PoolResumed
    | PluginsPlanned
    | PluginStarted
    | PluginStopped
    | PluginResultAvailable
    | PluginProgress
    | ScreenshotTaken
    | SampleMarked
    | SampleRemoved
    | ResultsRemoved
    | ActionTaken
    | EngineStarted
    | EngineStopping
    | ConfigReloaded
    | FolderTold
)

PASSING = (PluginsPlanned, PluginProgress, ScreenshotTaken, StoreFailing)
"""News that is told and not stored."""

TaskEnded = TaskCompleted | TaskFailed | TaskTimedOut | TaskCanceled


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in an engine's stream of events; the next event has a higher `seq`."""

    engine_id: str
    epoch: int
    seq: int


class Event(msgspec.Struct, frozen=True):
    """One thing that happened, when (seconds since the epoch), and where in the stream.

    Progress and other passing news have the place of the durable event before them and `durable` False: they are not stored.
    """

    position: Position
    at: float
    body: EventBody
    durable: bool = True


class Gap(msgspec.Struct, frozen=True):
    """A subscriber fell behind: events before `resumes_after` were dropped for it. It re-reads the overview."""

    resumes_after: Position
