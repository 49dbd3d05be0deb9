"""Doors to no engine at all, for what a real one does too seldom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from malbox_tui.model import events as news
from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.model.intake import IntakePage, IntakeView, LineQuery
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import ResultRef
from malbox_tui.model.submission import Account, Offer, Receipt, SubmissionOptions
from malbox_tui.remote.bounds import Bounds
from malbox_tui.remote.served import Served
from malbox_tui.remote.server import serving
from malbox_tui.remote.socket_file import listening
from tests.remote.asker import Asker

ENGINE = "e" * 32


class Script:
    """A `Client` whose events a test publishes. Uploads are pulled as often as `pulls` is released."""

    def __init__(self, seq: int = 0) -> None:
        self.position = Position(ENGINE, 1, seq)
        self.pulls = asyncio.Semaphore(0)
        self.pulled_bytes = 0
        self.page = TaskPage(rows=(), total=0, offset=0, clock=0.0)
        self.stored: list[Event] = []
        self.asked_after: list[Position | None] = []
        self._queues: set[asyncio.Queue[Event | Gap | None]] = set()

    async def do(self, command: Command) -> CommandOutcome:
        raise ZeroDivisionError

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        async for offer in offers:
            assert offer.content is not None
            await self.pulls.acquire()
            async for chunk in offer.content:
                self.pulled_bytes += len(chunk)
                await self.pulls.acquire()
        return Account()

    async def overview(self) -> Overview:
        return Overview(clock=float(self.position.seq), position=self.position, counts={}, groups=(), workers=())

    async def query(self, query: TaskQuery) -> TaskPage:
        return self.page

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        return b""

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        return ()

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        return IntakePage(intake=None)

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        return ()

    async def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        self.asked_after.append(after)
        queue: asyncio.Queue[Event | Gap | None] = asyncio.Queue()
        self._queues.add(queue)
        try:
            for event in [event for event in self.stored if after is not None and event.position.seq > after.seq]:
                yield event
            while (item := await queue.get()) is not None:
                yield item
        finally:
            self._queues.discard(queue)

    def publish(self, count: int = 1, padding: str = "") -> None:
        """So many events happen."""
        for _ in range(count):
            self.position = msgspec.structs.replace(self.position, seq=self.position.seq + 1)
            event = Event(self.position, float(self.position.seq), news.PoolPaused(reason=padding))
            self.stored.append(event)
            self._put(event)

    def tell(self, item: Event | Gap | None) -> None:
        """Tell something else; None: the engine ends."""
        self._put(item)

    def _put(self, item: Event | Gap | None) -> None:
        for queue in self._queues:
            queue.put_nowait(item)

    async def until_followed(self) -> None:
        """Wait for the server to listen."""
        while not self._queues:
            await asyncio.sleep(0)  # noqa: TID251 - one step of the loop


@dataclass
class Scene:
    """A served script: what counts its connections, and those that the test made, which are cut at the end."""

    path: Path
    connections: Callable[[], int]
    askers: list[Asker] = field(default_factory=list)

    async def connect(self, **headers: str) -> Asker:
        asker = await Asker.connect(self.path, headers)
        self.askers.append(asker)
        return asker


@asynccontextmanager
async def serving_script(script: Script, folder: Path, bounds: Bounds | None = None) -> AsyncIterator[Scene]:
    """`script` served in `folder`."""
    path = folder / "control.sock"
    with listening(path) as place:
        async with serving(Served(script, "1", lambda: 1 << 30), place.listener, bounds=bounds) as server:
            await script.until_followed()
            scene = Scene(path, server.connections)
            try:
                yield scene
            finally:
                for asker in scene.askers:
                    asker.cut()
