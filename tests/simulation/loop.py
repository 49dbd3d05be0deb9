"""An event loop for finding races: its clock is virtual, it runs one handle a turn, and a seed chooses which.

1. One turn runs one handle, chosen among all that are ready. Nothing of asyncio promises more than that; only the order in which
   `call_soon` was called is lost.
2. Time moves when nothing is ready, to the next timer. With `hurry` it sometimes moves a little earlier, as if a step had been slow.
3. In a `ranked` loop some tasks are held up as long as there is anything else to do.
4. The same seed gives the same turns, in every process: nothing that is chosen depends on hashes or addresses.
5. Nothing leaves the loop's thread: under a virtual clock a call that takes real time would see every timeout fire at once.

It has no selector, so it costs no file descriptor.
"""

from __future__ import annotations

import asyncio
import heapq
import inspect
import itertools
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any

EARLY_BY_S = 1.0
"""How far `hurry` may move time while something is ready."""

RANK_COUNTS = 0.95
"""How often, in a ranked loop, the rank decides whose turn it is."""
CLOSING_TRIES = 100
"""How many awaits in the `finally` of an abandoned coroutine are cut."""

_MASK = (1 << 64) - 1


class Stuck(AssertionError):
    """The loop can't go on, or never comes to rest."""


class NumberedTask(asyncio.Task[Any]):
    """A task that knows how many were made before it on its loop; sets of tasks are iterated in the same order at every run."""

    def __init__(self, number: int, work: Coroutine[Any, Any, Any], **options: Any) -> None:
        self.number = number
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self.number


Handle = asyncio.Handle
Hook = Callable[[], None]


