"""Counts and throughput follow from events alone."""

from __future__ import annotations

from malbox_tui.engine.metrics import Throughput
from malbox_tui.model.commands import CancelTasks
from malbox_tui.model.events import Event, PluginProgress, PoolResumed, Position, TaskCompleted
from malbox_tui.model.task import EndedBy, TaskState
from tests.support.rig import EngineRig, with_engine
from tests.support.virtual_time import settle_loop


def _end(at: float) -> Event:
    return Event(Position("e", 1, 1), at, TaskCompleted(task_id=1, ended_by=EndedBy.FINISHED, reason=""))


def test_ends_are_counted_by_the_minute_and_old_minutes_are_forgotten() -> None:
    throughput = Throughput(minutes=3)
    for at in (0.0, 59.0, 60.0, 130.0):
        throughput.apply(_end(at))
    throughput.apply(Event(Position("e", 1, 2), 130.0, PoolResumed()))
    assert throughput.per_minute(130.0) == (2, 1, 1)
    assert throughput.per_minute(200.0) == (1, 1, 0)
    assert throughput.per_minute(130.0) == (0, 1, 1), "what was forgotten stays forgotten"


def test_the_overview_counts_tasks_by_state_and_ends_by_the_minute() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", "three", "four", "five")
        await rig.do(CancelTasks(task_ids=(5,)))
        await rig.all_final()
        await settle_loop()
        overview = await rig.engine.overview()
        assert overview.counts[TaskState.COMPLETED] == 4
        assert overview.counts[TaskState.CANCELED] == 1
        assert sum(overview.counts.values()) == 5
        assert sum(overview.ended_per_minute) == 5

    with_engine(test)


def test_progress_is_told_and_not_stored() -> None:
    async def test(rig: EngineRig) -> None:
        rig.engine.announce(PluginProgress(task_id=1, plugin="p", fraction=0.5, message="half"))
        await settle_loop()
        assert [event.durable for event in rig.events if isinstance(event.body, PluginProgress)] == [False]
        assert not [event for event in await rig.store.events(0, 1000) if isinstance(event.body, PluginProgress)]

    with_engine(test)
