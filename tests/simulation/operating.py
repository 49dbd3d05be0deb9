"""The operator of a simulated run: carries out a plan's actions through the engine's `Client`, and checks what it is answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from malbox_tui.engine.engine import Engine
from malbox_tui.model import commands
from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.queries import TaskFilter, TaskQuery, TaskSort
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Accepted, Duplicate, Offer, Receipt, SubmissionOptions
from malbox_tui.model.task import RunOptions, TaskState
from malbox_tui.simulated.faults import Faults
from tests.simulation import plan
from tests.simulation.mirror import Mirror
from tests.simulation.violation import Violation


class Wall(Protocol):
    def jump(self, seconds: float) -> None: ...


@dataclass(slots=True)
class Operator:
    """One person at one engine. `promised` are tasks that the engine said it would cancel; `receipts` what it said it took."""

    engine: Engine
    mirror: Mirror
    faults: Faults
    wall: Wall
    machines: Sequence[str]
    contents: int
    promised: set[int] = field(default_factory=set)
    receipts: list[Receipt] = field(default_factory=list)
    _offered: int = 0

    async def act(self, action: plan.Action) -> None:
        """Do one thing. An engine that has ended answers nothing more, and that is all right."""
        try:
            await self._act(action)
        except EngineStopped:
            return

    async def do(self, action: commands.Action, key: str = "") -> CommandOutcome:
        return await self.engine.do(Command(action=action, actor="ana", key=key))

    async def _act(self, action: plan.Action) -> None:
        match action:
            case plan.Submit():
                await self._submit(action)
            case plan.Cancel():
                await self._cancel(action)
            case plan.Prioritize():
                await self.do(
                    commands.SetPriority(task_ids=self._tasks(action.where, TaskState.PENDING), priority=action.priority)
                )
            case plan.Reprofile():
                await self.do(commands.SetProfile(task_ids=self._tasks(action.where, TaskState.PENDING), profile=action.profile))
            case plan.Retry():
                await self._retry(action)
            case plan.Resize():
                await self._resize(action)
            case plan.Pause():
                await self.do(commands.PausePool())
            case plan.Resume():
                await self.do(commands.ResumePool())
            case plan.Disable():
                await self.do(commands.DisableMachines(machines=self._machine(action)))
            case plan.Enable():
                await self.do(commands.EnableMachines(machines=self._machine(action)))
            case plan.Save():
                await self.do(commands.SaveLimits())
            case plan.Look():
                await self._look()
            case plan.JumpClock():
                self.wall.jump(action.seconds)
            case plan.Inject():
                self.faults.inject(action.fault)

    async def _submit(self, action: plan.Submit) -> None:
        async def offers() -> AsyncIterator[Offer]:
            for _ in range(action.count):
                self._offered += 1
                content = b"content %d" % (self._offered * 7 % self.contents)
                yield Offer(SampleName(content, b"/in/" + content), _chunks(content))

        options = SubmissionOptions(
            priority=action.priority,
            timeout_s=action.timeout_s,
            enforce_timeout=action.enforce_timeout,
            run=RunOptions(memory_dump=action.memory_dump),
            again=action.again,
            requires=action.requires,
            hold=action.hold,
            profile=action.profile,
        )
        account = await self.engine.submit(offers(), options, self.receipts.append)
        if len(account.receipts) != action.count:
            raise Violation("each offer has a receipt", f"{action} got {account}")

    async def _cancel(self, action: plan.Cancel) -> None:
        task_ids = self._tasks(action.where, action.state, action.count)
        command = commands.CancelTasks(task_ids=task_ids, expected=action.state if action.expecting else None)
        for _ in range(2 if action.twice else 1):
            outcome = await self.do(command)
            self.promised.update(target.task_id for target in outcome.targets if target.done)

    async def _retry(self, action: plan.Retry) -> None:
        final = [task_id for task_id, told in self.mirror.tasks.items() if told.state.is_final]
        task_ids = (final[int(action.where * len(final))],) if final else (1_000_000,)
        outcome = await self.do(commands.RetryTasks(task_ids=task_ids))
        for target in outcome.targets:
            if target.new_task_id is not None and self.mirror.tasks[target.new_task_id].retry_of != target.task_id:
                raise Violation("a retry is a new task of the old one", f"{target}")

    async def _resize(self, action: plan.Resize) -> None:
        outcome = await self.do(
            commands.ResizeGroup(group=action.group, min_workers=action.min_workers, max_workers=action.max_workers)
        )
        if outcome.done and not _may_be_sensible(action):
            raise Violation("limits that make no sense are refused", f"{action} was answered with {outcome}")

    async def _look(self) -> None:
        overview = await self.engine.overview()
        counts = dict.fromkeys(TaskState, 0)
        for told in self.mirror.tasks.values():
            counts[told.state] += 1
        if overview.counts != counts:
            raise Violation("counts are those of the stored tasks", f"{overview.counts}, stored are {counts}")
        where = TaskFilter(states=frozenset({TaskState.PENDING}))
        page = await self.engine.query(TaskQuery(where=where, sort=TaskSort.QUEUE, limit=1000))
        places = []
        for record in page.rows:
            if record.waiting is None or not record.waiting.reason:
                raise Violation("each pending task says why it waits", f"{record}")
            if record.waiting.position is not None:
                places.append(record.waiting.position)
        if len(places) != len(set(places)):
            raise Violation("no two tasks have the same position", f"{places}")

    def _tasks(self, where: float, state: TaskState | None, count: int = 1) -> tuple[int, ...]:
        """Tasks in `state`, from a place on; one that doesn't exist when there are none."""
        found = [task_id for task_id, told in self.mirror.tasks.items() if state in (None, told.state)]
        if not found:
            return (1_000_000,)
        start = int(where * len(found))
        return tuple(found[start : start + count])

    def _machine(self, action: plan.Disable | plan.Enable) -> tuple[str, ...]:
        """A machine at the state that is asked for; one that doesn't exist when there is none."""
        found = [name for name in self.machines if action.state in (None, self.mirror.machine_state(name))]
        return (found[int(action.where * len(found))],) if found else ("nowhere",)


def _may_be_sensible(action: plan.Resize) -> bool:
    low, high = action.min_workers, action.max_workers
    in_range = all(limit is None or 0 <= limit <= 1024 for limit in (low, high))
    return action.group != "gpu" and in_range and (low is None or high is None or low <= high)


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


def task_of(receipt: Receipt) -> int | None:
    """The task that a receipt names; None when nothing was taken."""
    return receipt.task_id if isinstance(receipt, Accepted | Duplicate) else None
