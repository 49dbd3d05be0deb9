"""Blocking iteration in threads, abandoned at bad moments."""

import asyncio
import threading

import pytest

from malbox_tui.intake.threaded import ThreadedSteps


class Blocking:
    """An iterator whose one step waits to be let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.running = False
        self.closed = threading.Event()
        self.closed_while_running = False

    def __next__(self) -> int:
        self.running = True
        self.entered.set()
        self.go_on.wait()
        self.running = False
        return 1

    def close(self) -> None:
        self.closed_while_running = self.running
        self.closed.set()


async def test_a_cancelled_wait_closes_only_after_the_step_that_is_under_way() -> None:
    blocking = Blocking()
    steps = ThreadedSteps(blocking)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(anext(steps))  # type: ignore[arg-type]
        await asyncio.to_thread(blocking.entered.wait)
        waiting.cancel()
    assert not blocking.closed.is_set()
    blocking.go_on.set()
    await asyncio.to_thread(blocking.closed.wait)
    assert not blocking.closed_while_running


async def test_after_it_was_closed_it_is_at_its_end() -> None:
    blocking = Blocking()
    steps = ThreadedSteps(blocking)
    steps.close()
    assert [item async for item in steps] == []
    assert blocking.closed.is_set()


async def test_an_error_closes_it_and_goes_up() -> None:
    class Failing(Blocking):
        def __next__(self) -> int:
            raise OSError("broken")

    failing = Failing()
    with pytest.raises(OSError, match="broken"):
        await anext(ThreadedSteps(failing))
    assert failing.closed.is_set()
