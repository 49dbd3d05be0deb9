"""A running engine goes on with other limits."""

from __future__ import annotations

import msgspec

from malbox_tui.config.settings import AnalysisSettings, GeneralSettings, IntakeSettings, Settings
from malbox_tui.model.commands import ResizeGroup
from malbox_tui.model.submission import Refused
from tests.support.rig import EngineRig, with_engine


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
