"""The clock of an attempt: the limit that is reached first ends it, and a clock that stands takes nothing from any of them."""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from malbox_tui.engine import clock
from malbox_tui.engine.attempt_time import AttemptTime, Reached
from malbox_tui.engine.cancellation import CancelReason, CancelToken
from malbox_tui.model.due import Due, TimeLimit
from tests.support.virtual_time import run_virtual

L = TimeLimit
Test = Callable[[AttemptTime, CancelToken], Awaitable[None]]


def in_an_attempt(test: Test, critical_s: float = 100.0) -> None:
    async def run() -> None:
        parent = CancelToken()
        time = AttemptTime(parent, critical_s)
        await test(time, parent)
        time.end()

    run_virtual(run())


def test_a_stage_that_takes_too_long_ends_the_attempt_and_nothing_above_it() -> None:
    async def test(time: AttemptTime, parent: CancelToken) -> None:
        time.enter(L.PREPARING, 10.0)
        await clock.sleep(9.9)
        assert time.token.reason is None
        await clock.sleep(0.2)
        assert (time.token.reason, parent.reason) == (CancelReason.TIMEOUT, None)
        assert time.reached == Reached(L.PREPARING, 10.0)

    in_an_attempt(test)


def test_a_stage_that_was_over_in_time_is_not_reached_in_the_next() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        time.enter(L.INITIALIZING, 10.0)
        await clock.sleep(5.0)
        time.enter(L.ANALYSIS, 60.0)
        await clock.sleep(59.0)
        assert time.reached is None
        await clock.sleep(2.0)
        assert time.reached == Reached(L.ANALYSIS, 60.0)

    in_an_attempt(test)


def test_a_stage_that_is_shorter_than_what_was_left_of_the_one_before_is_reached_in_time() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        time.enter(L.INITIALIZING, 90.0)
        time.enter(L.ANALYSIS, 2.0)
        await clock.sleep(2.1)
        assert time.reached == Reached(L.ANALYSIS, 2.0)

    in_an_attempt(test)


def test_the_critical_limit_is_over_all_stages_and_what_is_between_them() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        for limit in (L.INITIALIZING, L.PREPARING, L.ANALYSIS):
            time.enter(limit, 50.0)
            await clock.sleep(30.0)
        assert time.reached is None
        await clock.sleep(11.0)
        assert time.reached == Reached(L.CRITICAL, 100.0)

    in_an_attempt(test)


def test_only_the_first_limit_counts() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        time.enter(L.ANALYSIS, 99.0)
        await clock.sleep(200.0)
        assert time.reached == Reached(L.ANALYSIS, 99.0)

    in_an_attempt(test)


@pytest.mark.parametrize("reason", [CancelReason.USER, CancelReason.SHUTDOWN])
def test_an_attempt_that_was_told_to_end_reaches_no_limit(reason: CancelReason) -> None:
    async def test(time: AttemptTime, parent: CancelToken) -> None:
        time.enter(L.ANALYSIS, 10.0)
        parent.cancel(reason)
        await clock.sleep(20.0)
        assert (time.token.reason, time.reached) == (reason, None)

    in_an_attempt(test)


def test_while_the_clock_stands_neither_the_stage_nor_the_whole_grows_older() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        time.enter(L.INITIALIZING, 10.0)
        await clock.sleep(9.0)
        time.stand()
        assert time.stands
        await clock.sleep(1e5)
        time.go()
        await clock.sleep(0.9)
        assert (time.stands, time.reached) == (False, None)
        await clock.sleep(0.2)
        assert time.reached == Reached(L.INITIALIZING, 10.0)

    in_an_attempt(test)


def test_the_critical_time_goes_on_where_it_stood() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        for _ in range(3):
            await clock.sleep(33.0)
            time.stand()
            time.stand()
            await clock.sleep(500.0)
            time.go()
            time.go()
        assert time.reached is None
        await clock.sleep(1.1)
        assert time.reached == Reached(L.CRITICAL, 100.0)

    in_an_attempt(test)


def test_a_stage_that_begins_while_the_clock_stands_begins_when_it_goes_on() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        time.stand()
        time.enter(L.ANALYSIS, 10.0)
        await clock.sleep(1e5)
        time.go()
        await clock.sleep(9.9)
        assert time.reached is None
        await clock.sleep(0.2)
        assert time.reached == Reached(L.ANALYSIS, 10.0)

    in_an_attempt(test)


def test_what_is_due_is_whatever_comes_first() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        assert time.due(5000.0) == Due(L.CRITICAL, 5100.0, 100.0)
        time.enter(L.ANALYSIS, 30.0)
        await clock.sleep(10.0)
        assert time.due(5010.0) == Due(L.ANALYSIS, 5030.0, 30.0)
        time.enter(L.STOPPING, 200.0)
        assert time.due(5010.0) == Due(L.CRITICAL, 5100.0, 100.0)

    in_an_attempt(test)


def test_what_is_due_moves_on_with_the_time_while_the_clock_stands() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        time.enter(L.ANALYSIS, 30.0)
        await clock.sleep(10.0)
        time.stand()
        await clock.sleep(1000.0)
        assert time.due(7000.0) == Due(L.ANALYSIS, 7020.0, 30.0, stands=True)

    in_an_attempt(test)


def test_what_is_due_does_not_depend_on_what_the_wall_clock_was() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        time.enter(L.ANALYSIS, 30.0)
        await clock.sleep(10.0)
        assert time.due(1.0).at == 21.0
        assert time.due(1e9).at == 1e9 + 20.0

    in_an_attempt(test)


def test_an_attempt_that_has_ended_reaches_nothing_whoever_lets_its_clock_go_on() -> None:
    async def test(time: AttemptTime, _parent: CancelToken) -> None:
        time.end()
        time.go()
        await clock.sleep(1e5)
        assert (time.reached, time.token.reason) == (None, None)

    in_an_attempt(test)


def test_what_rounding_leaves_of_a_time_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, set_alarm, alarms = Random(5), clock.alarm, []

    def counted(seconds: float, ring: Callable[[], object]) -> TimerHandle:
        alarms.append(seconds)
        assert len(alarms) < 10_000, "it rings and rings, and no time passes"
        return set_alarm(seconds, ring)

    async def test(time: AttemptTime, parent: CancelToken) -> None:
        time.end()
        for _ in range(1000):
            one = AttemptTime(parent, 1e5)
            await clock.sleep(chance.uniform(0.0, 0.3))
            one.enter(L.INITIALIZING, 0.1 + chance.uniform(0.0, 1.0))
            await clock.sleep(chance.uniform(0.0, 0.1))
            one.stand()
            await clock.sleep(chance.uniform(0.0, 0.3))
            one.go()
            await clock.sleep(1.2)
            assert one.reached is not None
            one.end()

    monkeypatch.setattr(clock, "alarm", counted)
    in_an_attempt(test)
