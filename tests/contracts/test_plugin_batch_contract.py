"""What every `PluginBench` does with a batch."""

from __future__ import annotations

import asyncio

import pytest

from malbox_tui.model.errors import StoreFull
from malbox_tui.model.events import EventBody, PluginStarted, PluginStopped
from malbox_tui.model.report import PluginStatus
from malbox_tui.ports import Findings
from tests.support.batches import Told
from tests.support.plugin_rigs import CRASHES, Behaviour, PluginRig, on_every_runner

pytestmark = pytest.mark.slow

JUDGES, _FAILS, WAITS, DEAF, TOGETHER, BREAKS, HANGS = Behaviour

COMPLETED, FAILED, CANCELED, TIMED_OUT, SKIPPED = (
    PluginStatus.COMPLETED,
    PluginStatus.FAILED,
    PluginStatus.CANCELED,
    PluginStatus.TIMED_OUT,
    PluginStatus.SKIPPED,
)


def statuses(told: list[Told]) -> list[dict[str, PluginStatus]]:
    """For each member how the runs of those that took part ended, by name."""
    return [{run.name: run.status for run in each.findings.runs if run.status is not SKIPPED} for each in told]


def starts_and_ends(news: list[EventBody]) -> set[tuple[type[EventBody], int, str]]:
    """Each start and each end of a plugin on a task, none of which may have been told twice."""
    told = [(type(each), each.task_id, each.plugin) for each in news if isinstance(each, PluginStarted | PluginStopped)]
    assert len(set(told)) == len(told)
    return set(told)


@on_every_runner
async def test_each_member_gets_what_was_found_in_its_own_sample(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    contents = b"first", b"second", b"third"
    alone = []
    for content in contents:
        rig.lay_out(bench, content)
        alone.append((await rig.run(bench, (TOGETHER,))).runs)
    rig.news.clear()
    told = rig.members(bench, (TOGETHER, JUDGES), *contents)
    await rig.run_batch(bench, told)
    assert statuses(told) == [{TOGETHER: COMPLETED, JUDGES: COMPLETED}] * 3
    for each, runs in zip(told, alone, strict=True):
        for run in each.findings.runs:
            assert all(reference.path.startswith(f"{each.task_id}/token-{each.task_id}/") for reference in run.results)
            assert [reference.name for reference in run.results] == (["report"] if run.status is COMPLETED else [])
        (verdict,) = [run.verdict for run in each.findings.runs if run.name == TOGETHER]
        assert verdict == next(run.verdict for run in runs if run.name == TOGETHER)
        assert verdict is not None
    expected = {
        (kind, task, name) for kind in (PluginStarted, PluginStopped) for task in (1, 2, 3) for name in (TOGETHER, JUDGES)
    }
    assert starts_and_ends(rig.news) == expected
    await rig.runner.release(bench)


@on_every_runner
async def test_a_member_is_told_when_it_is_done_and_not_when_the_batch_is(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (JUDGES, WAITS), b"1", b"2", b"3")
    told[0].kept_out[WAITS] = told[2].kept_out[WAITS] = "Not wanted."
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run_batch(bench, told))
        await told[0].until_told()
        await told[2].until_told()
        assert not told[1].found
        assert not running.done()
        told[1].stop.give("user")
    assert statuses(told) == [{JUDGES: COMPLETED}, {JUDGES: COMPLETED, WAITS: CANCELED}, {JUDGES: COMPLETED}]
    await rig.runner.release(bench)


@on_every_runner
async def test_plugins_may_be_kept_out_of_single_members_and_of_all(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (TOGETHER,), b"1", b"2", b"3", b"4")
    told[1].kept_out[TOGETHER] = told[3].kept_out[TOGETHER] = "Not wanted."
    await rig.run_batch(bench, told)
    assert statuses(told) == [{TOGETHER: COMPLETED}, {}, {TOGETHER: COMPLETED}, {}]
    assert [(run.status, run.reason) for run in told[1].findings.runs if run.name == TOGETHER] == [(SKIPPED, "Not wanted.")]
    assert told[1].work == []
    await rig.runner.release(bench)


@on_every_runner
async def test_a_batch_that_breaks_is_run_one_by_one(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (BREAKS, TOGETHER), b"1", b"2", b"3")
    await rig.run_batch(bench, told)
    assert statuses(told) == [{BREAKS: COMPLETED, TOGETHER: COMPLETED}] * 3
    reports = [run.results for each in told for run in each.findings.runs if run.name == BREAKS]
    assert [[reference.name for reference in of_one if reference.name != "log"] for of_one in reports] == [["report"]] * 3
    assert {task for kind, task, _plugin in starts_and_ends(rig.news) if kind is PluginStopped} == {1, 2, 3}
    await rig.runner.release(bench)


