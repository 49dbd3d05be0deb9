"""Tasks from pending to their end: cancel, time limits, shutdown, recovery. Time is turned."""

from __future__ import annotations

import msgspec
import pytest

from malbox_tui.model.commands import CancelTasks, PausePool, RetryTasks, SetPriority
from malbox_tui.model.errors import PluginUnavailable, SampleChanged, StoreError, StoreFull
from malbox_tui.model.events import TaskCanceled, TaskCompleted, TaskCreated, TaskStageChanged, TaskStarting
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.model.submission import Accepted, Duplicate, Refused
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.ports import StopSignal
from tests.support.rig import CLEAN_RUN, MALICIOUS, EngineRig, ScriptedRunner, states, with_engine
from tests.support.virtual_time import settle_loop


def test_a_task_goes_through_its_stages_and_each_is_told_once_and_timed() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by, task.reason) == (TaskState.COMPLETED, EndedBy.FINISHED, "Finished.")
        assert set(task.stages) == {"pending", "initializing", "running", "stopping"}
        assert task.stages["running"] == pytest.approx(1.0)
        assert (task.attempts, task.token, task.worker is not None) == (1, None, True)

    rig = with_engine(test)
    told = [type(event.body) for event in rig.events if getattr(event.body, "task_id", None) == 1]
    assert told == [TaskCreated, TaskStarting, TaskStageChanged, TaskStageChanged, TaskCompleted]
    seqs = [event.position.seq for event in rig.events]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


def test_the_tasks_verdict_is_the_worst_of_its_plugins() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        verdict = (await rig.all_final())[1].verdict
        assert verdict is not None
        assert (verdict.classification, verdict.score, verdict.labels) == ("malicious", 100, ("eicar",))

    with_engine(test, runner=ScriptedRunner(runs=(CLEAN_RUN, MALICIOUS)))


@pytest.mark.parametrize(
    ("runs", "state", "ended_by", "reason"),
    [
        ((), TaskState.COMPLETED, EndedBy.FINISHED, "Finished with no results."),
        (("ok", "bad"), TaskState.COMPLETED, EndedBy.FINISHED, "Finished; 1 of 2 plugins failed: scripted: it crashed."),
        (("bad",), TaskState.FAILED, EndedBy.PLUGIN_ERROR, "Every plugin failed: scripted: it crashed."),
        (("less",), TaskState.COMPLETED, EndedBy.FINISHED, "Finished; scripted is degraded: it reached its disk limit 8 MiB."),
        (
            ("ok", "bad", "less"),
            TaskState.COMPLETED,
            EndedBy.FINISHED,
            "Finished; 1 of 3 plugins failed: scripted: it crashed; scripted is degraded: it reached its disk limit 8 MiB.",
        ),
    ],
)
def test_what_the_plugins_did_decides_how_the_task_ends(
    runs: tuple[str, ...], state: TaskState, ended_by: EndedBy, reason: str
) -> None:
    bad = msgspec.structs.replace(CLEAN_RUN, status=PluginStatus.FAILED, results=(), reason="it crashed.")
    less = msgspec.structs.replace(CLEAN_RUN, reason="degraded: it reached its disk limit 8 MiB")
    script = tuple({"ok": CLEAN_RUN, "bad": bad, "less": less}[run] for run in runs)

    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by, task.reason) == (state, ended_by, reason)

    with_engine(test, runner=ScriptedRunner(runs=script))


def test_the_analysis_timeout_ends_a_task_and_keeps_what_there_is() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("slow")
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (TaskState.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT)
        assert task.reason == "The analysis timeout of 30 s ended it during scripted."
        assert task.plugins[0].results
        assert task.stages["running"] == pytest.approx(30.0)

    with_engine(test, timeout_s=30.0, runner=ScriptedRunner(seconds=1e6))


def test_finished_work_is_kept_when_its_time_is_over_in_that_moment() -> None:
    class FinishesWhenAsked(ScriptedRunner):
        async def _finish(self, task_id: int, stop: StopSignal) -> tuple[PluginRun, ...]:
            await stop.wait()
            return self.runs

    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (TaskState.COMPLETED, EndedBy.FINISHED)

    with_engine(test, runner=FinishesWhenAsked(), timeout_s=5.0)


def test_a_damaged_sample_fails_its_task_alone() -> None:
    async def test(rig: EngineRig) -> None:
        rig.quarantine.extract_raises.append(SampleChanged("damaged", "the sum differs"))
        await rig.add("damaged")
        await rig.add("sound")
        tasks = await rig.all_final()
        assert (tasks[1].state, tasks[1].ended_by) == (TaskState.FAILED, EndedBy.SAMPLE_CHANGED)
        assert tasks[2].state is TaskState.COMPLETED

    with_engine(test, max_workers=1)


def test_a_full_disk_while_the_sample_is_laid_out_is_waited_for() -> None:
    async def test(rig: EngineRig) -> None:
        rig.quarantine.extract_raises.extend([StoreFull("no space")] * 3)
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert task.state is TaskState.COMPLETED
        assert task.stages["initializing"] == pytest.approx(1.0 + 2.0 + 4.0, abs=0.1)

    with_engine(test)


