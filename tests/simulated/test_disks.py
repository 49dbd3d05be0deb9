"""What the simulated quarantine and result store do wrong when asked to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from malbox_tui.model.errors import SampleChanged, SampleMissing, StoreError, StoreFull
from malbox_tui.model.report import PluginStatus
from malbox_tui.simulated.faults import Fault
from malbox_tui.simulated.plugin_run import SimulatedPlugin
from malbox_tui.simulated.plugins import SimulatedRunner
from malbox_tui.simulated.results import SimulatedResults
from malbox_tui.simulated.samples import SimulatedQuarantine
from malbox_tui.simulated.world import World
from tests.simulated.builders import Stop, job, now, world
from tests.support.virtual_time import run_virtual

TARGET = Path("/simulated/bench-1/sample")


class Disks:
    """A quarantine and a result store of one world."""

    def __init__(self) -> None:
        self.world: World = world()
        self.quarantine = SimulatedQuarantine(self.world)
        self.results = SimulatedResults(self.world)

    async def stored(self, content: bytes = b"content") -> str:
        async def chunks() -> AsyncIterator[bytes]:
            yield content

        return (await self.quarantine.store(chunks(), 1000)).sha256


def on_disks(test: Callable[[Disks], Awaitable[None]]) -> None:
    async def live() -> None:
        await test(Disks())

    run_virtual(live())


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.SAMPLE_MISSING, SampleMissing),
        (Fault.SAMPLE_CHANGED, SampleChanged),
        (Fault.QUARANTINE_FULL, StoreFull),
        (Fault.QUARANTINE_FAILS, StoreError),
    ],
)
def test_a_sample_that_cannot_be_laid_out_leaves_nothing_and_the_next_try_works(fault: Fault, error: type[Exception]) -> None:
    async def test(disks: Disks) -> None:
        sha256 = await disks.stored()
        disks.world.faults.inject(fault)
        with pytest.raises(error):
            await disks.quarantine.extract(sha256, TARGET)
        assert TARGET not in disks.world.files
        assert await disks.quarantine.extract(sha256, TARGET) == 7
        assert disks.world.files[TARGET] == b"content"

    on_disks(test)


@pytest.mark.parametrize(("fault", "error"), [(Fault.QUARANTINE_FULL, StoreFull), (Fault.QUARANTINE_FAILS, StoreError)])
def test_a_content_that_could_not_be_stored_is_not_kept(fault: Fault, error: type[Exception]) -> None:
    async def test(disks: Disks) -> None:
        disks.world.faults.inject(fault, "store")
        with pytest.raises(error):
            await disks.stored()
        assert disks.world.samples == {}

    on_disks(test)


def test_a_sample_is_not_laid_out_over_another() -> None:
    async def test(disks: Disks) -> None:
        sha256 = await disks.stored()
        await disks.quarantine.extract(sha256, TARGET)
        with pytest.raises(StoreError):
            await disks.quarantine.extract(sha256, TARGET)

    on_disks(test)


def test_a_slow_disk_takes_its_time() -> None:
    async def test(disks: Disks) -> None:
        for fault in (Fault.QUARANTINE_SLOW, Fault.RESULTS_SLOW):
            disks.world.faults.inject(fault)
        began = now()
        await disks.stored()
        assert now() - began >= 20
        await disks.results.settle(1, "token-1")
        assert now() - began >= 40

    on_disks(test)


def test_results_that_cannot_be_settled_stay_as_they_were() -> None:
    async def test(disks: Disks) -> None:
        for token in ("old", "new"):
            disks.results.begin(1, token, "yara", "report", "json").commit()
        for fault, error in ((Fault.RESULTS_FULL, StoreFull), (Fault.RESULTS_FAIL, StoreError)):
            disks.world.faults.inject(fault, "settle")
            with pytest.raises(error):
                await disks.results.settle(1, "new")
            assert len(disks.world.results) == 2
        await disks.results.settle(1, "new")
        assert list(disks.world.results) == ["1/new/yara/report"]
        disks.world.faults.inject(Fault.RESULTS_FULL, "discard")
        await disks.results.discard(1, "new")
        assert disks.world.results == {}

    on_disks(test)


def test_plugins_write_their_reports_and_pass_the_disks_errors_on() -> None:
    async def test(disks: Disks) -> None:
        runner = SimulatedRunner(disks.world, (SimulatedPlugin("a"), SimulatedPlugin("b")), results=disks.results)
        await runner.open()
        bench = await runner.acquire()
        findings = await bench.run(job(), Stop())
        assert all(run.status is PluginStatus.COMPLETED for run in findings.runs)
        assert sorted(disks.world.results) == ["1/token-1/a/report", "1/token-1/b/report"]
        assert await disks.results.read(findings.runs[0].results[0], 12) == b'{"plugin":{"'
        disks.world.faults.inject(Fault.RESULTS_FULL, "commit")
        with pytest.raises(StoreFull):
            await bench.run(job(2), Stop())
        await runner.release(bench)

    on_disks(test)


def test_samples_and_results_outlive_the_engine_and_what_was_laid_out_does_not() -> None:
    async def test(disks: Disks) -> None:
        sha256 = await disks.stored()
        await disks.quarantine.extract(sha256, TARGET)
        reference = disks.results.begin(1, "token-1", "yara", "report", "json").commit()
        writer = disks.results.begin(1, "token-1", "yara", "more", "json")
        disks.world.engine_died()
        for call in (disks.stored(), disks.results.settle(2, "token-1"), disks.results.close()):
            with pytest.raises(asyncio.CancelledError):
                await call
        with pytest.raises(asyncio.CancelledError):
            writer.commit()
        assert await SimulatedQuarantine(disks.world).extract(sha256, TARGET) == 7
        assert await SimulatedResults(disks.world).read(reference, 10) == b""

    on_disks(test)
