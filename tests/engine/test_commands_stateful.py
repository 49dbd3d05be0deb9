"""Whatever an operator does, in whatever order: the engine answers, and what must always hold holds.

A hypothesis machine gives commands to a real engine under turned time, one loop for each run.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from malbox_tui.config.settings import AnalysisSettings, GeneralSettings, MachinerySettings, Settings
from malbox_tui.config.workers import WorkerSettings
from malbox_tui.model.commands import (
    Action,
    CancelTasks,
    CommandOutcome,
    DisableMachines,
    EnableMachines,
    PausePool,
    ProbeMachines,
    RemoveMachines,
    ResizeGroup,
    ResumePool,
    RetryTasks,
    SetMachine,
    SetPriority,
    ShutdownMode,
)
from malbox_tui.model.machine import BUSY_STATES, MachineSpec, MachineState
from malbox_tui.model.queries import TaskQuery, TaskSort
from malbox_tui.model.task import RequirementClass, Task, TaskState
from malbox_tui.model.worker import WorkerKind, WorkerState
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.machine_body import MachineBody
from malbox_tui.simulated.world import Program
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import EngineRig, ScriptedRunner, built, check_end, spec, started
from tests.support.scripted import BreakableStore
from tests.support.virtual_time import VirtualTimeLoop, settle_loop

MACHINES = (spec("m1", tags=("office",)), spec("m2"), spec("w1", platform="windows", arch="x86"))
OTHERS = (spec("m1", tags=("office", "spare")), spec("m2"), spec("w1", platform="linux"), spec("x1", tags=("office",)))
"""What machines may become, and one more."""
CLASSES = (
    RequirementClass(),
    RequirementClass(task_type="dynamic"),
    RequirementClass(task_type="dynamic", platform="linux", tags=("office",)),
    RequirementClass(task_type="dynamic", arch="x86"),
    RequirementClass(task_type="dynamic", pin="m2"),
    RequirementClass(task_type="dynamic", platform="macos"),
)
SETTINGS = Settings(
    general=GeneralSettings(min_workers=1, max_workers=3, idle_timeout_ms=20_000),
    workers=(
        WorkerSettings(name="guests", compatible_tasks=("dynamic",), priority=9, max_workers=2, max_concurrent_tasks=2),
        WorkerSettings(name="windows", compatible_platforms=("windows",), priority=7, max_workers=1),
    ),
    analysis=AnalysisSettings(timeout_s=30.0),
    machinery=MachinerySettings(max_starting=2),
)
GROUPS = st.sampled_from(["default", "guests", "windows", "nowhere"])
LIMIT = st.one_of(st.none(), st.integers(0, 5), st.sampled_from([-1, 1025]))
NAMES = st.lists(st.sampled_from(["m1", "m1", "m2", "w1", "m3"]), min_size=1, max_size=2).map(tuple)
FAULTS = [
    Fault.REVERT_FAILS,
    Fault.REVERT_LEAVES_DIRT,
    Fault.MACHINE_MISCONFIGURED,
    Fault.GUEST_REFUSES,
    Fault.GUEST_LOST_IN_EXECUTE,
    Fault.STOP_FAILS,
    Fault.MACHINE_MISSING,
]


class Operator(RuleBasedStateMachine):
    """`known`: what was last seen of each task. `store` outlives engines."""

    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.runner_ = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.loop = self.runner_.get_loop()
        self.store: MemoryStore = BreakableStore()
        self.known: dict[int, Task] = {}
        self.promised: set[int] = set()
        self.names = 0
        self.machines = {machine.name: machine for machine in MACHINES}
        """As the engine said that they are, or will be."""
        self.rig: EngineRig

    def run(self, work: Any) -> Any:
        return self.runner_.run(work)

    @initialize(target=tasks, classes=st.lists(st.sampled_from(CLASSES[:-1]), min_size=6, max_size=6))
    def start_with_work(self, classes: list[RequirementClass]) -> Any:
        self.start()
        return multiple(*[self.run(self._added(requires)) for requires in classes])

    async def _added(self, requires: RequirementClass) -> int:
        self.names += 1
        return (await self.rig.add(f"first {self.names}", requires=requires)).accepted[0].task_id

    def start(self) -> None:
        async def begin() -> None:
            self.rig = built(
                SETTINGS, tuple(self.machines.values()), self.store, ScriptedRunner(seconds=7.0), Program(seconds=9.0)
            )
            self.rig.world.machines = {machine.name: MachineBody(machine) for machine in (*MACHINES, OTHERS[-1])}
            self.rig.life = await started(self.rig)
            await settle_loop()

        self.run(begin())

    def do(self, action: Action) -> CommandOutcome:
        outcome = self.run(self.rig.do(action))
        assert isinstance(outcome, CommandOutcome)
        return outcome

    # --- what an operator may do ---

    @rule(
        target=tasks,
        requires=st.sampled_from(CLASSES),
        priority=st.integers(-3, 10),
        count=st.integers(1, 4),
        hold=st.booleans(),
    )
    def submit(self, requires: RequirementClass, priority: int, count: int, hold: bool) -> Any:
        contents = [f"sample {self.names + n}" for n in range(count)]
        self.names += count
        account = self.run(self.rig.add(*contents, requires=requires, priority=priority, hold=hold))
        assert len(account.accepted) == (0 if requires.platform == "macos" and not hold else count)
        return multiple(*[receipt.task_id for receipt in account.accepted])

    @rule(seconds=st.sampled_from([0.0, 0.0, 0.05, 3.0]), task=st.integers(0, 3))
    def cancel_one_of_those_that_a_worker_holds(self, seconds: float, task: int) -> None:
        self.run(self.rig.pass_time(seconds))
        held = sorted(self.rig.engine._tokens)
        if held:
            self.cancel(held[task % len(held)], False, None)

    @rule(task=tasks, twice=st.booleans(), expected=st.sampled_from([None, None, TaskState.PENDING, TaskState.RUNNING]))
    def cancel(self, task: int, twice: bool, expected: TaskState | None) -> None:
        outcome = self.do(CancelTasks(task_ids=(task, task) if twice else (task,), expected=expected))
        self.promised |= {target.task_id for target in outcome.targets if target.done}

    @rule(task=tasks, priority=st.sampled_from([-5, 0, 5, 99, 10**7]))
    def prioritize(self, task: int, priority: int) -> None:
        outcome = self.do(SetPriority(task_ids=(task,), priority=priority))
        if outcome.done:
            assert self.run(self.rig.task(task)).priority == priority

    @rule(target=tasks, task=tasks)
    def retry(self, task: int) -> Any:
        outcome = self.do(RetryTasks(task_ids=(task,)))
        return multiple(*[target.new_task_id for target in outcome.targets if target.new_task_id is not None])

    @rule(group=GROUPS, low=LIMIT, high=LIMIT)
    def resize(self, group: str, low: int | None, high: int | None) -> None:
        before = self.run(self.rig.engine.overview()).groups
        outcome = self.do(ResizeGroup(group=group, min_workers=low, max_workers=high))
        after = {view.name: (view.min_workers, view.max_workers) for view in self.run(self.rig.engine.overview()).groups}
        was = {view.name: (view.min_workers, view.max_workers) for view in before}
        if outcome.done:
            was[group] = (was[group][0] if low is None else low, was[group][1] if high is None else high)
        assert after == was

    @rule(names=NAMES)
    def disable(self, names: tuple[str, ...]) -> None:
        there = self.there()
        assert self.do(DisableMachines(machines=names)).done == (set(names) <= there)

    @rule(names=NAMES)
    def enable(self, names: tuple[str, ...]) -> None:
        there, leaving = self.there(), self.leaving()
        assert self.do(EnableMachines(machines=names)).done == (set(names) <= there)
        if set(names) <= there:
            self.machines |= {name: leaving[name] for name in names if name in leaving}

    @rule(names=NAMES)
    def probe(self, names: tuple[str, ...]) -> None:
        states = {machine.name: machine.state for machine in self.run(self.rig.engine.overview()).machines}
        may = all(name in states and states[name] not in {*BUSY_STATES, MachineState.DISABLED} for name in names)
        assert self.do(ProbeMachines(machines=names)).done == may

    @rule(machine=st.sampled_from(OTHERS))
    def add_or_change_a_machine(self, machine: MachineSpec) -> None:
        assert self.do(SetMachine(machine=machine)).done
        self.machines[machine.name] = machine

    @rule(names=NAMES, really=st.booleans())
    def remove_machines(self, names: tuple[str, ...], really: bool) -> None:
        if really:
            there = self.there()
            assert self.do(RemoveMachines(machines=names)).done == (set(names) <= there)
            if set(names) <= there:
                self.machines = {name: machine for name, machine in self.machines.items() if name not in names}

    def there(self) -> set[str]:
        return {machine.name for machine in self.run(self.rig.engine.overview()).machines}

    def leaving(self) -> dict[str, MachineSpec]:
        """Those that are to be removed when their task or their revert is done, as they are to be."""
        known = self.rig.engine._machines._machines.values()
        return {machine.spec.name: machine.next_spec or machine.spec for machine in known if machine.removed_by is not None}

    @rule(pauses=st.sampled_from([False, False, False, True]))
    def pause_or_resume(self, pauses: bool) -> None:
        self.do(PausePool() if pauses else ResumePool())
        assert (self.run(self.rig.engine.overview()).paused is not None) == pauses

    @rule(fault=st.sampled_from(FAULTS), machine=st.sampled_from(["m1", "m2", "w1", "x1"]))
    def let_something_fail(self, fault: Fault, machine: str) -> None:
        self.rig.world.faults.inject(fault, machine)

    @rule(seconds=st.sampled_from([0.0, 0.05, 1.0, 3.2, 5.0, 7.0, 20.0, 130.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.run(self.rig.pass_time(seconds))

    @rule(mode=st.sampled_from(list(ShutdownMode)))
    def restart(self, mode: ShutdownMode) -> None:
        self.run(self._end(mode))
        self.start()

    async def _end(self, mode: ShutdownMode) -> None:
        self.rig.world.faults.calm()
        self.rig.engine.stop(mode, 15.0)
        assert self.rig.life is not None
        self.rig.left = await self.rig.life
        await check_end(self.rig)

    # --- what must always hold ---

    @invariant()
    def nothing_is_lost_and_what_is_final_stays(self) -> None:
        tasks = self.run(self.rig.tasks())
        for task_id, before in self.known.items():
            assert not before.state.is_final or tasks[task_id] == before
        for task_id in self.promised:
            assert tasks[task_id].state is TaskState.CANCELED or task_id in self.rig.engine._tokens
        self.known = tasks

    @invariant()
    def workers_keep_to_their_limits(self) -> None:
        overview = self.run(self.rig.engine.overview())
        held = [task_id for worker in overview.workers for task_id in worker.task_ids]
        assert len(held) == len(set(held))
        for group in overview.groups:
            workers = [worker for worker in overview.workers if worker.group == group.name]
            staying = [worker for worker in workers if worker.state is not WorkerState.LEAVING]
            assert len(staying) <= group.max_workers
            assert all(len(worker.task_ids) <= worker.slots for worker in workers)
            baseline = sum(worker.kind is WorkerKind.BASELINE for worker in staying)
            assert baseline == min(group.min_workers, group.max_workers - len(workers) + len(staying))

    @invariant()
    def each_machine_serves_one_task_and_each_task_that_waits_says_why(self) -> None:
        overview = self.run(self.rig.engine.overview())
        held = {task_id for worker in overview.workers for task_id in worker.task_ids}
        served = [machine.task_id for machine in overview.machines if machine.task_id is not None]
        assert len(served) == len(set(served))
        assert set(served) <= held
        page = self.run(self.rig.engine.query(TaskQuery(sort=TaskSort.QUEUE, limit=1000)))
        waits = [record.waiting for record in page.rows if record.waiting is not None]
        assert all(wait.reason for wait in waits)
        places = sorted(wait.position for wait in waits if wait.position is not None)
        assert places == list(range(1, len(places) + 1))
        assert "next in line" not in {wait.reason for wait in waits}, "nothing that could start waits"
        assert self.rig.world.violations == []
        assert self.rig.world.deceptions == []
        orders = self.rig.engine._machines.orders
        assert {machine.name: machine for machine in orders.specs()} == self.machines

    def teardown(self) -> None:
        if not hasattr(self, "rig"):
            return
        try:
            self.run(self._all_end())
            self.run(self._end(ShutdownMode.DRAIN))
        finally:
            self.runner_.close()

    async def _all_end(self) -> None:
        """With room, machines and no pause, every task that something could serve ends."""
        for group in ("default", "guests", "windows"):
            assert (await self.rig.do(ResizeGroup(group=group, min_workers=0, max_workers=2))).done
        assert (await self.rig.do(ResumePool())).done
        self.rig.world.faults.calm()
        for machine in MACHINES:
            self.rig.world.machines.setdefault(machine.name, MachineBody(machine))
            assert (await self.rig.do(SetMachine(machine=machine))).done
        there = tuple(machine.name for machine in (await self.rig.engine.overview()).machines)
        assert (await self.rig.do(EnableMachines(machines=there))).done
        await self.rig.pass_time(60.0 * (10 + len(self.known)))
        left = [task for task in (await self.rig.tasks()).values() if not task.state.is_final]
        assert all(task.requires.platform == "macos" and task.state is TaskState.PENDING for task in left), left
        states = {machine.state for machine in (await self.rig.engine.overview()).machines}
        assert states == {MachineState.READY}


TestOperator = pytest.mark.slow(Operator.TestCase)
TestOperator.settings = settings(
    max_examples=30,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
