"""The token tree, invariant by invariant."""

from __future__ import annotations

import asyncio
import gc

import pytest

from malbox_tui.engine import clock
from malbox_tui.engine.cancellation import CancelReason, CancelToken, Interrupted
from tests.support.virtual_time import run_virtual, settle_loop


def test_the_first_reason_stays() -> None:
    token = CancelToken()
    assert token.cancel(CancelReason.USER, "ana")
    assert not token.cancel(CancelReason.SHUTDOWN)
    assert (token.reason, token.detail) == (CancelReason.USER, "ana")


def test_cancelling_a_parent_cancels_all_below_and_never_above() -> None:
    root = CancelToken()
    child = root.child()
    sibling, grandchild = root.child(), child.child()
    child.cancel(CancelReason.USER)
    assert grandchild.reason is CancelReason.USER
    assert root.reason is None
    assert sibling.reason is None
    root.cancel(CancelReason.SHUTDOWN)
    assert sibling.reason is CancelReason.SHUTDOWN
    assert child.reason is CancelReason.USER


def test_a_child_of_a_cancelled_token_is_born_cancelled() -> None:
    root = CancelToken()
    root.cancel(CancelReason.TIMEOUT, "late")
    assert (root.child().reason, root.child().detail) == (CancelReason.TIMEOUT, "late")


def test_an_ended_stage_costs_its_parent_nothing() -> None:
    root = CancelToken()
    for _ in range(100):
        root.child()
    gc.collect()
    assert "0 children" in repr(root)


async def test_every_waiter_hears_of_it() -> None:
    token = CancelToken().child()
    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(token.wait()) for _ in range(10)]
        group.create_task(_cancel_soon(token))
    assert {wait.result() for wait in waits} == {CancelReason.USER}
    assert await token.wait() is CancelReason.USER


async def test_a_cancelled_waiter_leaves_nothing_behind() -> None:
    token = CancelToken()
    wait = asyncio.get_running_loop().create_task(token.wait())
    await settle_loop()
    wait.cancel()
    await asyncio.wait({wait})
    assert "0 listening" in repr(token)


async def test_an_interruption_cuts_the_body_and_says_why() -> None:
    token = CancelToken()
    cut_in_body = False
    asyncio.get_running_loop().call_soon(token.cancel, CancelReason.USER)
    with pytest.raises(Interrupted) as caught:
        async with token.interrupts():
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cut_in_body = True
                raise
    assert cut_in_body
    assert caught.value.reason is CancelReason.USER


async def test_a_cancelled_token_does_not_let_the_body_begin() -> None:
    token = CancelToken()
    token.cancel(CancelReason.USER)
    with pytest.raises(Interrupted):
        async with token.interrupts():
            pytest.fail("the body ran")


async def test_a_body_that_ended_in_the_same_step_is_interrupted_without_a_late_cancellation() -> None:
    token = CancelToken()
    with pytest.raises(Interrupted):
        async with token.interrupts():
            token.cancel(CancelReason.USER)
    await settle_loop()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancellation_from_outside_goes_through_as_what_it_is() -> None:
    token = CancelToken()

    async def body() -> None:
        async with token.interrupts():
            await asyncio.get_running_loop().create_future()

    task = asyncio.get_running_loop().create_task(body())
    await settle_loop()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert "0 listening" in repr(token)


def test_an_interruption_leaves_the_task_usable() -> None:
    async def work() -> float:
        token = CancelToken()
        loop = asyncio.get_running_loop()
        loop.call_later(5, token.cancel, CancelReason.USER)
        with pytest.raises(Interrupted):
            async with token.interrupts():
                await clock.sleep(100)
        async with asyncio.timeout(10):
            await clock.sleep(1)
        return loop.time() - 1_000.0

    assert run_virtual(work()) == pytest.approx(6.0)


async def _cancel_soon(token: CancelToken) -> None:
    await settle_loop()
    token.cancel(CancelReason.USER)
