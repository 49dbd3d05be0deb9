"""Why a task waits, at which place and since when; and what is refused because nothing could ever serve it."""

from __future__ import annotations

import math

import pytest

from malbox_tui.config.workers import WorkerSettings
from malbox_tui.model.commands import CancelTasks, PausePool, ResizeGroup, RetryTasks, SetPriority
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, spec, states, with_engine

T = TaskState
LONG = ScriptedRunner(seconds=1e4)


def dynamic(**fields: object) -> RequirementClass:
    return RequirementClass(task_type="dynamic", **fields)  # type: ignore[arg-type]


def test_positions_follow_priority_and_order_and_what_leaves_moves_the_others_up() -> None:
    async def places(rig: EngineRig) -> list[int | None]:
        return [(await rig.waiting(task_id)).position for task_id in (1, 2, 3, 4) if task_id in waiting]

    waiting = {1, 2, 3, 4}

    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one", "two")
        await rig.add("three", hold=True, requires=LINUX)
        await rig.add("four", priority=7)
        assert await places(rig) == [2, 3, 4, 1]
        assert (await rig.waiting(1)).pending == 4
        await rig.do(SetPriority(task_ids=(3,), priority=9))
        assert await places(rig) == [3, 4, 1, 2]
        await rig.do(CancelTasks(task_ids=(1,)))
        waiting.remove(1)
        assert await places(rig) == [3, 1, 2]
        assert (await rig.waiting(2)).pending == 3

    with_engine(test)


def test_a_waiting_task_says_since_when() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.pass_time(100.0)
        before = rig.wall.now()
        await rig.add("one")
        await rig.pass_time(50.0)
        assert (await rig.waiting(1)).since == pytest.approx(before)

    with_engine(test)


def test_a_task_that_is_only_behind_others_says_how_many_workers_are_busy() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        await rig.pass_time(1.0)
        assert (await rig.waiting(3)).reason == "all workers of default are busy (2 of 2)"

    with_engine(test, max_workers=2, runner=LONG)


def test_with_room_for_no_worker_a_task_says_so() -> None:
    async def test(rig: EngineRig) -> None:
        assert not (await rig.do(ResizeGroup(max_workers=0))).done, "min is 1"
        assert (await rig.do(ResizeGroup(min_workers=0, max_workers=0))).done
        await rig.add("one")
        await rig.pass_time(10.0)
        assert (await rig.waiting(1)).reason == "default may have no worker: max is 0"
        await rig.do(ResizeGroup(max_workers=1))
        assert states(await rig.all_final()) == [T.COMPLETED]

    with_engine(test)


def test_a_paused_pool_and_an_ending_one_are_reasons() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("running")
        await rig.until(lambda: bool(rig.runner.running))
        await rig.do(PausePool())
        await rig.add("one")
        assert (await rig.waiting(2)).reason == "paused by ana"
        rig.engine.stop(ShutdownMode.DRAIN)
        assert (await rig.waiting(2)).reason == "the engine is stopping; the next start goes on with it"

    from malbox_tui.model.commands import ShutdownMode

    with_engine(test, runner=ScriptedRunner(seconds=50.0))


@pytest.mark.parametrize(
    ("requires", "reason"),
    [
        (dynamic(tags=("office", "net")), "No machine could serve tag office, tag net: the closest, m1, lacks tag net."),
        (dynamic(platform="macos"), "No machine could serve macos: the closest, m1, lacks platform macos."),
        (dynamic(arch="arm64"), "No machine could serve arm64: the closest, m1, lacks arch arm64."),
        (dynamic(pin="m3"), "There is no machine m3; did you mean m2?"),
        (dynamic(pin="m1", tags=("net",)), "No machine could serve tag net, machine m1: the closest, m1, lacks tag net."),
    ],
    ids=str,
)
def test_a_task_that_no_machine_could_ever_serve_is_refused_naming_what_is_missing(
    requires: RequirementClass, reason: str
) -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("one", requires=requires)
        assert [(receipt.refusal.code, receipt.refusal.reason) for receipt in account.refused] == [("unserviceable", reason)]
        assert await rig.tasks() == {}
        held = await rig.add("one", requires=requires, hold=True)
        assert len(held.accepted) == 1
        assert (await rig.waiting(1)).reason == f"held: {reason}"
        await rig.do(CancelTasks(task_ids=(1,)))

    with_engine(test, machines=[spec("m1", tags=("office",)), spec("m2")])


def test_without_machines_a_dynamic_task_is_refused_and_a_static_one_is_not() -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("one", requires=LINUX)
        assert account.refused[0].refusal.reason == "It needs a machine (linux), and none is configured."
        assert len((await rig.add("one")).accepted) == 1

    with_engine(test)


def test_a_task_that_no_group_takes_is_refused_saying_who_takes_what() -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("one", requires=dynamic(platform="macos"))
        assert account.refused[0].refusal.reason == ("No machine could serve macos: the closest, m1, lacks platform macos.")

    win = WorkerSettings(name="win", compatible_tasks=("dynamic",), compatible_platforms=("windows",), max_workers=1)
    with_engine(test, groups=[win], machines=[spec("m1")])


def test_a_retry_that_nothing_could_serve_any_more_is_refused() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, hold=True)
        await rig.do(CancelTasks(task_ids=(1,)))
        outcome = await rig.do(RetryTasks(task_ids=(1,)))
        assert not outcome.done
        assert outcome.message == "Task 1 can't be retried: It needs a machine (linux), and none is configured."
        assert len(await rig.tasks()) == 1

    with_engine(test)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"requires": RequirementClass(platform="linux", tags=("office",))},
            "A static task needs no machine, so it can't ask for platform linux, tag office. Make it dynamic.",
        ),
        ({"requires": RequirementClass(task_type="dinamic")}, "There is no task type 'dinamic'; there is"),
        ({"priority": 10**9}, "Priority 1000000000: it must be between"),
        ({"timeout_s": -1.0}, "An analysis timeout of -1 s: it must be above 0, and end."),
        ({"timeout_s": 0.0}, "An analysis timeout of 0 s"),
        ({"timeout_s": math.nan}, "An analysis timeout of nan s"),
        ({"timeout_s": math.inf}, "An analysis timeout of inf s"),
    ],
    ids=str,
)
def test_nonsense_is_refused_even_if_it_is_to_be_held(options: dict[str, object], reason: str) -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("one", hold=True, **options)
        assert account.refused[0].refusal.code == "nonsense"
        assert account.refused[0].refusal.reason.startswith(reason)
        assert await rig.tasks() == {}

    with_engine(test, machines=[spec("m1")])


def test_a_type_that_a_group_names_is_no_nonsense() -> None:
    async def test(rig: EngineRig) -> None:
        assert len((await rig.add("one", requires=RequirementClass(task_type="memory"))).accepted) == 1
        assert states(await rig.all_final()) == [T.COMPLETED]

    with_engine(test, groups=[WorkerSettings(name="ram", compatible_tasks=("memory",), max_workers=1)])


def test_a_task_that_waits_for_machines_of_several_groups_counts_them_all() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", requires=dynamic())
        await rig.pass_time(10.0)
        assert (await rig.waiting(3)).reason == "waiting for a machine: any (2 busy)"

    groups = [WorkerSettings(name=name, compatible_platforms=(name,), max_workers=2) for name in ("linux", "windows")]
    with_engine(
        test,
        min_workers=0,
        max_workers=0,
        groups=groups,
        machines=[spec("m1"), spec("w1", platform="windows")],
        runner=LONG,
        sample=Program(seconds=1e6),
    )