@on_every_runner
async def test_a_batch_that_takes_longer_than_half_of_a_members_time_is_run_one_by_one(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (HANGS,), b"1", b"2", b"3")
    told[1].timeout_s = 2.0
    await rig.run_batch(bench, told)
    assert statuses(told) == [{HANGS: COMPLETED}] * 3
    await rig.runner.release(bench)


@on_every_runner
async def test_a_plugin_that_dies_of_one_member_gets_the_others(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    rig.crash_next()
    told = rig.members(bench, (JUDGES,), CRASHES, b"2", b"3")
    await rig.run_batch(bench, told)
    assert [each.run.status for each in told] == [FAILED, COMPLETED, COMPLETED]
    await rig.runner.release(bench)


@on_every_runner
async def test_a_stop_ends_the_member_that_is_worked_at_or_waits_and_no_other(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (WAITS,), b"1", b"2", b"3")
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.run_batch(bench, told))
        await told[0].until_worked_at()
        told[1].stop.give("user")
        await told[1].until_told()
        assert not told[0].found
        told[0].stop.give("user")
        await told[0].until_told()
        await told[2].until_worked_at()
        assert not told[2].found
        told[2].stop.give("timeout")
    assert [each.run.status for each in told] == [CANCELED, CANCELED, TIMED_OUT]
    assert told[1].run.reason == "it was not started"
    assert told[1].work == []
    await rig.runner.release(bench)


@on_every_runner
async def test_a_deaf_plugin_is_killed_and_goes_on_with_the_next_member(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (DEAF,), b"1", b"2")
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.run_batch(bench, told))
        for each in told:
            await each.until_worked_at()
            each.stop.give("user")
            await each.until_told()
    assert [each.run.status for each in told] == [CANCELED, CANCELED]
    await rig.runner.release(bench)


@on_every_runner
async def test_a_member_that_is_stopped_leaves_its_batch_at_once_and_the_batch_goes_on(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (HANGS,), b"1", b"2", b"3")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run_batch(bench, told))
        for each in told:
            await each.until_worked_at()
        for each, reason in zip(told, ("user", "timeout", "user"), strict=True):
            assert not each.found
            each.stop.give(reason)
            await each.until_told()
            assert each is told[-1] or not running.done()
    assert [each.run.status for each in told] == [CANCELED, TIMED_OUT, CANCELED]
    assert len(starts_and_ends(rig.news)) == 6
    rig.lay_out(bench, b"next")
    assert [run.status for run in (await rig.run(bench, (HANGS,))).runs if run.status is not SKIPPED] == [COMPLETED]
    await rig.runner.release(bench)


@on_every_runner
async def test_a_member_that_was_stopped_before_is_not_started(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (TOGETHER, JUDGES), b"1", b"2", b"3")
    told[0].stop.give("timeout")
    await rig.run_batch(bench, told)
    assert statuses(told)[0] == {TOGETHER: TIMED_OUT, JUDGES: TIMED_OUT}
    assert statuses(told)[1:] == [{TOGETHER: COMPLETED, JUDGES: COMPLETED}] * 2
    assert {task for _kind, task, _plugin in starts_and_ends(rig.news)} == {2, 3}
    await rig.runner.release(bench)


@on_every_runner
async def test_an_error_of_the_result_store_is_that_of_its_member_alone(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (JUDGES, TOGETHER, BREAKS), b"1", b"2", b"3")
    with pytest.MonkeyPatch.context() as patch:
        rig.fill_the_disk(patch, task_id=2)
        await rig.run_batch(bench, told)
    (error,) = told[1].found
    assert isinstance(error, StoreFull)
    assert told[1].work[-1] is False
    assert statuses([told[0], told[2]]) == [{JUDGES: COMPLETED, TOGETHER: COMPLETED, BREAKS: COMPLETED}] * 2
    await rig.runner.release(bench)


@on_every_runner
async def test_a_cancelled_batch_tells_nobody_and_leaves_a_bench_that_works(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (WAITS, HANGS), b"1", b"2")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run_batch(bench, told))
        for each in told:
            await each.until_worked_at()
        running.cancel()
    assert running.cancelled()
    assert [each.found for each in told] == [[], []]
    assert [each.work for each in told] == [[True, False], [True, False]]
    again = rig.members(bench, (TOGETHER,), b"1", b"2")
    await rig.run_batch(bench, again)
    assert statuses(again) == [{TOGETHER: COMPLETED}] * 2
    await rig.runner.release(bench)


@on_every_runner
async def test_closing_ends_a_batch_and_starts_nothing_more(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    told = rig.members(bench, (WAITS, HANGS), b"1", b"2")
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.run_batch(bench, told))
        for each in told:
            await each.until_worked_at()
        await rig.runner.close()
    found: list[Findings] = [each.findings for each in told]
    assert {run.status for each in found for run in each.runs} == {CANCELED, SKIPPED}
