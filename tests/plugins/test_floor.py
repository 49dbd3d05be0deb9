"""The floor: who may work beside whom, in which order, and that nobody starves."""

from __future__ import annotations

import asyncio
import random

import pytest

from malbox_tui.model.plan import Execution
from malbox_tui.plugins.floor import Floor

X, S, P, U = Execution.EXCLUSIVE, Execution.SEQUENTIAL, Execution.PARALLEL, Execution.UNRESTRICTED


async def test_an_exclusive_one_works_alone_and_whoever_asks_later_waits_behind_it() -> None:
    floor = Floor()
    parallel, exclusive, later = floor.ask("p", P), floor.ask("x", X), floor.ask("u", U)
    assert (parallel.waits, exclusive.waits, later.waits) == (False, True, True)
    parallel.give_back()
    assert (exclusive.waits, later.waits) == (False, True)
    exclusive.give_back()
    assert not later.waits


async def test_a_sequential_one_works_on_one_task_at_a_time_and_holds_up_no_other() -> None:
    floor = Floor()
    first, second, other, beside = floor.ask("s", S), floor.ask("s", S), floor.ask("t", S), floor.ask("p", P)
    assert [ticket.waits for ticket in (first, second, other, beside)] == [False, True, False, False]
    first.give_back()
    assert not second.waits


async def test_who_waits_no_more_holds_nobody_up() -> None:
    floor = Floor()
    first, exclusive, later = floor.ask("p", P), floor.ask("x", X), floor.ask("q", P)
    exclusive.withdraw()
    assert not await exclusive.granted()
    assert not later.waits
    exclusive.give_back()
    first.give_back()
    later.give_back()
    assert not floor.ask("x", X).waits


async def test_a_cancelled_wait_is_withdrawn_and_a_cancelled_grant_given_back() -> None:
    floor = Floor()
    holder, waiting = floor.ask("x", X), floor.ask("y", X)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(waiting.granted())
        await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
        task.cancel()
    holder.give_back()
    assert not floor.ask("z", X).waits


@pytest.mark.parametrize("seed", range(20))
async def test_what_may_not_be_together_never_is_and_all_have_their_turn(seed: int) -> None:
    chance = random.Random(seed)
    floor, working, done = Floor(), list[tuple[str, Execution]](), 0

    async def work(name: str, execution: Execution) -> None:
        nonlocal done
        ticket = floor.ask(name, execution)
        if chance.random() < 0.1:
            ticket.withdraw()
        if await ticket.granted():
            if execution is X:
                assert not working
            assert all(other is not X for _name, other in working)
            assert execution is not S or (name, S) not in working
            working.append((name, execution))
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
            working.remove((name, execution))
        ticket.give_back()
        done += 1

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for _ in range(200):
            group.create_task(work(chance.choice("abc"), chance.choice((X, S, P, U))))
    assert done == 200
    assert not floor.ask("x", X).waits
