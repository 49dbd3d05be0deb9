"""What a worker group allows binds its machines, too: those that are too large are not used, and networks are held to it."""

from __future__ import annotations

from typing import Any

import pytest

from malbox_tui.config.workers import ResourceLimitSettings, WorkerSettings
from malbox_tui.model.commands import DisableMachines, EnableMachines
from malbox_tui.model.machine import MachineFacts, MachineState, Throttle
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, spec, states, with_engine

M, T = MachineState, TaskState


def group(name: str = "small", **limits: Any) -> WorkerSettings:
    """A preferred worker group that takes all dynamic tasks, with limits of its own."""
    bounds = ResourceLimitSettings(**limits)
    return WorkerSettings(name=name, compatible_tasks=("dynamic",), priority=9, max_workers=2, resource_limits=bounds)


def nobody_else(rig: EngineRig) -> None:
    """The default group takes nothing."""
    rig.engine._pool.resize("default", 0, 0)


def sizes(**memory_mb: int) -> Any:
    def prepare(rig: EngineRig) -> None:
        for name, size_mb in memory_mb.items():
            rig.world.machines[name].facts = MachineFacts(memory_mb=size_mb, vcpus=size_mb // 512)

    return prepare


def test_a_machine_that_is_larger_than_a_worker_group_allows_is_not_used_for_its_tasks() -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        await rig.until_machine("m1", M.READY)
        await rig.until_machine("m2", M.READY)
        await rig.add("one", "two", requires=LINUX)
        tasks = await rig.all_final()
        assert [task.machine for task in tasks.values()] == ["m2", "m2"]
        await rig.do(DisableMachines(machines=("m2",)))
        await rig.until_machine("m2", M.DISABLED)
        await rig.add("three", requires=LINUX)
        assert (await rig.waiting(3)).reason == "waiting for a machine: linux (1 disabled)"
        assert (await rig.machine("m1")).state is M.READY

    with_engine(
        test,
        machines=[spec("m1"), spec("m2", tags=("spare",))],
        groups=[group(memory_mb=1024)],
        prepare=sizes(m1=2048, m2=1024),
    )


@pytest.mark.parametrize(
    ("limits", "lacks"),
    [
        ({"memory_mb": 1024}, "room in the worker group's memory_mb (it has 2048 MiB, at most 1024 are allowed)"),
        ({"cpu_cores": 1.5}, "room in the worker group's cpu_cores (it has 4, at most 1.5 are allowed)"),
    ],
)
def test_when_all_machines_are_too_large_the_task_is_refused_or_held_with_the_reason(limits: Any, lacks: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", M.READY)
        (refused,) = (await rig.add("one", requires=LINUX)).refused
        assert refused.refusal.reason == f"No machine could serve linux: the closest, m1, lacks {lacks}."
        await rig.add("two", requires=LINUX, hold=True)
        assert (await rig.waiting(1)).reason == f"held: No machine could serve linux: the closest, m1, lacks {lacks}."
        await rig.pass_time(100.0)
        assert (await rig.task(1)).state is T.PENDING

    only_static = WorkerSettings(name="other", compatible_tasks=("static",))
    with_engine(
        test,
        machines=[spec("m1")],
        groups=[group(**limits), only_static],
        max_workers=1,
        prepare=lambda rig: (sizes(m1=2048)(rig), takes_static_alone(rig)),
    )


def takes_static_alone(rig: EngineRig) -> None:
    """The default group takes no dynamic task."""
    default = rig.engine._pool.groups["default"]
    default.takes = lambda requires: not requires.needs_machine  # type: ignore[method-assign]


def test_a_machine_of_which_the_size_is_not_known_is_used() -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        await rig.add("one", requires=LINUX)
        assert states(await rig.all_final()) == [T.COMPLETED]

    def unknown(rig: EngineRig) -> None:
        rig.world.machines["m1"].facts = MachineFacts()

    with_engine(test, machines=[spec("m1")], groups=[group(memory_mb=64)], prepare=unknown)


def test_a_machine_that_was_made_smaller_serves_as_soon_as_that_is_known() -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        await rig.until_machine("m1", M.READY)
        await rig.add("one", requires=LINUX, hold=True)
        await rig.pass_time(10.0)
        assert (await rig.task(1)).state is T.PENDING
        sizes(m1=512)(rig)
        await rig.do(DisableMachines(machines=("m1",)))
        await rig.until_machine("m1", M.DISABLED)
        await rig.do(EnableMachines(machines=("m1",)))
        assert states(await rig.all_final()) == [T.COMPLETED]

    with_engine(test, machines=[spec("m1")], groups=[group(memory_mb=1024)], prepare=sizes(m1=2048))


# --- networks and disks ---


def test_networks_and_disks_are_bound_while_a_task_runs_and_no_longer() -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        assert rig.world.machines["m1"].throttle == Throttle(network_kbps=64, disk_kib_s=900)
        await rig.all_final()
        await rig.until_machine("m1", M.READY)
        assert rig.world.machines["m1"].throttle == Throttle()

    with_engine(test, machines=[spec("m1", disk_kib_s=900)], groups=[group(network_kbps=64)])


def test_the_network_of_a_machine_is_bound_by_what_allows_less() -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        for number, (machine, kbps) in enumerate({"m1": 8, "m2": 64}.items(), 1):
            await rig.add(str(number), requires=RequirementClass(task_type="dynamic", platform="linux", pin=machine))
            await rig.until_state(number, T.RUNNING)
            assert rig.world.machines[machine].throttle == Throttle(network_kbps=kbps)
        await rig.all_final()

    machines = [spec("m1", network_kbps=8), spec("m2", network_kbps=512)]
    with_engine(test, machines=machines, groups=[group(network_kbps=64)])


def test_a_machine_that_can_not_be_held_to_its_own_bound_serves_no_task() -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        await rig.until_machine("m1", M.READY)
        rig.world.faults.inject(Fault.MACHINE_UNABLE, "m1", ALWAYS)
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.machine) == (T.COMPLETED, "m2")
        await rig.do(DisableMachines(machines=("m2",)))
        await rig.until_machine("m2", M.DISABLED)
        await rig.add("two", requires=LINUX)
        assert (await rig.waiting(2)).reason == "waiting for a machine: linux (1 disabled)"

    machines = [spec("m1", network_kbps=0), spec("m2", tags=("spare",))]
    with_engine(test, machines=machines, groups=[group(best_effort=True)])


def test_a_machine_that_cannot_be_bound_fails_its_task_in_words_and_is_itself_no_worse() -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        await rig.until_machine("m1", M.READY)
        rig.world.faults.inject(Fault.MACHINE_UNABLE, "m1", ALWAYS)
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.machine) == (T.COMPLETED, "m2"), "another machine can"
        machine = await rig.until_machine("m1", M.READY)
        assert machine.failures == 0
        assert machine.facts is not None
        assert machine.facts.warnings == ("What it sends, reads and writes can't be bound: what it sends can't be bound.",)
        await rig.do(DisableMachines(machines=("m2",)))
        await rig.until_machine("m2", M.DISABLED)
        await rig.add("two", requires=LINUX)
        assert (await rig.waiting(2)).reason == "waiting for a machine: linux (1 disabled)", "it is not tried again"

    with_engine(test, machines=[spec("m1"), spec("m2", tags=("spare",))], groups=[group(network_kbps=64)])