def _nothing() -> None: ...


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs what is ready in an order that `choice` draws.

    `after_step` is called after each handle, `at_rest` when nothing is ready and before time moves; what they raise ends the run.
    `on_step` sees each handle before it runs. After `max_steps` handles the run ends with `Stuck`.
    """

    def __init__(
        self,
        choice: Random,
        *,
        now: float = 1_000.0,
        max_steps: int = 100_000,
        hurry: float = 0.0,
        ranked: bool = False,
        after_step: Hook = _nothing,
        at_rest: Hook = _nothing,
    ) -> None:
        super().__init__()
        self._choice = choice
        self._now = now
        self._max_steps = max_steps
        self._hurry = hurry
        self._salt = choice.getrandbits(32) if ranked else None
        self._after_step = after_step
        self._at_rest = at_rest
        self._waiting_turn: list[Handle] = []
        self._numbers = itertools.count(1)
        self._home = threading.get_ident()
        self._trespass: RuntimeError | None = None
        self._clock_resolution = 1e-9
        self._resting = False
        self.steps = 0
        self.trace = 0
        """A number that two runs share exactly if they took the same turns."""
        self.on_step: Callable[[Handle], None] | None = None

    # --- what asyncio asks of a loop -----------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> NumberedTask:
        self._check_closed()
        number = next(self._numbers)
        return NumberedTask(number, coro, loop=self, name=name or f"task {number}", context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        raise RuntimeError(f"{func!r} would leave the loop's thread under a virtual clock")

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Handle:
        if threading.get_ident() != self._home:
            self._trespass = RuntimeError(f"{callback!r} came from another thread under a virtual clock")
            raise self._trespass
        return self.call_soon(callback, *args, context=context)

    def _write_to_self(self) -> None: ...

    def _process_events(self, event_list: Any) -> None: ...

    def run_until_rest(self) -> None:
        """Run what is ready, and what becomes ready by that; no time passes."""
        self._resting = True
        try:
            self.run_forever()
        finally:
            self._resting = False

    # --- turns ---------------------------------------------------------------------------------------------------------------

    def _run_once(self) -> None:
        handle = self._next()
        if handle is None:
            return
        self.steps += 1
        if self.steps > self._max_steps:
            raise Stuck(f"after {self._max_steps} steps there is still something to do; the next is {described(handle)}")
        if self.on_step is not None:
            self.on_step(handle)
        handle._run()
        if self._trespass is not None:
            raise self._trespass
        self._after_step()

    def _next(self) -> Handle | None:
        """The handle whose turn it is; None when the loop was asked to stop and nothing is ready."""
        while True:
            self._line_up()
            if self._hurry and self._waiting_turn and self._choice.random() < self._hurry:
                self._turn_clock(EARLY_BY_S)
            while not self._waiting_turn:
                if self._stopping or self._resting:
                    self._stopping = True
                    return None
                self._at_rest()
                self._line_up()
                if not self._waiting_turn and not self._turn_clock():
                    raise Stuck(f"nothing is ready and no timer is set.\n{who_waits(self)}")
            handle = self._pick()
            if not handle._cancelled:
                return handle

    def _pick(self) -> Handle:
        ready = self._waiting_turn
        place = self._place() if len(ready) > 1 else 0
        handle = ready.pop(place)
        self.trace = (self.trace * 1_000_003 ^ (place << 40 | len(ready) << 20 | _number(handle))) & _MASK
        return handle

    def _place(self) -> int:
        """Any place; or, with ranks, mostly that of the task which ranks first: those that rank low wait as long as there is another.

        So a task may be held up for a whole operation of others, which chance alone brings about too rarely.
        """
        ready = self._waiting_turn
        if self._salt is not None and self._choice.random() < RANK_COUNTS:
            return min(range(len(ready)), key=self._rank)
        return int(self._choice.random() * len(ready))

    def _rank(self, place: int) -> int:
        number = _number(self._waiting_turn[place])
        return (number * 2_654_435_761 ^ (self._salt or 0)) & 0xFFFF if number else 0x8000

    def _line_up(self) -> None:
        """Whatever became ready waits for its turn; tasks in the order of their numbers, for a set of tokens or futures has none."""
        if self._ready:
            if len(self._ready) > 1:
                self._waiting_turn.extend(sorted(self._ready, key=_number))
            else:
                self._waiting_turn.append(self._ready[0])
            self._ready.clear()

    def _turn_clock(self, at_most_s: float | None = None) -> bool:
        """Move time to the next timer and line up all that are due; False when there is none so near."""
        timers = self._scheduled
        while timers and timers[0]._cancelled:
            self._forget(heapq.heappop(timers))
            self._timer_cancelled_count -= 1
        if not timers or (at_most_s is not None and timers[0]._when > self._now + at_most_s):
            return False
        self._now = max(self._now, timers[0]._when)
        while timers and timers[0]._when <= self._now + self._clock_resolution:
            timer = heapq.heappop(timers)
            self._forget(timer)
            if timer._cancelled:
                self._timer_cancelled_count -= 1
            else:
                self._waiting_turn.append(timer)
        return True

    def _forget(self, timer: asyncio.TimerHandle) -> None:
        timer._scheduled = False


def _number(handle: Handle) -> int:
    """The number of the task that a handle belongs to; 0 for none."""
    owner = getattr(handle._callback, "__self__", None)
    if type(owner) is NumberedTask:
        return owner.number
    args = handle._args
    if args and type(args[0]) is NumberedTask:
        return args[0].number
    return 0


def bury(loop: asyncio.AbstractEventLoop) -> None:
    """Let go of a loop that will never run again. Its coroutines are closed here, so that no `finally` of theirs runs at a moment that
    the garbage collector chooses; what they raise at that is of no interest any more."""
    heard, sys.unraisablehook = sys.unraisablehook, lambda _error: None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        closed: set[asyncio.Task[Any]] = set()
        # What they begin in a `finally` can be begun, and is closed in its turn.
        asyncio._set_running_loop(loop)
        while left := sorted(asyncio.all_tasks(loop) - closed, key=hash):
            for task in left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close(task.get_coro())
            closed.update(left)
        asyncio._set_running_loop(None)
        loop.close()
    sys.unraisablehook = heard


def _close(work: Any) -> None:
    """Close a coroutine; one that awaits in its `finally` asks for more than one try."""
    for _ in range(CLOSING_TRIES):
        if inspect.getcoroutinestate(work) == inspect.CORO_CLOSED:
            return
        try:
            work.close()
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001, S110 - nobody is left to whom it matters
            pass


# --- for people -------------------------------------------------------------------------------------------------------------------


def described(handle: Handle) -> str:
    """What a handle would do: the task and the place where it goes on, or the callback."""
    owner = getattr(handle._callback, "__self__", None)
    if isinstance(owner, NumberedTask):
        return f"{owner.get_name()} (#{owner.number}) {_place(owner)}"
    name = getattr(handle._callback, "__qualname__", repr(handle._callback))
    timer = f", a timer at {handle._when:.3f}" if isinstance(handle, asyncio.TimerHandle) else ""
    return f"{name}{timer}"


def who_waits(loop: asyncio.AbstractEventLoop) -> str:
    """One line for each task of the loop: its name and where it waits."""
    tasks = sorted((task for task in asyncio.all_tasks(loop) if isinstance(task, NumberedTask)), key=lambda task: task.number)
    lines = [f"  {task.get_name()} (#{task.number}) {_place(task)}" for task in tasks]
    return "\n".join(["Waiting:", *lines]) if lines else "No task is left."


def _place(task: asyncio.Task[Any]) -> str:
    """The chain of coroutines from the task's own down to the one that waits, each with its line."""
    places: list[str] = []
    work: Any = task.get_coro()
    while (frame := getattr(work, "cr_frame", None) or getattr(work, "ag_frame", None)) is not None:
        places.append(f"{work.__qualname__}:{frame.f_lineno}")
        work = getattr(work, "cr_await", None) or getattr(work, "ag_await", None)
    return "at " + " > ".join(places) if places else "has ended"
