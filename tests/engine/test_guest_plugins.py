"""Guest plugins: programs that run in the guest beside the sample. Each is begun before it, ended after it, and harms nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.workers import PluginRestrictions, WorkerSettings
from malbox_tui.model.commands import CancelTasks
from malbox_tui.model.events import PluginResultAvailable, PluginStarted, PluginStopped
from malbox_tui.model.machine import MachineState
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.model.task import Task, TaskState
from malbox_tui.ports import GuestPlugin
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, spec, with_engine

T = TaskState
PROGRAM = Path("/plugins/watcher/watcher.sh")
WATCHER = GuestPlugin("watcher", "1.2.3", PROGRAM)
RESULTS = "/tmp/watcher-results"
WATCHES = Program(
    seconds=1e6,
    output=b"began\n",
    drops=((f"{RESULTS}/log.json", b"{}"), (f"{RESULTS}/a b", b"odd"), (f"{RESULTS}/deep/log.json", b"again")),
)
SAMPLE = Program(seconds=5.0, drops=(("loot", b"stolen"),))


def prepared(program: Program = WATCHES):  # type: ignore[no-untyped-def]
    """The program of the watcher lies on this host, and does this in a guest."""

    def prepare(rig: EngineRig) -> None:
        rig.world.files[PROGRAM] = b"watcher"
        rig.world.programs[b"watcher"] = program

    return prepare


def of_watcher(task: Task) -> PluginRun:
    return next(run for run in task.plugins if run.name == "watcher")


def test_what_it_leaves_is_kept_as_its_results_under_safe_names_and_is_no_doing_of_the_sample() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        run = of_watcher(task)
        assert (task.state, run.status, run.version, run.reason) == (T.COMPLETED, PluginStatus.COMPLETED, "1.2.3", "")
        kept = {"log": b"began\n", "result-001": b"odd", "log.json": b"again", "result-003": b"{}"}
        assert rig.results.kept_of(1, "watcher") == kept
        assert b"watcher" not in rig.results.kept_of(1)["files"]
        assert [body.plugin for body in rig.bodies(PluginStarted)] == ["watcher"]  # type: ignore[attr-defined]
        assert [body.plugin for body in rig.bodies(PluginStopped)] == ["watcher"]  # type: ignore[attr-defined]
        assert len(rig.bodies(PluginResultAvailable)) == 3

    with_engine(test, machines=[spec("m1")], guest_plugins=[WATCHER], prepare=prepared(), sample=SAMPLE)


def test_it_is_begun_before_the_sample_and_runs_as_long_as_that() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until(lambda: "/tmp/sample" in rig.world.machines["m1"].processes.values())
        assert list(rig.world.machines["m1"].processes.values())[-2:] == [
            f"/tmp/watcher.sh {RESULTS}",
            "/tmp/sample",
        ]
        await rig.all_final()

    with_engine(test, machines=[spec("m1")], guest_plugins=[WATCHER], prepare=prepared(), sample=SAMPLE)


def test_results_are_bounded_and_that_is_said() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        run = of_watcher((await rig.all_final())[1])
        assert run.is_degraded
        assert "only 2 of its results are kept" in run.reason
        assert "only the first 4 bytes of its result big are kept" in run.reason
        assert rig.results.kept_of(1, "watcher") == {"a": b"1", "big": b"0123"}

    drops = tuple((f"{RESULTS}/{name}", content) for name, content in (("a", b"1"), ("big", b"0123456789"), ("c", b"3")))
    bounded = GuestPlugin("watcher", "1", PROGRAM, max_results=2, max_result_bytes=4)
    with_engine(
        test,
        machines=[spec("m1")],
        guest_plugins=[bounded],
        prepare=prepared(Program(seconds=1e6, drops=drops)),
        sample=SAMPLE,
    )


def test_one_that_fails_harms_its_own_run_only() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert task.state is T.COMPLETED
        run = of_watcher(task)
        assert (run.status, run.reason) == (PluginStatus.FAILED, "it ended with exit status 3")
        assert "1 of 3 plugins failed: watcher: it ended with exit status 3" in task.reason
        assert "loot" in str(rig.results.kept_of(1)["files"])

    with_engine(
        test, machines=[spec("m1")], guest_plugins=[WATCHER], prepare=prepared(Program(seconds=0.5, code=3)), sample=SAMPLE
    )


def test_one_of_another_platform_is_skipped_with_the_reason() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        run = of_watcher((await rig.all_final())[1])
        assert (run.status, run.reason) == (PluginStatus.SKIPPED, "It is for windows, and the machine has linux.")

    foreign = GuestPlugin("watcher", "1", PROGRAM, frozenset({"windows"}))
    with_engine(test, machines=[spec("m1")], guest_plugins=[foreign], prepare=prepared())


def test_a_worker_group_may_keep_it_out() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        run = of_watcher((await rig.all_final())[1])
        assert run.status is PluginStatus.SKIPPED
        assert "denies" in run.reason

    groups = [WorkerSettings(name="other", priority=9, plugin_restrictions=PluginRestrictions(deny=("watcher",)))]
    with_engine(test, machines=[spec("m1")], guest_plugins=[WATCHER], prepare=prepared(), groups=groups)


def test_host_only_tasks_have_nothing_to_do_with_it() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        assert [run.name for run in (await rig.all_final())[1].plugins] == ["scripted"]

    with_engine(test, guest_plugins=[WATCHER], prepare=prepared())


@pytest.mark.parametrize("ends", ["cancel", "lost"])
def test_its_run_says_when_nothing_could_be_collected(ends: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(3.0)
        if ends == "cancel":
            await rig.do(CancelTasks(task_ids=(1,)))
        else:
            rig.world.machines["m1"].lose_guest()
        run = of_watcher((await rig.all_final())[1])
        if ends == "cancel":
            assert (run.status, run.reason) == (PluginStatus.CANCELED, "stopped: user")
        else:
            why = "its guest was gone before its results could be collected"
            assert (run.status, run.reason) == (PluginStatus.FAILED, why)

    with_engine(test, machines=[spec("m1")], guest_plugins=[WATCHER], prepare=prepared(), sample=Program(seconds=1e6))


def test_a_guest_that_is_lost_while_it_is_begun_loses_the_run() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        rig.world.faults.inject(Fault.GUEST_LOST_IN_PUT, "m1")
        await rig.add("one", requires=LINUX)
        assert (await rig.all_final())[1].state is T.FAILED

    with_engine(test, machines=[spec("m1")], guest_plugins=[WATCHER], prepare=prepared())
