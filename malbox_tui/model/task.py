"""A task and the only moves it can make.

A task is one analysis of one sample. It is a frozen value; every move gives a new one (`moved`). The moves are the table
`TRANSITIONS`; whatever is not in it raises `IllegalTransition`. Three things hold at every moment:

1. A final state never changes.
2. A task outside `pending` and the final states is owned: `worker`, `token` and `lease_until` are set; else
   `token` and `lease_until` are not.
3. A task in `stopping` carries the outcome that it will end with, so a crash there settles it rightly.

Times are seconds since the epoch (UTC); durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from malbox_tui.model.errors import IllegalTransition
from malbox_tui.model.plugin_wishes import NO_WISHES, PluginWishes
from malbox_tui.model.report import PluginRun, Verdict


class TaskState(StrEnum):
    """Where a task is in its life. The names are Malbox's own."""

    PENDING = "pending"
    INITIALIZING = "initializing"
    PREPARING_RESOURCES = "preparing_resources"
    RUNNING = "running"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"

    __hash__ = str.__hash__
    """That of enums is written in Python, and a state is looked up at every move."""

    @property
    def is_final(self) -> bool:
        """True for the four states that never change again."""
        return self in FINAL_STATES

    @property
    def is_owned(self) -> bool:
        """True while one attempt of one worker owns the task."""
        return self in OWNED_STATES


FINAL_STATES = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.TIMED_OUT, TaskState.CANCELED})
OWNED_STATES = frozenset({TaskState.INITIALIZING, TaskState.PREPARING_RESOURCES, TaskState.RUNNING, TaskState.STOPPING})


class Trigger(StrEnum):
    """What makes a task move."""

    CLAIM = "claim"
    PREPARE = "prepare"
    RUN = "run"
    STOP = "stop"
    COMPLETE = "complete"
    FAIL = "fail"
    TIME_OUT = "time_out"
    CANCEL = "cancel"
    GIVE_BACK = "give_back"

    __hash__ = str.__hash__


_S, _T = TaskState, Trigger

TRANSITIONS: Mapping[tuple[TaskState, Trigger], TaskState] = MappingProxyType(
    {
        (_S.PENDING, _T.CLAIM): _S.INITIALIZING,
        (_S.PENDING, _T.CANCEL): _S.CANCELED,
        (_S.PENDING, _T.FAIL): _S.FAILED,
        (_S.INITIALIZING, _T.PREPARE): _S.PREPARING_RESOURCES,
        (_S.INITIALIZING, _T.RUN): _S.RUNNING,
        (_S.INITIALIZING, _T.STOP): _S.STOPPING,
        (_S.INITIALIZING, _T.GIVE_BACK): _S.PENDING,
        (_S.PREPARING_RESOURCES, _T.RUN): _S.RUNNING,
        (_S.PREPARING_RESOURCES, _T.STOP): _S.STOPPING,
        (_S.PREPARING_RESOURCES, _T.GIVE_BACK): _S.PENDING,
        (_S.RUNNING, _T.STOP): _S.STOPPING,
        (_S.RUNNING, _T.GIVE_BACK): _S.PENDING,
        (_S.STOPPING, _T.COMPLETE): _S.COMPLETED,
        (_S.STOPPING, _T.FAIL): _S.FAILED,
        (_S.STOPPING, _T.TIME_OUT): _S.TIMED_OUT,
        (_S.STOPPING, _T.CANCEL): _S.CANCELED,
    }
)
"""(state, trigger) → next state. A host-only task goes from initializing to running; `stopping` ends as its outcome says."""

FINAL_TRIGGERS: Mapping[TaskState, Trigger] = MappingProxyType(
    {
        _S.COMPLETED: _T.COMPLETE,
        _S.FAILED: _T.FAIL,
        _S.TIMED_OUT: _T.TIME_OUT,
        _S.CANCELED: _T.CANCEL,
    }
)
"""final state → the trigger that ends a stopping task in it."""


class EndedBy(StrEnum):
    """What ended a task. Each final task has exactly one."""

    FINISHED = "finished"
    ANALYSIS_TIMEOUT = "analysis_timeout"
    CRITICAL_TIMEOUT = "critical_timeout"
    STAGE_TIMEOUT = "stage_timeout"
    USER = "user"
    PLUGIN_ERROR = "plugin_error"
    GUEST_LOST = "guest_lost"
    GUEST_NEVER_UP = "guest_never_up"
    MACHINE_FAILED = "machine_failed"
    UNSERVICEABLE = "unserviceable"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    SAMPLE_CHANGED = "sample_changed"


