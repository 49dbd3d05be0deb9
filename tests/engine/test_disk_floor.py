"""Below the floor nothing is taken in and no task begins, what runs goes on, and it resumes by itself."""

from __future__ import annotations

import msgspec

from malbox_tui.config.settings import RetentionSettings
from malbox_tui.engine.disk_floor import LOOK_S
from malbox_tui.model.events import PoolPaused, PoolResumed
from malbox_tui.model.submission import LOW_DISK
from malbox_tui.model.task import TaskState
from tests.support.rig import EngineRig, ScriptedRunner, with_engine

GIB = 1 << 30
FLOOR = RetentionSettings(min_free_mb=1024)


def test_what_runs_goes_on_what_waits_waits_and_nothing_is_taken_in() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("runs", "waits")
        await rig.until_state(1, TaskState.RUNNING)
        rig.stockroom.free_bytes = GIB - 1
        await rig.pass_time(LOOK_S)
        overview = await rig.engine.overview()
        assert overview.paused == "disk below 1.0 GiB"
        assert "retention.min_free_mb" in overview.low_disk
        assert overview.floor_bytes == GIB
        await rig.until_state(1, TaskState.COMPLETED)
        await rig.pass_time(1000)
        assert (await rig.task(2)).state is TaskState.PENDING
        assert (await rig.waiting(2)).reason == "disk below 1.0 GiB"
        (refused,) = (await rig.add("late")).refused
        assert (refused.refusal.code, refused.refusal.reason) == (LOW_DISK, overview.low_disk)
        rig.stockroom.free_bytes = GIB + 1
        await rig.pass_time(1000)
        assert (await rig.engine.overview()).low_disk, "just enough is not enough to resume"
        rig.stockroom.free_bytes = 2 * GIB
        await rig.pass_time(LOOK_S)
        assert (await rig.engine.overview()).low_disk == ""
        assert (await rig.all_final())[2].state is TaskState.COMPLETED
        assert len((await rig.add("later")).accepted) == 1
        assert (len(rig.bodies(PoolPaused)), len(rig.bodies(PoolResumed))) == (1, 1)

    with_engine(test, max_workers=1, runner=ScriptedRunner(seconds=20.0), retention=FLOOR)


def test_an_engine_that_starts_on_a_full_disk_takes_nothing() -> None:
    async def test(rig: EngineRig) -> None:
        assert (await rig.engine.overview()).paused == "disk below 1.0 GiB"
        assert not (await rig.add("a")).accepted

    def fill(rig: EngineRig) -> None:
        rig.stockroom.free_bytes = 0

    with_engine(test, prepare=fill, retention=FLOOR)


def test_another_floor_holds_at_once_and_none_is_none() -> None:
    async def test(rig: EngineRig) -> None:
        rig.stockroom.free_bytes = 10
        assert not (await rig.add("a")).accepted
        rig.engine.reload(msgspec.structs.replace(rig.engine._settings, retention=RetentionSettings(min_free_mb=0)))
        assert (await rig.engine.overview()).paused is None
        assert (await rig.add("a")).accepted
        rig.stockroom.free_bytes = None
        rig.engine.reload(msgspec.structs.replace(rig.engine._settings, retention=FLOOR))
        assert (await rig.add("b")).accepted, "a disk that can't be looked at is not held to be full"

    with_engine(test, retention=FLOOR)
