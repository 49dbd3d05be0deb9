"""A running engine goes on with other limits."""

from __future__ import annotations

import msgspec

from malbox_tui.config.settings import AnalysisSettings, GeneralSettings, IntakeSettings, MachinerySettings, Settings
from malbox_tui.engine.machine_care import FRESH_S
from malbox_tui.model.commands import ProbeMachines, ResizeGroup
from malbox_tui.model.machine import MachineState
from malbox_tui.model.submission import Refused
from malbox_tui.model.task import TaskState
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, spec, with_engine


def reloaded(rig: EngineRig, **tables: object) -> None:
    rig.engine.reload(msgspec.structs.replace(rig.engine._settings, **tables))


def test_limits_of_groups_count_at_once_and_are_those_of_the_next_start() -> None:
    async def test(rig: EngineRig) -> None:
        reloaded(rig, general=GeneralSettings(min_workers=3, max_workers=7))
        (group,) = (await rig.engine.overview()).groups
        assert (group.min_workers, group.max_workers, group.active, group.saved) == (3, 7, 3, True)

    with_engine(test)


def test_limits_that_an_operator_set_stay_when_the_configuration_says_the_same_as_before() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(ResizeGroup(max_workers=9))
        reloaded(rig, intake=IntakeSettings(max_sample_bytes=3))
        (group,) = (await rig.engine.overview()).groups
        assert group.max_workers == 9

    with_engine(test)


def test_a_smaller_limit_of_samples_refuses_the_next_one() -> None:
    async def test(rig: EngineRig) -> None:
        limits = []
        rig.quarantine.store, store = (lambda content, most: (limits.append(most), store(content, most))[1]), rig.quarantine.store  # type: ignore[method-assign, func-returns-value]
        reloaded(rig, intake=IntakeSettings(max_sample_bytes=3))
        await rig.add("abcd")
        assert limits == [3]

    with_engine(test)


def test_new_tasks_get_the_new_analysis_timeout_and_it_is_checked_against_the_new_critical_one() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("before")
        reloaded(rig, analysis=AnalysisSettings(timeout_s=20, critical_timeout_s=50))
        await rig.add("after")
        assert [task.timeout_s for task in (await rig.tasks()).values()] == [300.0, 20.0]
        (receipt,) = (await rig.add("too long", timeout_s=60.0)).receipts
        assert isinstance(receipt, Refused)

    with_engine(test)


def test_after_the_end_nothing_is_taken_over() -> None:
    rig = with_engine(_nothing)
    rig.engine.reload(Settings())


async def _nothing(rig: EngineRig) -> None: ...


def test_other_bounds_of_runs_in_machines_hold_for_those_that_begin() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, TaskState.RUNNING)
        reloaded(rig, machinery=MachinerySettings(max_dropped_files=1))
        await rig.add("two", requires=LINUX)
        await rig.all_final()
        kept = [[name for name in rig.results.kept_of(number) if name.startswith("dropped-")] for number in (1, 2)]
        assert [len(names) for names in kept] == [2, 1]

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=5.0, drops=(("a", b"a"), ("b", b"b"))))


def test_a_task_is_tried_on_as_many_machines_as_the_configuration_says_by_then() -> None:
    async def test(rig: EngineRig) -> None:
        for name in ("m1", "m2"):
            await rig.until_machine(name, MachineState.READY)
        await rig.pass_time(FRESH_S + 1.0)
        for name in ("m1", "m2"):
            rig.world.faults.inject(Fault.REVERT_FAILS, name, ALWAYS)
        reloaded(rig, machinery=MachinerySettings(max_attempts=1))
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert task.reason.endswith("That was failure 1 of 1; it is not tried again.")
        rig.world.faults.calm()

    with_engine(test, machines=[spec("m1"), spec("m2")])


def test_a_machine_that_is_out_of_service_is_tried_again_when_the_configuration_says_by_then() -> None:
    async def test(rig: EngineRig) -> None:
        reloaded(rig, machinery=MachinerySettings(probe_interval_s=7.0))
        rig.world.faults.inject(Fault.MACHINE_MISSING, "m1", ALWAYS)
        await rig.do(ProbeMachines(machines=("m1",)))
        await rig.until_machine("m1", MachineState.MISSING)
        rig.world.faults.calm()
        await rig.until_machine("m1", MachineState.READY, within_s=20.0)

    with_engine(test, machines=[spec("m1")])
