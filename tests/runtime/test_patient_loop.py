"""A process that stands still for a while loses nothing to its time limits."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

import pytest

from malbox_tui.engine.engine import Engine
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.runtime import EngineThread, PatientLoop
from malbox_tui.runtime.patient_loop import STANDSTILL_S, TICK_S
from tests.runtime.test_engine_thread import scripted_engine
from tests.support.rig import ScriptedRunner

AN_HOUR_S = 3600.0


class Standstill:
    """The machine's clock, and hours in which nobody looked at it."""

    def __init__(self) -> None:
        self._slept_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._slept_s

    def happen(self) -> None:
        self._slept_s += AN_HOUR_S


def test_of_a_standstill_its_clock_counts_a_tick_and_it_is_told_how_long_it_was() -> None:
    now, told = [1000.0], list[float]()
    loop = PatientLoop(told.append, lambda: now[0])
    try:
        began = loop.time()
        for step_s, counted_s in ((1.5, 1.5), (STANDSTILL_S, STANDSTILL_S), (40.0, TICK_S), (0.25, 0.25)):
            before, now[0] = loop.time(), now[0] + step_s
            assert loop.time() - before == pytest.approx(counted_s)
        assert loop.time() - began == pytest.approx(1.5 + STANDSTILL_S + TICK_S + 0.25)
        assert told == [40.0]
    finally:
        loop.close()


async def _answered_within_a_minute(stand_still: Callable[[], None]) -> bytes:
    """An answer that somebody gave while the loop stood still, waited for with a limit of a minute."""
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    came: asyncio.Future[bytes] = loop.create_future()
    loop.add_reader(reading, lambda: came.done() or came.set_result(os.read(reading, 16)))

    def stop_and_go_on() -> None:
        stand_still()
        os.write(writing, b"the answer")

    try:
        async with asyncio.timeout(60):
            loop.call_soon(stop_and_go_on)
            return await came
    finally:
        loop.remove_reader(reading)
        os.close(reading)
        os.close(writing)


def test_an_answer_that_came_meanwhile_is_heard_though_its_time_is_long_over() -> None:
    standstill = Standstill()
    with asyncio.Runner(loop_factory=lambda: PatientLoop(monotonic=standstill.monotonic)) as runner:
        assert runner.run(_answered_within_a_minute(standstill.happen)) == b"the answer"


def test_it_looks_at_the_clock_also_when_nothing_happens() -> None:
    """Else nobody could tell a long wait from a standstill."""
    looks = 0
    looked_thrice = list[Callable[[], None]]()

    def look() -> float:
        nonlocal looks
        looks += 1
        if looks >= 3 and looked_thrice:
            looked_thrice.pop()()
        return 0.0

    async def wait() -> None:
        nonlocal looks
        looks = 0
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        looked_thrice.append(lambda: over.set_result(None))
        await over

    with asyncio.Runner(loop_factory=lambda: PatientLoop(monotonic=look)) as runner:
        runner.run(wait())
    assert looks >= 3


def test_an_engine_lives_on_such_a_loop() -> None:
    loops = list[asyncio.AbstractEventLoop]()

    def build() -> Engine:
        loops.append(asyncio.get_running_loop())
        return scripted_engine(ScriptedRunner(seconds=0.0))

    thread = EngineThread(build, lambda: None)
    thread.start()
    thread.stop(ShutdownMode.GIVE_BACK)
    assert thread.join(30)
    assert [type(loop) for loop in loops] == [PatientLoop]
