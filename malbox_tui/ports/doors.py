"""What the world may ask of the engine, and how a console gets to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.model.intake import IntakePage, IntakeView, LineQuery
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import ResultRef
from malbox_tui.model.submission import Account, Offer, Receipt, SubmissionOptions
from malbox_tui.model.upkeep import SampleForm, StoreFigures


class Client(Protocol):
    """The only door to an engine, wherever it runs. Every call may raise `EngineStopped`."""

    async def do(self, command: Command) -> CommandOutcome:
        """Carry out a command. A refused one is an outcome, not an error."""
        ...

    async def submit(
        self,
        offers: AsyncIterator[Offer],
        options: SubmissionOptions,
        on_receipt: Callable[[Receipt], None] | None = None,
    ) -> Account:
        """Take offers as they come; each receipt is told as soon as it stands, and all are returned at the end."""
        ...

    async def overview(self) -> Overview:
        """The engine at this moment."""
        ...

    async def query(self, query: TaskQuery) -> TaskPage:
        """A window of tasks."""
        ...

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """At most `max_bytes` of a result."""
        ...

    def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        """Events from now on (None), or from a place on; a `Gap` where some were dropped because the reader was slow.

        A place of another engine, or one too old to be served, begins with a `Gap`. Ends when the engine stops.
        """
        ...

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """At most `limit` of what was done, the latest first: those with a number below `before`, or the latest of all (None)."""
        ...

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """At most `limit` of the intakes, the latest first, as `actions`."""
        ...

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """An intake and a window of its account."""
        ...

    def content(self, sha256: str, form: SampleForm, actor: str = "", origin: str = "") -> AsyncGenerator[bytes, None]:
        """A sample in a form, its sum checked before the first chunk. Who took it, from where, is in the log of actions by then; who is
        not named is whoever runs the engine, and on a served one who holds the socket. Raises `SampleMissing`, `SampleChanged`,
        `RefusedCommand`, `StoreError`. Close it when it is not read to the end."""
        ...

    async def figures(self) -> StoreFigures:
        """What lies in the data folder, counted now. Raises `RefusedCommand`, `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class Away:
    """An engine that can't be reached: since when (seconds since the epoch, this host's clock), why, in words, and in how many seconds
    it is tried again (None: it is being tried)."""

    since: float
    problem: str
    retry_in_s: float | None = None


class Attachment(Protocol):
    """What a console knows of its way to an engine that runs elsewhere."""

    @property
    def place(self) -> str:
        """Who is attached where: `ana@sbx-01`."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether this console may only look."""
        ...

    @property
    def away(self) -> Away | None:
        """None while there is a connection."""
        ...

    @property
    def contacts(self) -> int:
        """How often a connection was made: a higher number than before means that news may have been missed."""
        ...

    def hurry(self) -> None:
        """Try to connect at once, if that is waited with."""
        ...
