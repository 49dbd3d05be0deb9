"""Carries out commands. Each action is one method; what it did to each target is said, and a refused command changes nothing."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from malbox_tui.engine.action_log import ActionLog
from malbox_tui.engine.attempt import Attempt
from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.engine.identifying import Identifying
from malbox_tui.engine.lifecycle import Lifecycle
from malbox_tui.engine.machine_pool import MachinePool
from malbox_tui.engine.profiles import Profiles
from malbox_tui.engine.queue import MAX_PRIORITY
from malbox_tui.engine.sample_marks import SampleMarks
from malbox_tui.engine.task_changes import TaskChanges
from malbox_tui.engine.upkeep import Upkeep
from malbox_tui.engine.waiting import WaitingRoom
from malbox_tui.engine.worker_pool import WorkerPool
from malbox_tui.model.commands import (
    AddWatch,
    CancelTasks,
    ChangeTasks,
    Command,
    CommandOutcome,
    DisableMachines,
    EnableMachines,
    IdentifySamples,
    MarkSample,
    PausePool,
    ProbeMachines,
    PurgeSample,
    ReloadPlugins,
    RemoveMachines,
    RemoveWatch,
    ResizeGroup,
    ResumePool,
    RetryTasks,
    SaveLimits,
    SetMachine,
    SetPriority,
    SetProfile,
    Shutdown,
    ShutdownMode,
    TargetResult,
)
from malbox_tui.model.errors import (
    ConfigError,
    ManifestError,
    PluginUnavailable,
    RefusedCommand,
    StaleTask,
    StoreError,
    UnknownTask,
)
from malbox_tui.model.queries import TaskFilter, TaskQuery, TaskRecord
from malbox_tui.model.task import EndedBy, RunOptions, TaskState, Trigger
from malbox_tui.ports import Clock, LimitsStore, MachineBook, NewTask, PauseBook, Store, WatchKeeper

REMEMBERED_KEYS = 1000
OPERATOR = "operator"
"""The cause of a pause that a person asked for."""


class CommandDesk:
    """Carries out the actions of operators. `attempts` and `tokens` are the engine's own books of what runs, by task id."""

    def __init__(
        self,
        *,
        lifecycle: Lifecycle,
        store: Store,
        wall: Clock,
        pool: WorkerPool,
        machines: MachinePool,
        waiting: WaitingRoom,
        limits: LimitsStore | None,
        book: MachineBook | None,
        pauses: PauseBook | None,
        attempts: Mapping[int, Attempt],
        tokens: Mapping[int, CancelToken],
        log: ActionLog,
        stop: Callable[[ShutdownMode, float | None], None],
        reload_plugins: Callable[[], Awaitable[str]],
        profiles: Profiles,
        upkeep: Upkeep | None,
        critical_timeout_s: Callable[[], float],
        identifying: Identifying | None,
    ) -> None:
        self._lifecycle = lifecycle
        self._store = store
        self._wall = wall
        self._pool = pool
        self._machines = machines
        self._waiting = waiting
        self._limits = limits
        self._book = book
        self._pauses = pauses
        self._attempts = attempts
        self._tokens = tokens
        self._log = log
        self._stop = stop
        self._reload_plugins = reload_plugins
        self._profiles = profiles
        self._identifying = identifying
        self.watches: WatchKeeper | None = None
        """Who watches folders beside this engine; None: nobody does."""
        self._changes = TaskChanges(lifecycle, profiles, tokens, critical_timeout_s)
        self._answered: OrderedDict[str, asyncio.Future[CommandOutcome]] = OrderedDict()
        self._handlers: dict[type, Callable[[Any, str], Awaitable[CommandOutcome]]] = {
            CancelTasks: self._cancel_tasks,
            SetPriority: self._set_priority,
            SetProfile: self._set_profile,
            ChangeTasks: self._change_tasks,
            IdentifySamples: self._identify_samples,
            RetryTasks: self._retry_tasks,
            ResizeGroup: self._resize,
            SaveLimits: self._save_limits,
            DisableMachines: self._disable_machines,
            EnableMachines: self._enable_machines,
            ProbeMachines: self._probe_machines,
            SetMachine: self._set_machine,
            RemoveMachines: self._remove_machines,
            AddWatch: self._add_watch,
            RemoveWatch: self._remove_watch,
            MarkSample: SampleMarks(store, wall).carry_out,
            PurgeSample: self._purge if upkeep is None else upkeep.purge,
            PausePool: self._pause,
            ResumePool: self._resume,
            ReloadPlugins: self._read_plugins,
            Shutdown: self._shut_down,
        }

    async def do(self, command: Command) -> CommandOutcome:
        """Carry out a command, or give the answer that its key had before (of the latest `REMEMBERED_KEYS`)."""
        if not command.key:
            outcome = await self._carry_out(command)
            await self._log.until_kept(self._log.command(command, outcome), command)
            return outcome
        while (earlier := self._answered.get(command.key)) is not None:
            await asyncio.wait({earlier})
            if not earlier.cancelled():
                return earlier.result()
        answer: asyncio.Future[CommandOutcome] = asyncio.get_running_loop().create_future()
        self._answered[command.key] = answer
        if len(self._answered) > REMEMBERED_KEYS:
            self._answered.popitem(last=False)
        try:
            outcome = await self._carry_out(command)
        except BaseException:
            # Not answered, so not remembered: sending it again may do it.
            self._answered.pop(command.key, None)
            answer.cancel()
            raise
        answer.set_result(outcome)  # remembered before it is waited for: what is done is not to be done again
        await self._log.until_kept(self._log.command(command, outcome), command)
        return outcome

    async def _carry_out(self, command: Command) -> CommandOutcome:
        try:
            return await self._handlers[type(command.action)](command.action, command.actor)
        except (RefusedCommand, StoreError) as error:
            return CommandOutcome(done=False, message=str(error))
        except BaseException as error:
            why = "cancelled by who asked" if isinstance(error, asyncio.CancelledError) else f"unexpected {type(error).__name__}"
            self._log.command(command, CommandOutcome(done=False, message=f"Broken off ({why}); some of it may be done."))
            raise

    # --- tasks -------------------------------------------------------------------------------------------------------------------

    async def _cancel_tasks(self, action: CancelTasks, actor: str) -> CommandOutcome:
        targets = [await self._each(task_id, self._cancel(task_id, action.expected, actor)) for task_id in action.task_ids]
        return _summed("canceled", targets)

    async def _cancel(self, task_id: int, expected: TaskState | None, actor: str) -> TargetResult:
        while True:
            record = await self._record(task_id)
            if record is None:
                return _not_done(task_id, str(UnknownTask(task_id)))
            state = record.task.state
            if expected is not None and state is not expected:
                return _not_done(task_id, f"Task {task_id} is {state} by now, not {expected}; it was left alone.")
            if state.is_final:
                return _not_done(task_id, f"Task {task_id} is already {state}.")
            if (token := self._tokens.get(task_id)) is not None:
                return self._cancel_attempt(task_id, token, actor)
            if state.is_owned:
                problem = f"Task {task_id} is {state}, and no worker here holds it; it is put right when its lease runs out."
                return _not_done(task_id, problem)
            try:
                await self._lifecycle.end_pending(
                    record.task, Trigger.CANCEL, EndedBy.USER, f"Canceled by {actor} while it waited."
                )
            except StaleTask:
                # A worker took it between the look and the write; look again.
                continue
            return TargetResult(task_id, True, f"Task {task_id} is canceled.")

    def _cancel_attempt(self, task_id: int, token: CancelToken, actor: str) -> TargetResult:
        attempt = self._attempts.get(task_id)
        if attempt is not None and attempt.outcome is not None:
            return _not_done(task_id, f"Task {task_id} is ending already, as {attempt.outcome.state}.")
        if token.cancel(CancelReason.USER, actor) or token.reason is CancelReason.USER:
            return TargetResult(task_id, True, f"Task {task_id} was asked to stop.")
        return _not_done(task_id, f"Task {task_id} is being stopped already ({token.reason}).")

    async def _set_priority(self, action: SetPriority, _actor: str) -> CommandOutcome:
        if abs(action.priority) > MAX_PRIORITY:
            raise RefusedCommand(f"Priority {action.priority}: it must be between {-MAX_PRIORITY} and {MAX_PRIORITY}.")
        return _summed("re-ordered", await self._each_record(action.task_ids, partial(self._reprioritize, action.priority)))

    async def _reprioritize(self, priority: int, record: TaskRecord) -> str:
        task = record.task
        if task.state is not TaskState.PENDING or task.id in self._tokens:
            raise RefusedCommand(f"Task {task.id} is {task.state}; only a waiting task can be re-ordered.")
        await self._lifecycle.set_priority(task, priority)
        return f"Task {task.id} has priority {priority}."

    async def _set_profile(self, action: SetProfile, _actor: str) -> CommandOutcome:
        if action.profile:
            self._profiles.named(action.profile)
        targets = await self._each_record(action.task_ids, partial(self._give_profile, action.profile))
        return _summed("given the profile" if action.profile else "left to their kind", targets)

    async def _give_profile(self, name: str, record: TaskRecord) -> str:
        task = record.task
        if task.state is not TaskState.PENDING or task.id in self._tokens:
            raise RefusedCommand(f"Task {task.id} is {task.state}; only a waiting task can be given another profile.")
        changed = self._profiles.chosen_by_hand(task, name)
        if changed.requires != task.requires and (problem := self._profiles.unserviceable(changed.requires)) is not None:
            raise RefusedCommand(f"Task {task.id} can't have that profile: {problem}")
        if task.run != RunOptions() and not changed.requires.needs_machine:
            problem = "its arguments, or the memory that is to be kept, need a machine, and the profile has none"
            raise RefusedCommand(f"Task {task.id} can't have that profile: {problem}.")
        await self._lifecycle.set_profile(task, changed)
        has = f"has the profile {changed.profile}" if changed.profile is not None and changed.profile.name else "has no profile"
        return f"Task {task.id} {has}."

    async def _change_tasks(self, action: ChangeTasks, _actor: str) -> CommandOutcome:
        self._changes.check(action)
        return _summed("changed", await self._each_record(action.task_ids, partial(self._changes.carry_out, action)))

    async def _identify_samples(self, action: IdentifySamples, _actor: str) -> CommandOutcome:
        if self._identifying is None:
            raise RefusedCommand("No engine runs, and only a running one asks plugins.")
        self._identifying.check(action)
        return _summed("identified", await self._each_record(action.task_ids, self._identifying.carry_out))

    async def _each_record(self, task_ids: Sequence[int], work: Callable[[TaskRecord], Awaitable[str]]) -> list[TargetResult]:
        """What became of each; `work` says it of one, or raises why it was not done."""

        async def one(task_id: int) -> TargetResult:
            if (record := await self._record(task_id)) is None:
                return _not_done(task_id, str(UnknownTask(task_id)))
            try:
                return TargetResult(task_id, True, await work(record))
            except (RefusedCommand, StaleTask) as error:
                return _not_done(task_id, str(error))

        return [await self._each(task_id, one(task_id)) for task_id in task_ids]

    async def _retry_tasks(self, action: RetryTasks, _actor: str) -> CommandOutcome:
        return _summed("retried", [await self._each(task_id, self._retry(task_id)) for task_id in action.task_ids])

    async def _retry(self, task_id: int) -> TargetResult:
        record = await self._record(task_id)
        if record is None:
            return _not_done(task_id, str(UnknownTask(task_id)))
        task = record.task
        if not task.state.is_final:
            return _not_done(task_id, f"Task {task_id} is {task.state}; only a task that has ended can be retried.")
        requires = msgspec.structs.replace(task.requires, avoid=())
        if (impossible := self._waiting.impossible(requires)) is not None:
            return _not_done(task_id, f"Task {task_id} can't be retried: {impossible}")
        added = await self._lifecycle.create(
            NewTask(
                sha256=task.sha256,
                size_bytes=record.sample.size_bytes,
                name=None,
                at=self._wall.now(),
                priority=task.priority,
                timeout_s=task.timeout_s,
                enforce_timeout=task.enforce_timeout,
                run=task.run,
                profile=task.profile,
                wishes=task.wishes,
                owner=task.owner,
                requires=requires,
                retry_of=task_id,
            )
        )
        return TargetResult(task_id, True, f"Task {added.task.id} retries task {task_id}.", added.task.id)

    async def _each(self, task_id: int, act: Awaitable[TargetResult]) -> TargetResult:
        """What became of one target; a store that fails at it takes nothing from what was done to the others."""
        try:
            async with self._lifecycle.alone_with(task_id):
                return await act
        except StoreError as error:
            return _not_done(task_id, f"Task {task_id} was left alone: {error}")

    async def _record(self, task_id: int) -> TaskRecord | None:
        page = await self._store.tasks(TaskQuery(where=TaskFilter(task_ids=(task_id,))), self._wall.now())
        return page.rows[0] if page.rows else None

    # --- the pool ----------------------------------------------------------------------------------------------------------------

    async def _resize(self, action: ResizeGroup, _actor: str) -> CommandOutcome:
        return CommandOutcome(done=True, message=self._pool.resize(action.group, action.min_workers, action.max_workers))

    async def _save_limits(self, _action: SaveLimits, _actor: str) -> CommandOutcome:
        if self._limits is None:
            raise RefusedCommand("This engine has no place to keep limits in; nothing was saved.")
        groups = self._pool.groups.values()
        limits = {group.name: (group.min, group.max) for group in groups}
        where = await self._limits.save(limits)
        for group in groups:
            group.saved = limits[group.name]
        return CommandOutcome(done=True, message=where)

    async def _disable_machines(self, action: DisableMachines, actor: str) -> CommandOutcome:
        return _told(self._machines.orders.disable(action.machines, actor))

    async def _enable_machines(self, action: EnableMachines, _actor: str) -> CommandOutcome:
        return _told(self._machines.orders.enable(action.machines))

    async def _probe_machines(self, action: ProbeMachines, _actor: str) -> CommandOutcome:
        return _told(self._machines.orders.probe(action.machines))

    async def _set_machine(self, action: SetMachine, actor: str) -> CommandOutcome:
        return await self._kept(self._machines.orders.set(action.machine, actor))

    async def _remove_machines(self, action: RemoveMachines, actor: str) -> CommandOutcome:
        return await self._kept(self._machines.orders.remove(action.machines, actor))

    async def _kept(self, message: str) -> CommandOutcome:
        """What was done to machines, and whether the next start will know of it."""
        if not message:
            return _told(message)
        if self._book is None:
            return _told(f"{message} The next start has the machines of the configuration again.")
        try:
            where = await self._book.save(self._machines.orders.specs())
        except StoreError as error:
            return _told(f"{message} {error}")
        return _told(f"{message} Kept in {where}.")

    async def _add_watch(self, action: AddWatch, _actor: str) -> CommandOutcome:
        return CommandOutcome(done=True, message=await self._keeper().add(action.watch))

    async def _remove_watch(self, action: RemoveWatch, _actor: str) -> CommandOutcome:
        return CommandOutcome(done=True, message=await self._keeper().remove(action.path))

    def _keeper(self) -> WatchKeeper:
        if self.watches is None:
            raise RefusedCommand("This engine watches no folders; `serve` and the console do. Nothing was changed.")
        return self.watches

    async def _pause(self, _action: PausePool, actor: str) -> CommandOutcome:
        reason = f"paused by {actor}"
        self._pool.hold(OPERATOR, reason)
        unkept = await self._keep_pause(reason)
        end = f" The next start takes tasks again: {unkept}" if unkept else ""
        return CommandOutcome(done=True, message=f"Paused: no task is taken; what runs goes on.{end}")

    async def _resume(self, _action: ResumePool, _actor: str) -> CommandOutcome:
        self._pool.lift(OPERATOR)
        unkept = await self._keep_pause(None)
        end = f" The next start is paused again: {unkept}" if unkept else ""
        if (paused := self._pool.paused) is not None:
            return CommandOutcome(done=True, message=f"Resumed, but no task is taken yet: {paused}.{end}")
        return CommandOutcome(done=True, message=f"Resumed.{end}")

    async def _keep_pause(self, reason: str | None) -> str:
        """Why that can't be kept; empty: it is. What was asked for holds at once all the same."""
        if self._pauses is not None:
            try:
                await self._pauses.keep(reason)
            except StoreError as error:
                return str(error)
        return ""

    async def _read_plugins(self, _action: ReloadPlugins, _actor: str) -> CommandOutcome:
        try:
            return CommandOutcome(done=True, message=await self._reload_plugins())
        except (ManifestError, ConfigError, PluginUnavailable) as error:
            raise RefusedCommand(f"{str(error).rstrip('.')}. Nothing was changed.") from error

    async def _purge(self, action: PurgeSample, _actor: str) -> CommandOutcome:
        raise RefusedCommand("This engine keeps nothing that could be removed.")

    async def _shut_down(self, action: Shutdown, _actor: str) -> CommandOutcome:
        if action.within_s is not None and not 0 <= action.within_s < math.inf:
            raise RefusedCommand(f"A limit of {action.within_s:g} s makes no sense; nothing was stopped.")
        self._stop(action.mode, action.within_s)
        return CommandOutcome(done=True, message=f"Stopping ({action.mode.value.replace('_', ' ')}).")


def _not_done(task_id: int, message: str) -> TargetResult:
    return TargetResult(task_id, False, message)


def _told(message: str) -> CommandOutcome:
    return CommandOutcome(done=bool(message), message=message or "No machine was named.")


def _summed(verb: str, targets: list[TargetResult]) -> CommandOutcome:
    done = sum(target.done for target in targets)
    message = targets[0].message if len(targets) == 1 else f"{done} of {len(targets)} tasks {verb}."
    return CommandOutcome(done=done > 0, message=message, targets=tuple(targets))
