"""What every `PluginRunner` does, and the `PluginBench`es it hands out."""

from __future__ import annotations

import asyncio

import pytest

from malbox_tui.model.errors import PluginUnavailable, StoreFull
from malbox_tui.model.events import ConfigReloaded, PluginResultAvailable, PluginStarted, PluginStopped
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.report import Classification, PluginStatus
from malbox_tui.ports import Findings, PluginJob
from tests.confine.rig import Stop
from tests.support.plugin_rigs import GRACE_S, Behaviour, PluginRig, on_every_runner

pytestmark = pytest.mark.slow

JUDGES, FAILS, WAITS, DEAF, _TOGETHER, _BREAKS, _HANGS = Behaviour


def statuses(findings: Findings) -> dict[str, PluginStatus]:
    """How the runs of those that took part ended, by name."""
    return {run.name: run.status for run in findings.runs if run.status is not PluginStatus.SKIPPED}


@on_every_runner
async def test_a_run_gives_a_report_a_verdict_and_news(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    rig.lay_out(bench, b"content")
    (run,) = [run for run in (await rig.run(bench, (JUDGES,))).runs if run.status is not PluginStatus.SKIPPED]
    await rig.runner.release(bench)
    assert (run.name, run.status, run.reason) == (JUDGES, PluginStatus.COMPLETED, "")
    assert run.version
    assert run.seconds > 0
    assert run.verdict is not None
    assert run.verdict.classification.severity > Classification.CLEAN.severity
    (reference,) = run.results
    assert (reference.name, reference.format) == ("report", "json")
    assert len(await rig.results.read(reference, 10**6)) == reference.size_bytes
    assert [type(news) for news in rig.news] == [PluginStarted, PluginResultAvailable, PluginStopped]


@on_every_runner
async def test_plugins_that_are_kept_out_are_skipped_with_the_reason(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    rig.lay_out(bench, b"content")
    findings = await rig.run(bench, (JUDGES,))
    skipped = {run.name: run.reason for run in findings.runs if run.status is PluginStatus.SKIPPED}
    assert skipped == dict.fromkeys((name for name in Behaviour if name is not JUDGES), "Not asked for.")
    assert {news.plugin for news in rig.news if isinstance(news, PluginStarted)} == {JUDGES}
    await rig.runner.release(bench)


@on_every_runner
async def test_a_plugin_that_fails_harms_no_other(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    rig.lay_out(bench, b"content")
    for _ in range(2):
        findings = await rig.run(bench, (JUDGES, FAILS))
        assert statuses(findings) == {JUDGES: PluginStatus.COMPLETED, FAILS: PluginStatus.FAILED}
        assert all(run.reason for run in findings.runs if run.status is PluginStatus.FAILED)
    await rig.runner.release(bench)


@on_every_runner
async def test_a_stop_ends_what_is_unfinished_and_keeps_what_is_done(rig: PluginRig) -> None:
    for reason, status in (("user", PluginStatus.CANCELED), ("timeout", PluginStatus.TIMED_OUT)):
        bench, stop = await rig.runner.acquire(), Stop()
        rig.lay_out(bench, b"content")
        rig.news.clear()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(rig.run(bench, (JUDGES, WAITS), stop))
            await rig.until_stopped(JUDGES)
            await rig.until_started(WAITS)
            stop.give(reason)
        assert statuses(running.result()) == {JUDGES: PluginStatus.COMPLETED, WAITS: status}
        await rig.runner.release(bench)


@on_every_runner
async def test_a_plugin_that_does_not_hear_a_stop_is_killed_after_the_grace_period(rig: PluginRig) -> None:
    bench, stop = await rig.runner.acquire(), Stop()
    rig.lay_out(bench, b"content")
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run(bench, (DEAF,), stop))
        await rig.until_deaf()
        began = loop.time()
        stop.give("user")
    assert statuses(running.result()) == {DEAF: PluginStatus.CANCELED}
    assert loop.time() - began >= GRACE_S - 0.01
    await rig.runner.release(bench)


@on_every_runner
async def test_a_stop_that_was_given_before_starts_nothing(rig: PluginRig) -> None:
    bench, stop = await rig.runner.acquire(), Stop()
    rig.lay_out(bench, b"content")
    stop.give("timeout")
    findings = await rig.run(bench, (JUDGES, WAITS), stop)
    assert statuses(findings) == dict.fromkeys((JUDGES, WAITS), PluginStatus.TIMED_OUT)
    assert {run.reason for run in findings.runs if run.status is PluginStatus.TIMED_OUT} == {"it was not started"}
    assert rig.news == []
    await rig.runner.release(bench)


@on_every_runner
async def test_a_cancelled_run_leaves_a_bench_that_works(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    rig.lay_out(bench, b"content")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run(bench, (WAITS,)))
        await rig.until_started(WAITS)
        running.cancel()
    assert running.cancelled()
    assert statuses(await rig.run(bench, (JUDGES,))) == {JUDGES: PluginStatus.COMPLETED}
    await rig.runner.release(bench)


@on_every_runner
async def test_benches_are_not_shared_and_their_inbox_is_empty(rig: PluginRig) -> None:
    first, second = await rig.runner.acquire(), await rig.runner.acquire()
    assert first.inbox != second.inbox
    rig.lay_out(first, b"content")
    await rig.runner.release(first)
    again = await rig.runner.acquire()
    assert again is first, "idle ones are taken first"
    assert not rig.laid_out(again)
    await rig.runner.release(again)
    await rig.runner.release(second)


@on_every_runner
async def test_idle_benches_are_kept_for_the_limits_that_they_were_acquired_with(rig: PluginRig) -> None:
    tight = ResourceLimits(memory_mb=512)
    first, second = await rig.runner.acquire(tight), await rig.runner.acquire()
    await rig.runner.release(first)
    await rig.runner.release(second)
    assert await rig.runner.acquire(ResourceLimits(memory_mb=512)) is first, "limits are compared by value"
    other = await rig.runner.acquire(tight)
    assert other is not second
    assert await rig.runner.acquire() is second
    for bench in (first, second, other):
        await rig.runner.release(bench)
    await rig.runner.trim(1)
    assert await rig.runner.acquire(tight) is other, "benches of all limits count, and the longest idle go first"
    await rig.runner.release(other)


@on_every_runner
async def test_benches_work_at_the_same_time(rig: PluginRig) -> None:
    stop, benches = Stop(), [await rig.runner.acquire() for _ in range(2)]
    for bench in benches:
        rig.lay_out(bench, b"content")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(rig.run(benches[0], (WAITS,), stop))
        await rig.until_started(WAITS)
        assert statuses(await rig.run(benches[1], (JUDGES,))) == {JUDGES: PluginStatus.COMPLETED}
        assert not waiting.done()
        stop.give("user")
    for bench in benches:
        await rig.runner.release(bench)


@on_every_runner
async def test_idle_benches_are_trimmed_and_those_in_use_are_not(rig: PluginRig) -> None:
    used, idle = await rig.runner.acquire(), await rig.runner.acquire()
    await rig.runner.release(idle)
    await rig.runner.trim(0)
    assert await rig.runner.acquire() is not idle
    rig.lay_out(used, b"content")
    assert statuses(await rig.run(used, (JUDGES,))) == {JUDGES: PluginStatus.COMPLETED}
    await rig.runner.release(used)


@on_every_runner
async def test_an_error_of_the_result_store_is_not_blamed_on_the_plugin(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    rig.lay_out(bench, b"content")
    with pytest.MonkeyPatch.context() as patch:
        rig.fill_the_disk(patch)
        with pytest.raises(StoreFull):
            await rig.run(bench, (JUDGES,))
    assert statuses(await rig.run(bench, (JUDGES,))) == {JUDGES: PluginStatus.COMPLETED}
    await rig.runner.release(bench)


@on_every_runner
async def test_nothing_is_handed_out_after_closing_and_closing_twice_is_harmless(rig: PluginRig) -> None:
    await rig.runner.release(await rig.runner.acquire())
    await rig.runner.close()
    await rig.runner.close()
    with pytest.raises(PluginUnavailable):
        await rig.runner.acquire()


@on_every_runner
async def test_what_was_collected_is_told_by_its_name_and_its_results_lie_apart_from_those_on_the_sample(rig: PluginRig) -> None:
    bench = await rig.runner.acquire()
    kept_out = {name.value: "Not asked for." for name in Behaviour if name is not JUDGES}
    references = []
    for number, subject in enumerate(("", "/tmp/a\x1b b", "/tmp/c")):
        rig.lay_out(bench, b"content %d" % number, f"sample-{number}")
        async with asyncio.timeout(60):
            found = await bench.run(PluginJob(1, "token-1", f"sample-{number}", kept_out, subject=subject), Stop())
        (run,) = [run for run in found.runs if run.status is not PluginStatus.SKIPPED]
        assert {run.subject for run in found.runs} <= {subject, ""}
        assert (run.name, run.subject) == (JUDGES, subject)
        references += run.results
    await rig.runner.release(bench)
    assert [reference.name for reference in references] == ["report"] * 3
    assert len({reference.path for reference in references}) == 3
    for reference in references:
        assert len(await rig.results.read(reference, 10**6)) == reference.size_bytes


@on_every_runner
async def test_plugins_that_are_read_again_run_as_before_and_the_plan_has_all_of_them(rig: PluginRig) -> None:
    planned = {step.plugin for step in rig.runner.plan.steps}
    read = await rig.runner.reload()
    assert {plugin.name for plugin in read.plugins} == planned == {step.plugin for step in rig.runner.plan.steps}
    assert (tuple(read.changes), tuple(rig.runner.troubles)) == ((), ())
    bench = await rig.runner.acquire()
    rig.lay_out(bench, b"content")
    assert statuses(await rig.run(bench, (JUDGES,))) == {JUDGES: PluginStatus.COMPLETED}


@on_every_runner
async def test_news_is_passed_on_and_plugins_are_watched_until_that_is_cancelled(rig: PluginRig) -> None:
    for news in (ConfigReloaded(), PluginStarted(task_id=1, plugin="nobody")):
        rig.runner.tell(news)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(rig.runner.watch())
        await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
        watching.cancel()
    assert watching.cancelled()