class RequirementClass(msgspec.Struct, frozen=True, gc=False):
    """What a task needs to be served, and so what a claim is filtered by. None and empty mean: no demand.

    `avoid` names machines that failed this task: others are tried as long as there are any that could serve. The garbage collector
    needs no eye on it, nor so on the entries of a queue of a million: it holds nothing but strings.
    """

    task_type: str = "static"
    platform: str | None = None
    arch: str | None = None
    tags: tuple[str, ...] = ()
    pin: str | None = None
    avoid: tuple[str, ...] = ()

    @property
    def needs_machine(self) -> bool:
        """False for a host-only task: its plugins run on this host, and nothing of it in a guest."""
        return self.task_type not in HOST_ONLY_TYPES and (self.task_type == "dynamic" or self.asks_for_machine)

    @property
    def asks_for_machine(self) -> bool:
        """Whether it names something that only a machine has."""
        return bool(self.platform or self.arch or self.tags or self.pin)

    def __str__(self) -> str:
        """For a person: "windows/x64, tag office, machine win10-1"; a host-only one by its type."""
        if not self.needs_machine:
            return self.task_type
        system = "/".join(part for part in (self.platform, self.arch) if part)
        parts = [system, *(f"tag {tag}" for tag in self.tags), f"machine {self.pin}" if self.pin else ""]
        return ", ".join(part for part in parts if part) or "any"


HOST_ONLY_TYPES = frozenset({"static", "archive"})
"""Task types whose work never enters a guest."""


class RunOptions(msgspec.Struct, frozen=True, gc=False):
    """How a sample is run in its guest: with which arguments, and whether the machine's memory is kept when it ends."""

    arguments: tuple[str, ...] = ()
    memory_dump: bool = False


class ChosenBy(StrEnum):
    """Who or what chose a profile."""

    HAND = "hand"
    KIND = "kind"
    DEFAULT = "default"


class ChosenProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Which profile a task has, and why. An empty `name`: none so far. `kind`: that of the content for which it was chosen.

    `timeout_s` and `enforce_timeout` (None: nothing) and `requires` are what was asked of the task itself, without any profile;
    `stays_static`: to be analysed on this host alone was, whatever a profile says.
    """

    name: str = ""
    by: ChosenBy = ChosenBy.DEFAULT
    kind: str = ""
    timeout_s: float | None = None
    enforce_timeout: bool | None = None
    requires: RequirementClass = RequirementClass()
    stays_static: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the kind of the content has no say in it any more."""
        return self.by is not ChosenBy.DEFAULT

    def __str__(self) -> str:
        """For a person: "office, for kind ole"; empty where there is none."""
        why = {ChosenBy.HAND: "chosen by hand", ChosenBy.KIND: f"for kind {self.kind}", ChosenBy.DEFAULT: "the default"}
        return f"{self.name}, {why[self.by]}" if self.name else ""