def test_when_no_machine_can_be_bound_the_task_is_held_with_the_reason() -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        rig.world.faults.inject(Fault.MACHINE_UNABLE, "m1", ALWAYS)
        await rig.until_machine("m1", M.READY)
        await rig.add("one", requires=LINUX)
        await rig.until_machine("m1", M.REVERTING)
        await rig.until_machine("m1", M.READY)
        task = await rig.task(1)
        assert (task.state, task.requires.avoid) == (T.PENDING, ("m1",))
        assert "a network that can be held to 64 kbit/s (what it sends can't be bound)" in (await rig.waiting(1)).reason

    with_engine(test, machines=[spec("m1")], groups=[group(network_kbps=64)], prepare=takes_static_alone)


@pytest.mark.parametrize("limits", [{"network_kbps": 64, "best_effort": True}, {}], ids=["best effort", "disk alone"])
def test_what_need_not_be_bound_is_told_and_the_task_runs(limits: Any) -> None:
    async def test(rig: EngineRig) -> None:
        nobody_else(rig)
        rig.world.faults.inject(Fault.MACHINE_UNABLE, "m1", ALWAYS)
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.COMPLETED, EndedBy.FINISHED)
        machine = await rig.machine("m1")
        assert machine.facts is not None
        assert len(machine.facts.warnings) == 1

    with_engine(test, machines=[spec("m1", disk_kib_s=900)], groups=[group(**limits)], sample=Program(seconds=1.0))