def test_a_sample_that_cannot_be_laid_out_for_another_reason_fails_its_task_and_frees_the_worker() -> None:
    async def test(rig: EngineRig) -> None:
        rig.quarantine.extract_raises.extend([StoreError("Permission denied.")] * 2)
        await rig.add("one", "two", "three")
        tasks = await rig.all_final(within_s=60.0)
        assert states(tasks) == [TaskState.FAILED, TaskState.FAILED, TaskState.COMPLETED]
        assert tasks[1].reason == "The sample could not be laid out: Permission denied."

    with_engine(test, max_workers=1)


def test_a_plugin_that_cannot_start_fails_the_task_in_words() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (TaskState.FAILED, EndedBy.PLUGIN_ERROR)
        assert "magic" in task.reason

    with_engine(test, runner=ScriptedRunner(raises=[PluginUnavailable("magic", "its entry script is gone")]))


# --- cancel -----------------------------------------------------------------------------------------------------------------------


def test_canceling_the_third_of_ten_pending_tasks_ends_it_at_once_and_no_other() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add(*[f"s{n}" for n in range(10)])
        outcome = await rig.do(CancelTasks(task_ids=(3,)))
        assert outcome.done
        task = await rig.task(3)
        assert (task.state, task.ended_by, task.reason) == (TaskState.CANCELED, EndedBy.USER, "Canceled by ana while it waited.")
        again = await rig.do(CancelTasks(task_ids=(3,)))
        assert not again.done
        assert "already canceled" in again.message
        assert states(await rig.tasks()).count(TaskState.PENDING) == 9

    with_engine(test)


def test_canceling_a_running_task_costs_no_worker_and_no_other_task() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three")
        await rig.until(lambda: 1 in rig.runner.running)
        assert (await rig.do(CancelTasks(task_ids=(1,)))).done
        tasks = await rig.all_final()
        assert [task.state for task in tasks.values()] == [TaskState.CANCELED, TaskState.COMPLETED, TaskState.COMPLETED]
        assert tasks[1].reason == "Canceled by ana while running: its plugins were at work."
        assert (await rig.engine.overview()).groups[0].active == 1

    with_engine(test, max_workers=1, runner=ScriptedRunner(seconds=10))


def test_a_task_can_be_canceled_at_every_moment_of_its_life() -> None:
    for turns in range(40):

        async def test(rig: EngineRig, turns: int = turns) -> None:
            await rig.add("sample")
            await settle_loop(turns)
            outcome = await rig.do(CancelTasks(task_ids=(1,)))
            task = (await rig.all_final())[1]
            assert task.state is (TaskState.CANCELED if outcome.done else TaskState.COMPLETED), turns

        rig = with_engine(test, runner=ScriptedRunner(seconds=0))
        assert len(rig.bodies(TaskCanceled)) + len(rig.bodies(TaskCompleted)) == 1


def test_a_task_that_ended_a_moment_ago_or_is_in_another_state_is_left_alone() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.all_final()
        assert not (await rig.do(CancelTasks(task_ids=(1,)))).done
        assert not (await rig.do(CancelTasks(task_ids=(1,), expected=TaskState.RUNNING))).done
        outcome = await rig.do(CancelTasks(task_ids=(1, 77)))
        assert [target.message for target in outcome.targets][1].startswith("There is no task 77")
        assert (await rig.task(1)).state is TaskState.COMPLETED

    with_engine(test)


# --- retry, priority, keys ------------------------------------------------------------------------------------------------------------


def test_a_retry_is_a_new_task_and_the_old_one_stays_as_it_is() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        before = (await rig.all_final())[1]
        outcome = await rig.do(RetryTasks(task_ids=(1,)), key="once")
        assert outcome.targets[0].new_task_id == 2
        assert await rig.do(RetryTasks(task_ids=(1,)), key="once") == outcome
        tasks = await rig.all_final()
        assert tasks[1] == before
        assert (len(tasks), tasks[2].retry_of, tasks[2].state) == (2, 1, TaskState.COMPLETED)

    with_engine(test)


def test_only_waiting_tasks_can_be_re_ordered() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.all_final()
        outcome = await rig.do(SetPriority(task_ids=(1,), priority=3))
        assert not outcome.done
        assert "only a waiting task" in outcome.message

    with_engine(test)


# --- submissions ------------------------------------------------------------------------------------------------------------------


def test_each_offer_gets_a_receipt_in_order() -> None:
    async def test(rig: EngineRig) -> None:
        account = await rig.add("a", "", "a", "b")
        assert [type(receipt) for receipt in account.receipts] == [Accepted, Refused, Duplicate, Accepted]
        await rig.all_final()
        later = await rig.add("a")
        assert [(receipt.task_id, receipt.state) for receipt in later.duplicates] == [(1, TaskState.COMPLETED)]
        once_more = await rig.add("a", again=True)
        assert once_more.accepted[0].task_id == 3

    with_engine(test)
