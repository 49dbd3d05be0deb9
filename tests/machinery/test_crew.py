"""Blocking calls in threads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from malbox_tui.machinery.crew import Crew, Lane
from tests.machinery.conftest import Gate
from tests.support.virtual_time import settle_loop


async def test_a_call_gives_back_what_it_returned_or_raised() -> None:
    crew = Crew("t")
    assert await crew.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await crew.run(lambda: 1 // 0)


async def test_calls_are_made_by_daemon_threads_that_are_used_again() -> None:
    crew = Crew("t")
    threads = {await crew.run(lambda: (threading.current_thread().name, threading.current_thread().daemon)) for _ in range(50)}
    assert all(daemon for _, daemon in threads)
    assert len(threads) < 50


async def test_calls_that_hang_hold_up_no_others(gate: Gate) -> None:
    crew = Crew("t")
    hanging = [crew.start(gate.hold) for _ in range(40)]
    assert [await crew.run(lambda: 7) for _ in range(3)] == [7, 7, 7]
    assert not any(call.done() for call in hanging)
    gate.open()
    await asyncio.gather(*hanging)


async def test_a_lane_counts_calls_whose_callers_have_left(gate: Gate) -> None:
    lane = Lane(Crew("t"), 1)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(lane.run(gate.hold))
        await gate.reached()
        first.cancel()
        second = group.create_task(lane.run(lambda: 7))
        await settle_loop()
        assert not second.done()
        gate.open()
        assert await second == 7


async def test_a_call_that_was_given_up_before_its_turn_is_never_made(gate: Gate) -> None:
    lane = Lane(Crew("t"), 1)
    made: list[str] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(lane.run(gate.hold))
        await gate.reached()
        waiting = [group.create_task(lane.run(lambda name=name: made.append(name))) for name in "abc"]  # type: ignore[misc]
        await settle_loop()
        waiting[1].cancel()
        gate.open()
    assert made == ["a", "c"]