class Outcome(msgspec.Struct, frozen=True):
    """How an attempt ended: decided before `stopping`, stored with it, and recorded as the final state after it."""

    state: TaskState
    ended_by: EndedBy
    reason: str
    verdict: Verdict | None = None
    plugins: tuple[PluginRun, ...] = ()


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One analysis of one sample, as stored.

    `stages` maps a state's name to the seconds spent in it: `pending` summed over all waits, the others of the latest attempt.
    `attempts` counts the attempts that were not interrupted; `crashes` those in a row that died with the engine.
    With `enforce_timeout` its guest is watched for the whole `timeout_s`, also when the sample has ended before.
    `profile`: None where there were no profiles when it was made. `owner`: who it belongs to; empty: nobody.
    `machine` is the one that serves the task, or served the attempt that ended it; None for a host-only task.
    `reason` is, for a final task, the sentence that says how it ended; for a pending one, why it waits, or empty.
    """

    id: int
    sha256: str
    type: str = "static"
    requires: RequirementClass = RequirementClass()
    priority: int = 1
    timeout_s: float = 300.0
    enforce_timeout: bool = False
    run: RunOptions = RunOptions()
    profile: ChosenProfile | None = None
    wishes: PluginWishes = NO_WISHES
    owner: str = ""
    state: TaskState = TaskState.PENDING
    attempts: int = 0
    crashes: int = 0
    retry_of: int | None = None
    worker: str | None = None
    machine: str | None = None
    token: str | None = None
    lease_until: float | None = None
    created_at: float
    stage_since: float
    started_at: float | None = None
    finished_at: float | None = None
    stages: dict[str, float] = {}
    outcome: Outcome | None = None
    ended_by: EndedBy | None = None
    reason: str = ""
    verdict: Verdict | None = None
    plugins: tuple[PluginRun, ...] = ()


class Claim(msgspec.Struct, frozen=True):
    """Ownership of a task for one attempt: the task as it was claimed, and the token that fences the attempt."""

    task: Task
    token: str


def next_state(state: TaskState, trigger: Trigger) -> TaskState:
    """The state that `trigger` leads to. Raises `IllegalTransition` when the table has no such move."""
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalTransition(state, trigger) from None


def moved(task: Task, trigger: Trigger, at: float) -> Task:
    """`task` after `trigger` at time `at`: the new state, and the time spent in the old one added to `stages`.

    A clock that went backwards counts as no time. Raises `IllegalTransition`.
    """
    state = next_state(task.state, trigger)
    spent = max(0.0, at - task.stage_since)
    stages = {**task.stages, task.state.value: task.stages.get(task.state.value, 0.0) + spent}
    return msgspec.structs.replace(task, state=state, stages=stages, stage_since=at)


def claimed(task: Task, worker: str, token: str, at: float, lease_until: float, machine: str | None = None) -> Task:
    """A pending task as its new owner holds it; the stages of an earlier attempt are forgotten, its waits are not."""
    owned = moved(task, Trigger.CLAIM, at)
    return msgspec.structs.replace(
        owned,
        worker=worker,
        machine=machine,
        token=token,
        lease_until=lease_until,
        attempts=task.attempts + 1,
        started_at=at,
        stages={TaskState.PENDING.value: owned.stages[TaskState.PENDING.value]},
        reason="",
    )


def stopping(task: Task, outcome: Outcome, at: float) -> Task:
    """An owned task that has its outcome and now only cleans up."""
    return msgspec.structs.replace(moved(task, Trigger.STOP, at), outcome=outcome)


def settled(task: Task, at: float) -> Task:
    """A stopping task in the final state that its outcome names, owned by nobody."""
    if task.outcome is None:
        raise IllegalTransition(task.state, "settle")
    outcome = task.outcome
    final = moved(task, FINAL_TRIGGERS[outcome.state], at)
    return msgspec.structs.replace(
        _released(final),
        finished_at=at,
        crashes=0,
        outcome=None,
        ended_by=outcome.ended_by,
        reason=outcome.reason,
        verdict=outcome.verdict,
        plugins=outcome.plugins,
    )


def given_back(task: Task, at: float, reason: str, *, crashed: bool = False, avoid: str | None = None) -> Task:
    """An owned task whose attempt was interrupted: pending again, the attempt not counted, a crash counted as such.

    `avoid` is the machine that failed it, if one did.
    """
    pending = moved(task, Trigger.GIVE_BACK, at)
    requires = task.requires if avoid is None else msgspec.structs.replace(task.requires, avoid=(*task.requires.avoid, avoid))
    return msgspec.structs.replace(
        _released(pending),
        requires=requires,
        attempts=max(0, task.attempts - 1),
        crashes=task.crashes + 1 if crashed else task.crashes,
        started_at=None,
        outcome=None,
        reason=reason,
        stages={TaskState.PENDING.value: task.stages.get(TaskState.PENDING.value, 0.0)},
    )


def ended_while_pending(task: Task, trigger: Trigger, at: float, ended_by: EndedBy, reason: str) -> Task:
    """A pending task that ends without an attempt: canceled by a person, or failed because it can't be served."""
    final = moved(task, trigger, at)
    return msgspec.structs.replace(final, finished_at=at, ended_by=ended_by, reason=reason)


def _released(task: Task) -> Task:
    kept = (task.worker, task.machine) if task.state.is_final else (None, None)
    return msgspec.structs.replace(task, token=None, lease_until=None, worker=kept[0], machine=kept[1])
