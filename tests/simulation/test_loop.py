"""The simulated loop: what it permutes, what it refuses, how it says that something is stuck."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from tests.simulation.loop import SimulatedLoop, Stuck, bury


def run(work: Coroutine[Any, Any, Any], seed: int = 0, **options: Any) -> SimulatedLoop:
    loop = SimulatedLoop(Random(seed), **options)
    try:
        loop.run_until_complete(work)
    finally:
        bury(loop)
    return loop


async def _four_tasks(order: list[int]) -> None:
    async def note(number: int) -> None:
        order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(note(number))


def test_a_seed_permutes_what_is_ready() -> None:
    orders = set()
    for seed in range(200):
        order: list[int] = []
        run(_four_tasks(order), seed)
        orders.add(tuple(order))
    assert len(orders) == 24


def test_the_same_seed_takes_the_same_turns() -> None:
    first, second = [run(_four_tasks([]), 7) for _ in range(2)]
    assert (first.trace, first.steps) == (second.trace, second.steps)


def test_time_is_turned_and_never_waited_for() -> None:
    async def sleep() -> None:
        await asyncio.sleep(86_400.0)  # noqa: TID251 - turned time

    assert run(sleep(), now=5.0).time() == 86_405.0


def test_timers_of_the_same_moment_come_in_any_order() -> None:
    async def timers() -> None:
        rung: list[str] = []
        for name in "ab":
            asyncio.get_running_loop().call_later(1.0, rung.append, name)
        await asyncio.sleep(2.0)  # noqa: TID251 - turned time
        seen.add("".join(rung))

    seen: set[str] = set()
    for seed in range(20):
        run(timers(), seed)
    assert seen == {"ab", "ba"}


def test_hooks_see_each_step_and_each_rest() -> None:
    seen = []

    async def sleep_twice() -> None:
        for _ in range(2):
            await asyncio.sleep(1.0)  # noqa: TID251 - turned time

    loop = run(sleep_twice(), after_step=lambda: seen.append("step"), at_rest=lambda: seen.append("rest"))
    assert seen.count("step") == loop.steps
    assert seen.count("rest") == 2


def test_what_a_hook_raises_ends_the_run() -> None:
    def violated() -> None:
        raise AssertionError("broken")

    with pytest.raises(AssertionError, match="broken"):
        run(_four_tasks([]), after_step=violated)


def test_a_deadlock_names_who_waits_and_where() -> None:
    async def waits_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    async def starts_it() -> None:
        await asyncio.get_running_loop().create_task(waits_for_ever(), name="the sleeper")

    with pytest.raises(Stuck, match=r"the sleeper \(#2\) at .*waits_for_ever:\d+"):
        run(starts_it())


def test_a_livelock_ends_and_names_what_comes_next() -> None:
    async def spins() -> None:
        while True:
            await asyncio.sleep(0)  # noqa: TID251 - no time passes

    with pytest.raises(Stuck, match=r"after 50 steps .*spins"):
        run(spins(), max_steps=50)


def test_calls_that_leave_the_thread_are_refused() -> None:
    async def leaves() -> None:
        await asyncio.to_thread(lambda: None)

    with pytest.raises(RuntimeError, match="leave the loop's thread"):
        run(leaves())


def test_a_call_from_another_thread_ends_the_run() -> None:
    refused = []

    async def called() -> None:
        loop = asyncio.get_running_loop()

        def trespass() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except RuntimeError as error:
                refused.append(error)

        thread = threading.Thread(target=trespass)
        thread.start()
        thread.join()

    with pytest.raises(RuntimeError, match="came from another thread"):
        run(called())
    assert len(refused) == 1


def test_a_hurried_clock_rings_a_timer_while_something_is_ready() -> None:
    async def works_on() -> None:
        rung = asyncio.Event()
        asyncio.get_running_loop().call_later(0.5, rung.set)
        for _ in range(20):
            await asyncio.sleep(0)  # noqa: TID251 - no time passes
        seen.add(rung.is_set())

    seen: set[bool] = set()
    for seed in range(40):
        run(works_on(), seed, hurry=0.05)
    assert seen == {True, False}


def test_in_a_ranked_loop_a_task_can_be_held_up_for_long() -> None:
    async def take_turns() -> None:
        async def work(name: str) -> None:
            for _ in range(20):
                await asyncio.sleep(0)  # noqa: TID251 - no time passes
            ended.append(name)

        ended: list[str] = []
        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(work(name))
            await asyncio.sleep(0)  # noqa: TID251 - no time passes
        firsts.add(ended[0])

    firsts: set[str] = set()
    for seed in range(20):
        run(take_turns(), seed, ranked=True)
    assert firsts == {"a", "b"}


def test_what_an_abandoned_loop_left_is_closed_unheard() -> None:
    ended = []

    async def waits_for_ever() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("finally")
            asyncio.get_running_loop()

    loop = SimulatedLoop(Random(0))
    task = loop.create_task(waits_for_ever())
    with pytest.raises(Stuck):
        loop.run_until_complete(task)
    bury(loop)
    assert ended == ["finally"]
