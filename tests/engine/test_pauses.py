"""A pause holds until somebody resumes, whatever becomes of the engine meanwhile."""

from __future__ import annotations

from malbox_tui.model.commands import PausePool, ResumePool
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import EngineStarted, PoolPaused, PoolResumed
from malbox_tui.model.task import TaskState
from tests.support.rig import BreakableStore, EngineRig, states, survivor, with_engine
from tests.support.scripted import ScriptedPauses

T = TaskState


def test_an_engine_that_comes_after_a_crash_takes_no_task_until_it_is_resumed() -> None:
    pauses, left = ScriptedPauses(), list[BreakableStore]()

    async def paused(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("sample")
        left.append(survivor(rig.store))

    async def after(rig: EngineRig) -> None:
        assert (await rig.engine.overview()).paused == "paused by ana"
        await rig.pass_time(600.0)
        assert states(await rig.tasks()) == [T.PENDING]
        assert (await rig.waiting(1)).reason == "paused by ana"
        await rig.do(ResumePool())
        assert states(await rig.all_final()) == [T.COMPLETED]

    async def resumed(rig: EngineRig) -> None:
        assert (await rig.engine.overview()).paused is None

    with_engine(paused, pauses=pauses)
    rig = with_engine(after, store=left[0], pauses=pauses)
    told = [type(event.body) for event in rig.events if isinstance(event.body, EngineStarted | PoolPaused | PoolResumed)]
    assert told == [PoolResumed], "who attaches later reads the pause in the overview"
    stored = [event.body for event in rig.store._events if isinstance(event.body, EngineStarted | PoolPaused)]
    assert stored[-2:] == [EngineStarted(recovered=0), PoolPaused(reason="paused by ana")]
    with_engine(resumed, pauses=pauses)


def test_a_pause_that_can_not_be_kept_holds_for_this_run_and_says_so() -> None:
    pauses = ScriptedPauses()

    async def test(rig: EngineRig) -> None:
        pauses.raises = [StoreError("The disk is full.")]
        outcome = await rig.do(PausePool())
        assert (outcome.done, (await rig.engine.overview()).paused) == (True, "paused by ana")
        assert outcome.message.endswith("The next start takes tasks again: The disk is full.")
        pauses.raises = [StoreError("The disk is full.")]
        outcome = await rig.do(ResumePool())
        assert (outcome.done, (await rig.engine.overview()).paused) == (True, None)
        assert outcome.message == "Resumed. The next start is paused again: The disk is full."

    with_engine(test, pauses=pauses)
