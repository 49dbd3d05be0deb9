"""What simulated plugins do, rightly and wrongly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from malbox_tui.model.errors import PluginUnavailable, StoreError
from malbox_tui.model.events import EventBody, PluginProgress, PluginResultAvailable, PluginStarted, PluginStopped
from malbox_tui.model.report import PluginStatus
from malbox_tui.ports import Findings
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.plugin_run import SimulatedPlugin
from malbox_tui.simulated.plugins import SimulatedRunner
from malbox_tui.simulated.world import World
from tests.simulated.builders import Stop, job, now, world
from tests.support.batches import Told
from tests.support.virtual_time import run_virtual, settle_loop

QUICK = SimulatedPlugin("quick", seconds=(1.0, 1.0), identifies=True)
LONG = SimulatedPlugin("long", seconds=(100.0, 100.0), judges=1.0)


class Shop:
    """A world with an open runner of two plugins."""

    def __init__(self) -> None:
        self.world: World = world()
        self.news: list[EventBody] = []
        self.runner = SimulatedRunner(self.world, (QUICK, LONG), cancel_grace_s=5.0, on_news=self.news.append)

    async def findings(self, stop: Stop | None = None, task_id: int = 1, **kept_out: str) -> Findings:
        bench = await self.runner.acquire()
        try:
            return await bench.run(job(task_id, **kept_out), stop or Stop())
        finally:
            await self.runner.release(bench)

    async def stopped(self, reason: str, after_s: float = 10.0) -> tuple[Findings, float]:
        """What is found when the stop speaks after some time, and how long it took from then on."""
        stop = Stop()
        asyncio.get_running_loop().call_later(after_s, stop.give, reason)
        began = now()
        findings = await self.findings(stop)
        return findings, now() - began - after_s


def in_shop(test: Callable[[Shop], Awaitable[None]]) -> None:
    async def live() -> None:
        shop = Shop()
        await shop.runner.open()
        await test(shop)
        assert shop.world.violations == []
        assert shop.runner.benches_out == 0
        assert not shop.runner.running

    run_virtual(live())


def statuses(findings: Findings) -> dict[str, PluginStatus]:
    return {run.name: run.status for run in findings.runs}


def test_each_plugin_gives_a_run_with_a_report_and_news() -> None:
    async def test(shop: Shop) -> None:
        findings = await shop.findings()
        assert statuses(findings) == {"quick": PluginStatus.COMPLETED, "long": PluginStatus.COMPLETED}
        assert [run.verdict is not None for run in findings.runs] == [False, True]
        assert all([result.name for result in run.results] == ["report"] for run in findings.runs)
        assert findings.identification is not None
        assert [type(news) for news in shop.news].count(PluginResultAvailable) == 2
        assert {type(news) for news in shop.news} == {PluginStarted, PluginResultAvailable, PluginStopped}

    in_shop(test)


def test_the_same_content_gives_the_same_verdict_and_kind_whoever_asks() -> None:
    async def test(shop: Shop) -> None:
        findings = []
        for _ in range(2):
            bench = await shop.runner.acquire()
            shop.world.files[bench.inbox / "sample"] = b"content"
            findings.append(await bench.run(job(), Stop()))
            await shop.runner.release(bench)
        first, second = ([run.verdict for run in found.runs] for found in findings)
        assert first == second
        assert findings[0].identification == findings[1].identification

    in_shop(test)


def test_a_plugin_that_is_kept_out_is_skipped_with_the_reason() -> None:
    async def test(shop: Shop) -> None:
        findings = await shop.findings(long="The group denies it.")
        assert statuses(findings) == {"quick": PluginStatus.COMPLETED, "long": PluginStatus.SKIPPED}
        assert findings.runs[1].reason == "The group denies it."

    in_shop(test)


@pytest.mark.parametrize(("reason", "status"), [("user", PluginStatus.CANCELED), ("timeout", PluginStatus.TIMED_OUT)])
def test_a_stop_ends_what_is_unfinished_at_once(reason: str, status: PluginStatus) -> None:
    async def test(shop: Shop) -> None:
        findings, took = await shop.stopped(reason)
        assert statuses(findings) == {"quick": PluginStatus.COMPLETED, "long": status}
        assert took < 1
        findings = await shop.findings(Stop(reason))
        assert {(run.status, run.reason, run.seconds) for run in findings.runs} == {(status, "it was not started", 0.0)}

    in_shop(test)


def test_a_deaf_plugin_is_killed_after_the_grace_period() -> None:
    async def test(shop: Shop) -> None:
        shop.world.faults.inject(Fault.PLUGIN_DEAF, "long")
        findings, took = await shop.stopped("user")
        assert statuses(findings)["long"] is PluginStatus.CANCELED
        assert 5 <= took < 6
        assert shop.world.faults.hits[Fault.PLUGIN_DEAF] == 1

    in_shop(test)


def test_a_plugin_that_crashes_fails_alone() -> None:
    async def test(shop: Shop) -> None:
        shop.world.faults.inject(Fault.PLUGIN_CRASHES, "quick")
        findings = await shop.findings()
        assert statuses(findings) == {"quick": PluginStatus.FAILED, "long": PluginStatus.COMPLETED}
        assert findings.runs[0].reason
        assert findings.identification is None

    in_shop(test)


def test_a_plugin_that_hangs_ends_when_it_is_stopped() -> None:
    async def test(shop: Shop) -> None:
        shop.world.faults.inject(Fault.PLUGIN_HANGS, "quick")
        findings, took = await shop.stopped("timeout", after_s=3600)
        assert statuses(findings) == {"quick": PluginStatus.TIMED_OUT, "long": PluginStatus.COMPLETED}
        assert took < 1

    in_shop(test)


def test_a_broken_bench_and_a_full_host_are_said_as_errors() -> None:
    async def test(shop: Shop) -> None:
        shop.world.faults.inject(Fault.BENCH_BREAKS)
        with pytest.raises(StoreError):
            await shop.findings()
        shop.world.faults.inject(Fault.ACQUIRE_FAILS)
        with pytest.raises(PluginUnavailable):
            await shop.findings()
        shop.world.faults.inject(Fault.RELEASE_FAILS)
        with pytest.raises(StoreError):
            await shop.findings()
        assert statuses(await shop.findings()) == {"quick": PluginStatus.COMPLETED, "long": PluginStatus.COMPLETED}

    in_shop(test)


@pytest.mark.parametrize("fault", [Fault.ACQUIRE_SLOW, Fault.RELEASE_SLOW])
def test_a_bench_that_is_slow_to_take_or_give_back_is_not_lost_when_that_is_cancelled(fault: Fault) -> None:
    async def test(shop: Shop) -> None:
        shop.world.faults.inject(fault)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(110):
                await shop.findings()
                await asyncio.Event().wait()
        assert shop.runner.benches_out == 0
        assert shop.runner.benches == 1

    in_shop(test)


def test_a_cancelled_run_leaves_nothing_behind() -> None:
    async def test(shop: Shop) -> None:
        async with asyncio.TaskGroup() as group:
            finding = group.create_task(shop.findings())
            await settle_loop()
            finding.cancel()
        assert len(asyncio.all_tasks()) == 1
        await shop.findings()

    in_shop(test)


def test_closing_cuts_what_runs_and_hands_nothing_out_after_it() -> None:
    async def test(shop: Shop) -> None:
        shop.world.faults.inject(Fault.PLUGIN_HANGS, times=ALWAYS)
        async with asyncio.TaskGroup() as group:
            finding = group.create_task(shop.findings())
            asyncio.get_running_loop().call_later(10, lambda: group.create_task(shop.runner.close()))
        assert {run.status for run in finding.result().runs} == {PluginStatus.CANCELED}
        await shop.runner.close()
        with pytest.raises(PluginUnavailable):
            await shop.runner.acquire()
        assert shop.runner.benches == 0

    in_shop(test)


def test_idle_benches_are_trimmed_and_used_ones_are_not() -> None:
    async def test(shop: Shop) -> None:
        benches = [await shop.runner.acquire() for _ in range(3)]
        await shop.runner.release(benches.pop())
        await shop.runner.trim(2)
        assert shop.runner.benches == 2
        await shop.runner.trim(0)
        assert shop.runner.benches == 2
        for bench in benches:
            await shop.runner.release(bench)

    in_shop(test)


def test_a_plugin_may_say_how_far_it_is() -> None:
    async def live() -> None:
        news: list[EventBody] = []
        runner = SimulatedRunner(world(), (SimulatedPlugin("slow", steps=3),), on_news=news.append)
        await runner.open()
        await (await runner.acquire()).run(job(), Stop())
        assert [told.fraction for told in news if isinstance(told, PluginProgress)] == [0.25, 0.5, 0.75]

    run_virtual(live())


# --- physics ---


def test_two_tasks_on_one_bench_and_a_bench_given_back_too_early_are_written_down() -> None:
    async def live() -> None:
        place = world()
        runner = SimulatedRunner(place, (QUICK,))
        await runner.open()
        bench = await runner.acquire()
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.run(job(1), Stop()))
            group.create_task(bench.run(job(2), Stop()))
        assert len(place.violations) == 1
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.run(job(3), Stop()))
            await settle_loop()
            await runner.release(bench)
        assert len(place.violations) == 2
        await runner.release(bench)
        assert len(place.violations) == 3
        await bench.run(job(4), Stop())
        assert len(place.violations) == 4

    run_virtual(live())


def test_a_batch_with_a_task_or_a_sample_twice_and_one_beside_another_task_are_written_down() -> None:
    async def live() -> None:
        place = world()
        runner = SimulatedRunner(place, (QUICK,))
        await runner.open()
        bench = await runner.acquire()
        for first, second in ((Told(1, "one"), Told(1, "two")), (Told(1, "one"), Told(2, "one"))):
            await bench.run_batch([first.member, second.member])
        assert len(place.violations) == 2
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.run_batch([Told(3, "one").member, Told(4, "two").member]))
            await settle_loop()
            assert runner.running == {3, 4}
            group.create_task(bench.run(job(5), Stop()))
        assert len(place.violations) == 3

    run_virtual(live())


@pytest.mark.parametrize(("fault", "took_s"), [(Fault.PLUGIN_CRASHES, 0.0), (Fault.PLUGIN_HANGS, 150.0)])
def test_a_batch_that_breaks_is_run_one_by_one_and_a_deaf_one_is_killed_first(fault: Fault, took_s: float) -> None:
    async def live() -> None:
        place = world()
        runner = SimulatedRunner(place, (SimulatedPlugin("together", seconds=(1.0, 1.0), takes_batches=True),))
        await runner.open()
        bench = await runner.acquire()
        place.faults.inject(fault)
        place.faults.inject(Fault.PLUGIN_DEAF)
        told = [Told(1, "one"), Told(2, "two")]
        began = now()
        await bench.run_batch([each.member for each in told])
        assert [each.run.status for each in told] == [PluginStatus.COMPLETED] * 2
        assert [each.work for each in told] == [[True, False, True, False]] * 2
        grace_s = 5.0 if fault is Fault.PLUGIN_HANGS else 0.0
        assert took_s + grace_s + 1.9 <= now() - began <= took_s + grace_s + 3.1

    run_virtual(live())
