"""enforce_timeout: a machine is watched for the whole time, also when its sample has ended; and what ends that before."""

from __future__ import annotations

import msgspec
import pytest

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.model.commands import CancelTasks, RetryTasks, ShutdownMode
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, ScriptedRunner, spec, with_engine

T = TaskState
WATCHED = "Finished. Its machine was watched for the whole 60 s."


def test_the_machine_is_watched_for_the_whole_time_though_its_sample_ended_long_before() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(50.0)
        assert (await rig.machine("m1")).task_id == 1
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by, task.reason) == (T.COMPLETED, EndedBy.FINISHED, WATCHED)
        assert task.stages["running"] == pytest.approx(60.0, abs=1.0)
        assert msgspec.json.decode(rig.results.kept_of(1)["run"])["output"] == "hello"

    with_engine(test, machines=[spec("m1")], timeout_s=60.0)


def test_a_task_that_does_not_ask_for_it_ends_with_its_sample() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("asks not", requires=LINUX)
        await rig.add("declines", requires=LINUX, enforce_timeout=False)
        tasks = await rig.all_final()
        assert [task.stages["running"] < 10.0 for task in tasks.values()] == [False, True]
        assert [task.reason for task in tasks.values()] == [WATCHED, "Finished."]

    with_engine(test, machines=[spec("m1")], analysis=AnalysisSettings(timeout_s=60.0, enforce_timeout=True))


def test_a_sample_that_still_runs_at_the_end_of_the_whole_time_is_timed_out() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT)
        assert task.reason == "The analysis timeout of 60 s ended it during guest-run."

    with_engine(test, machines=[spec("m1")], timeout_s=60.0, sample=Program(seconds=1e6))


def test_plugins_that_still_run_at_the_end_of_the_whole_time_are_timed_out() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT)
        assert task.reason == "The analysis timeout of 60 s ended it during scripted."

    with_engine(test, machines=[spec("m1")], timeout_s=60.0, runner=ScriptedRunner(seconds=1e6))


def test_a_machine_that_its_sample_switched_off_is_not_watched() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        task = (await rig.all_final())[1]
        assert (task.state, task.reason) == (T.COMPLETED, "Finished. The sample switched its machine off.")
        assert task.stages["running"] < 10.0

    with_engine(test, machines=[spec("m1")], timeout_s=60.0, sample=Program(seconds=3.0, code=None))


def test_a_guest_that_is_lost_ends_its_task_at_once() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.GUEST_LOST_IN_EXECUTE, "m1")
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.FAILED, EndedBy.GUEST_LOST)
        assert task.stages["running"] < 10.0

    with_engine(test, machines=[spec("m1")], timeout_s=60.0)


def test_a_cancel_ends_the_watching_at_once_and_keeps_what_was_found() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(30.0)
        await rig.do(CancelTasks(task_ids=(1,)))
        task = await rig.until_state(1, T.CANCELED, within_s=1.0)
        assert [run.name for run in task.plugins] == ["guest-run", "scripted"]
        assert rig.results.settled == [1]
        await rig.until_machine("m1", MachineState.READY)

    with_engine(test, machines=[spec("m1")], timeout_s=60.0)


def test_a_stop_of_the_engine_ends_the_watching_at_once_and_undoes_no_finished_work() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(30.0)
        rig.engine.stop(ShutdownMode.GIVE_BACK)

    rig = with_engine(test, machines=[spec("m1")], timeout_s=60.0, stop=None)
    task = rig.store._tasks[1]
    assert (task.state, task.reason) == (T.COMPLETED, "Finished.")
    assert task.stages["running"] == pytest.approx(30.0, abs=0.5)


def test_the_critical_timeout_ends_the_watching_too_and_says_so() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.pass_time(200.0)
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        task = (await rig.all_final())[1]
        assert task.state is T.COMPLETED
        assert task.reason == "Finished. Its machine was watched until the critical timeout of 61 s for the whole attempt."

    with_engine(test, machines=[spec("m1")], analysis=AnalysisSettings(timeout_s=60.0, critical_timeout_s=61.0))


def test_a_host_only_task_that_asks_for_it_is_refused() -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("one", enforce_timeout=True)
        refusal = account.refused[0].refusal
        assert refusal.code == "nonsense"
        assert refusal.reason == "A static task needs no machine, so there is none to watch for its whole timeout."
        assert await rig.tasks() == {}

    with_engine(test)


def test_a_host_only_task_is_not_kept_by_the_configuration() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        task = (await rig.all_final())[1]
        assert (task.enforce_timeout, task.reason) == (False, "Finished.")
        assert task.stages["running"] < 5.0

    with_engine(test, analysis=AnalysisSettings(timeout_s=60.0, enforce_timeout=True))


def test_a_retry_watches_as_the_task_before_it_did() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, enforce_timeout=True)
        await rig.all_final()
        assert (await rig.do(RetryTasks(task_ids=(1,)))).done
        assert [task.reason for task in (await rig.all_final()).values()] == [WATCHED, WATCHED]

    with_engine(test, machines=[spec("m1")], timeout_s=60.0)


@pytest.mark.parametrize(("timeout_s", "is_taken"), [(99.0, True), (100.0, False), (1e5, False)])
def test_an_analysis_timeout_that_the_critical_one_leaves_no_room_for_is_refused(timeout_s: float, *, is_taken: bool) -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("one", timeout_s=timeout_s)
        assert bool(account.accepted) is is_taken
        if not is_taken:
            limit = "it must be below the critical timeout of 100 s, which is over a whole attempt."
            assert account.refused[0].refusal.reason == f"An analysis timeout of {timeout_s:g} s: {limit}"

    with_engine(test, analysis=AnalysisSettings(timeout_s=50.0, critical_timeout_s=100.0))
