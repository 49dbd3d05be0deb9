"""Works that are done at once: all are had, or the first error, and whoever was cancelled is so, and nobody else."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from malbox_tui.engine.together import together
from malbox_tui.engine.tracker import was_cancelled


async def given(value: str) -> str:
    await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
    return value


async def failing(error: BaseException) -> str:
    await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
    raise error


class Endless:
    """Goes on until it is cancelled."""

    def __init__(self) -> None:
        self.was_cancelled = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.was_cancelled = True


async def test_what_each_gives_comes_in_their_order() -> None:
    assert await together(given("a"), given("b")) == ["a", "b"]


async def test_the_first_error_ends_the_others_and_leaves_nobody_cancelled() -> None:
    other = Endless()
    with pytest.raises(LookupError, match="gone"):
        await together(other.run(), failing(LookupError("gone")))
    assert other.was_cancelled
    assert not was_cancelled()


async def test_what_had_not_begun_when_another_failed_is_not_begun() -> None:
    async def at_once() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await together(at_once(), given("never asked for"))


async def test_a_cancel_from_outside_is_one_whatever_fails_on_its_account() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise LookupError("cut") from None

    was_counted = False

    async def outer() -> None:
        nonlocal was_counted
        try:
            await together(stubborn(), Endless().run())
        finally:
            was_counted = was_cancelled()

    running = asyncio.get_running_loop().create_task(outer())
    await given("")
    await given("")
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert running.cancelled()
    assert was_counted


async def test_an_adapter_that_raises_a_cancellation_of_its_own_is_seen_as_that() -> None:
    with pytest.raises(asyncio.CancelledError):
        await together(given("a"), failing(asyncio.CancelledError()))
    assert not was_cancelled()
