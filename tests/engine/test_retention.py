"""What is removed by itself: the oldest first, never what waits or runs, told, logged and counted."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from malbox_tui.config.settings import AnalysisSettings, RetentionSettings
from malbox_tui.engine.retention import SWEEP_S
from malbox_tui.model.actions import Retained
from malbox_tui.model.commands import PurgeSample, RetryTasks
from malbox_tui.model.errors import RefusedCommand, SampleMissing, StoreError
from malbox_tui.model.events import ActionTaken, ResultsRemoved, SampleRemoved
from malbox_tui.model.task import TaskState
from malbox_tui.model.upkeep import Cause, SampleForm
from tests.support.rig import EngineRig, ScriptedRunner, survivor, with_engine
from tests.support.virtual_time import settle_loop

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
SPELL_S = 7200.0


async def one_by_one(rig: EngineRig, *contents: str) -> None:
    """Each content is analysed two hours after the one before."""
    for content in contents:
        await rig.add(content)
        await rig.all_final()
        rig.stockroom.contents.add(content)
        rig.stockroom.tasks |= set(await rig.tasks())
        await rig.pass_time(SPELL_S)


def retained(rig: EngineRig) -> list[Retained]:
    return [body.action for body in rig.bodies(ActionTaken) if isinstance(body.action, Retained)]


def test_samples_go_when_they_were_kept_for_long_enough() -> None:
    async def test(rig: EngineRig) -> None:
        await one_by_one(rig, A, B)
        await rig.pass_time(SWEEP_S)
        assert rig.quarantine.removed == [A]
        assert list(await rig.tasks()) == [2]
        overview = await rig.engine.overview()
        assert overview.counts[TaskState.COMPLETED] == 1
        assert (overview.freed.samples, overview.freed.size_bytes) == ({Cause.AGE: 1}, 65)
        assert overview.kept is not None
        assert overview.kept.samples == 1
        await rig.pass_time(SPELL_S)
        assert rig.quarantine.removed == [A, B]
        assert rig.results.removed == [1, 2]
        assert [(body.sha256, body.cause) for body in rig.bodies(SampleRemoved)] == [(A, Cause.AGE), (B, Cause.AGE)]
        assert retained(rig) == [Retained(samples=1, results=0, size_bytes=65)] * 2
        (action, *_) = await rig.engine._actions._store.actions(None, 1)
        assert (action.actor, action.done) == ("retention", True)

    with_engine(test, retention=RetentionSettings(sample_days=0.125))


def test_of_too_many_samples_the_oldest_go() -> None:
    async def test(rig: EngineRig) -> None:
        await one_by_one(rig, A, B, C)
        await rig.pass_time(SWEEP_S)
        assert rig.quarantine.removed == [A]
        assert [body.cause for body in rig.bodies(SampleRemoved)] == [Cause.SIZE]

    with_engine(test, retention=RetentionSettings(samples_mb=20))


def test_results_go_and_what_the_tasks_came_to_stays() -> None:
    async def by_age(rig: EngineRig) -> None:
        await one_by_one(rig, A, B)
        await rig.pass_time(SWEEP_S)
        assert rig.results.removed == [1]
        assert rig.bodies(ResultsRemoved) == [ResultsRemoved(task_ids=(1,), cause=Cause.AGE)]
        assert (await rig.tasks())[1].state is TaskState.COMPLETED
        assert rig.quarantine.removed == []
        assert retained(rig)[0].results == 1
        await rig.pass_time(SWEEP_S)
        assert rig.results.removed == [1], "once"

    async def by_size(rig: EngineRig) -> None:
        await one_by_one(rig, A, B, C)
        await rig.pass_time(SWEEP_S)
        assert rig.results.removed == [1, 2]
        assert [body.cause for body in rig.bodies(ResultsRemoved)] == [Cause.SIZE, Cause.SIZE]

    with_engine(by_age, retention=RetentionSettings(result_days=0.125))
    with_engine(by_size, retention=RetentionSettings(results_mb=1))


def test_nothing_goes_that_waits_or_runs() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(A)
        await rig.all_final()
        await rig.do(RetryTasks(task_ids=(1,)))
        await rig.add(B)
        await rig.pass_time(3 * SWEEP_S)
        assert [task.state for task in (await rig.tasks()).values()] == [
            TaskState.COMPLETED,
            TaskState.RUNNING,
            TaskState.PENDING,
        ]
        assert rig.quarantine.removed == []
        assert 2 not in rig.results.removed
        refused = await rig.do(PurgeSample(sha256=A))
        assert not refused.done
        assert "task 2 waits or runs" in refused.message
        await rig.all_final()
        await rig.pass_time(2 * SWEEP_S)
        assert rig.quarantine.removed == [A, B]

    minute = 1 / 1440
    with_engine(
        test,
        max_workers=1,
        runner=ScriptedRunner(seconds_of={2: 5000.0}),
        analysis=AnalysisSettings(timeout_s=6000.0, critical_timeout_s=7000.0),
        retention=RetentionSettings(sample_days=minute, result_days=minute),
    )


def test_a_setting_that_is_read_again_holds_from_the_next_sweep_on() -> None:
    async def test(rig: EngineRig) -> None:
        await one_by_one(rig, A)
        await rig.pass_time(SWEEP_S)
        assert rig.quarantine.removed == []
        settings = msgspec.structs.replace(rig.engine._settings, retention=RetentionSettings(sample_days=0.04))
        rig.engine.reload(settings)
        await rig.pass_time(SWEEP_S)
        assert rig.quarantine.removed == [A]

    with_engine(test, retention=RetentionSettings())


def test_files_that_could_not_be_removed_are_removed_later() -> None:
    async def test(rig: EngineRig) -> None:
        await one_by_one(rig, A)
        rig.results.raises = [StoreError("input/output error")]
        assert (await rig.do(PurgeSample(sha256=A))).done
        assert rig.quarantine.removed == []
        assert len(rig.store.removals) == 1
        await rig.pass_time(SWEEP_S)
        assert (rig.results.removed, rig.quarantine.removed, rig.store.removals) == ([1], [A], {})

    with_engine(test, retention=RetentionSettings())


def test_what_was_interrupted_is_finished_by_the_next_start() -> None:
    left = None

    async def test(rig: EngineRig) -> None:
        nonlocal left
        await one_by_one(rig, A)
        rig.results.raises = [StoreError("the process ends here")]
        await rig.do(PurgeSample(sha256=A))
        left = survivor(rig.store)

    async def next_start(rig: EngineRig) -> None:
        await rig.pass_time(1)
        assert (rig.results.removed, rig.quarantine.removed, rig.store.removals) == ([1], [A], {})
        await rig.add(B)
        assert list(await rig.tasks()) == [2]

    with_engine(test, retention=RetentionSettings())
    with_engine(next_start, store=left, retention=RetentionSettings())


def test_a_content_that_is_in_hand_outlives_a_purge() -> None:
    async def test(rig: EngineRig) -> None:
        await one_by_one(rig, A)
        hold, going_on = asyncio.Event(), asyncio.Event()
        add = rig.store.add

        async def slowly(new: object) -> object:
            hold.set()
            await going_on.wait()
            return await add(new)  # type: ignore[arg-type]

        rig.store.add = slowly  # type: ignore[method-assign, assignment]
        adding = asyncio.get_running_loop().create_task(rig.add(A))
        await hold.wait()
        assert (await rig.do(PurgeSample(sha256=A))).done
        assert rig.quarantine.removed == [], "its next task is being made"
        going_on.set()
        await adding
        await rig.all_final()
        await rig.pass_time(2 * SWEEP_S)
        assert rig.quarantine.removed == []
        assert list(await rig.tasks()) == [2]
        assert rig.store.removals == {}

    with_engine(test, retention=RetentionSettings())


def test_a_content_of_a_submission_that_was_cut_is_in_nobodys_hand() -> None:
    async def test(rig: EngineRig) -> None:
        adding = asyncio.get_running_loop().create_task(rig.add(A, B, C))
        await settle_loop(3)
        adding.cancel()
        await asyncio.wait({adding})
        await rig.all_final()
        assert not any(content in rig.engine._submissions._hands for content in (A, B, C))

    with_engine(test, retention=RetentionSettings())


def test_a_sample_is_given_out_and_that_is_logged_before_the_first_byte() -> None:
    async def test(rig: EngineRig) -> None:
        await one_by_one(rig, A)
        chunks = rig.engine.content(A, SampleForm.RAW, "ana", "here")
        assert await anext(chunks) == A.encode()
        (record,) = await rig.store.actions(None, 1)
        assert (record.actor, record.origin, record.done, record.action.sha256) == ("ana", "here", True, A)  # type: ignore[union-attr]
        await chunks.aclose()
        with pytest.raises(SampleMissing):
            await anext(rig.engine.content(B, SampleForm.ZIP))
        (record,) = await rig.store.actions(None, 1)
        assert (record.actor, record.done) == ("operator", False)

    with_engine(test, retention=RetentionSettings())


def test_an_engine_without_a_stock_refuses_it() -> None:
    async def test(rig: EngineRig) -> None:
        assert not (await rig.do(PurgeSample(sha256=A))).done
        with pytest.raises(RefusedCommand):
            await anext(rig.engine.content(A, SampleForm.ZIP))
        with pytest.raises(RefusedCommand):
            await rig.engine.figures()

    with_engine(test)
