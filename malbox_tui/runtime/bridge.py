"""A `Client` that crosses to the engine's event loop, usable from any loop in any thread.

Calls are handed over one by one. Streams can't cross loops, so offers are pulled chunk by chunk from the caller's loop, and events go
through one buffer with one wake-up flag.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.errors import EngineStopped
from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.model.intake import IntakePage, IntakeView, LineQuery
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import ResultRef
from malbox_tui.model.submission import Account, Offer, Receipt, SubmissionOptions
from malbox_tui.model.upkeep import SampleForm, StoreFigures
from malbox_tui.ports import Client
from malbox_tui.runtime.loop_calls import LoopCalls

T = TypeVar("T")


class BridgedClient:
    """`Client` over another `Client` that belongs to `loop`."""

    def __init__(self, inner: Client, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._engine = LoopCalls(loop)
        self._amended: Callable[[Overview], Overview] = lambda overview: overview

    def close(self) -> None:
        """The engine's loop runs no more: open calls raise `EngineStopped`, and so do those to come."""
        self._engine.close()

    def amend(self, change: Callable[[Overview], Overview]) -> None:
        """Let each overview pass through `change` too, after those before, in the caller's thread."""
        before = self._amended
        self._amended = lambda overview: change(before(overview))

    async def do(self, command: Command) -> CommandOutcome:
        """See `Client`."""
        return await self._cross(lambda: self._inner.do(command))

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        """See `Client`; `on_receipt` is called on the caller's loop."""
        loop = asyncio.get_running_loop()
        here = LoopCalls(loop)
        crossing = _crossed(_with_crossed_content(offers, here), here)

        def tell(receipt: Receipt) -> None:
            if on_receipt is not None:
                with contextlib.suppress(RuntimeError):  # the caller's loop has closed
                    loop.call_soon_threadsafe(on_receipt, receipt)

        return await self._cross(lambda: self._inner.submit(crossing, options, tell))

    async def overview(self) -> Overview:
        """See `Client`."""
        return self._amended(await self._cross(self._inner.overview))

    async def query(self, query: TaskQuery) -> TaskPage:
        """See `Client`."""
        return await self._cross(lambda: self._inner.query(query))

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """See `Client`."""
        return await self._cross(lambda: self._inner.read(reference, max_bytes))

    async def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        """See `Client`."""
        inbox = _EventInbox(asyncio.get_running_loop())
        pump = self._engine.start(lambda: _pump(self._inner.events(after), inbox))
        pump.add_done_callback(lambda _: inbox.end())
        try:
            while (batch := await inbox.take()) is not None:
                for item in batch:
                    yield item
        finally:
            pump.cancel()

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """See `Client`."""
        return await self._cross(lambda: self._inner.actions(before, limit))

    async def content(self, sha256: str, form: SampleForm, actor: str = "", origin: str = "") -> AsyncGenerator[bytes, None]:
        """See `Client`; pulled chunk by chunk."""
        chunks = self._inner.content(sha256, form, actor, origin)
        try:
            while (found := await self._cross(lambda: _next(chunks))) is not None:
                yield found[0]
        finally:
            # Whoever leaves it early may be cancelled: that it is closed there is not waited for.
            self._engine.start(chunks.aclose)

    async def figures(self) -> StoreFigures:
        """See `Client`."""
        return await self._cross(self._inner.figures)

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """See `Client`."""
        return await self._cross(lambda: self._inner.intakes(before, limit))

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """See `Client`."""
        return await self._cross(lambda: self._inner.intake_lines(query))

    async def _cross(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        answer = self._engine.start(make)
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            # Nobody cancelled the caller, so it was the engine's end that cancelled the answer.
            if answer.cancelled() and not _is_being_cancelled():
                raise EngineStopped from None
            raise


class _EventInbox:
    """Events from the engine's thread, taken in batches on the reader's loop; holds at most what the engine's bus lets through."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[Event | Gap] = deque()
        self._ended = False
        self._flag = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return len(self._items) >= _INBOX_ROOM

    def put(self, item: Event | Gap) -> None:
        was_empty = not self._items
        self._items.append(item)
        if was_empty:
            self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    async def take(self) -> list[Event | Gap] | None:
        while not self._items:
            if self._ended:
                return None
            self._flag.clear()
            if not self._items and not self._ended:
                await self._flag.wait()
        batch = []
        while self._items:
            batch.append(self._items.popleft())
        return batch

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the reader's loop has closed: nobody reads any more
            self._loop.call_soon_threadsafe(self._flag.set)


_INBOX_ROOM = 50_000


async def _pump(events: AsyncIterator[Event | Gap], inbox: _EventInbox) -> None:
    """Runs on the engine's loop. A reader that is too slow for the inbox finds a gap in place of what didn't fit."""
    skipped: Event | Gap | None = None
    async for item in events:
        if inbox.is_full:
            skipped = item
            continue
        if skipped is not None:
            place = skipped.resumes_after if isinstance(skipped, Gap) else skipped.position
            inbox.put(Gap(place))
            skipped = None
        inbox.put(item)


async def _with_crossed_content(offers: AsyncIterator[Offer], home: LoopCalls) -> AsyncIterator[Offer]:
    async for offer in offers:
        yield offer if offer.content is None else replace(offer, content=_crossed(offer.content, home))


async def _crossed(source: AsyncIterator[T], home: LoopCalls) -> AsyncIterator[T]:
    """Iterates on the engine's loop over what `source` gives on its home loop."""
    while True:
        found = await asyncio.wrap_future(home.start(lambda: _next(source)))
        if found is None:
            return
        yield found[0]


async def _next(source: AsyncIterator[T]) -> tuple[T] | None:
    """The next item, or None at the end: StopAsyncIteration can't be a future's result."""
    async for item in source:
        return (item,)
    return None


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
