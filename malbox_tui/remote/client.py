"""An engine that runs elsewhere, as a `Client`: requests over its socket, and its events as they come.

One who follows the events keeps the connection: it notices the loss, tries again with growing patience, and catches up from the place
that it knows. Until then all calls raise `Disconnected` at once, so that nobody waits for an answer that can't come.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import msgspec

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.errors import Disconnected, EngineMismatch, EngineStopped, RefusedCommand
from malbox_tui.model.events import Event, Gap, Position
from malbox_tui.model.intake import IntakePage, IntakeView, LineQuery
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import ResultRef
from malbox_tui.model.submission import Account, Offer, Receipt, SubmissionOptions
from malbox_tui.model.upkeep import SampleForm, StoreFigures
from malbox_tui.ports import Away, Clock
from malbox_tui.remote.contact import BackOff, Contact
from malbox_tui.remote.following import Ended, Following
from malbox_tui.remote.protocol import (
    CONSOLE_HEADER,
    MAX_READ_BYTES,
    ORIGIN_HEADER,
    PROTOCOL,
    PROTOCOL_HEADER,
    READ_ONLY_HEADER,
    ActionPage,
    Health,
    IntakeList,
    Order,
    Reading,
)
from malbox_tui.remote.reading import Declined, body_of, check_protocol, error_of, value_of
from malbox_tui.remote.sending import Sending
from malbox_tui.remote.wire import Answer, ConnectionLost, OnQuiet, Request, Silence, Wires

T = TypeVar("T")

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""A page of 1,000 tasks with all their plugins takes a few of them."""

HELLO_S = 15.0
"""Who is asked whether there is somebody answers within this, or is taken for deaf."""

_JSON = ("content-type", "application/json")


class Way(Protocol):
    """How to get to an engine's socket."""

    @property
    def shown(self) -> str:
        """A name of the place for a person."""
        ...

    @property
    def is_up(self) -> bool:
        """False when reaching takes long, as the way has to be opened again."""
        ...

    async def reach(self) -> str:
        """The path of a socket on this host that leads there now. Raises `ConnectionLost`."""
        ...


class SocketWay:
    """A socket on this host."""

    is_up = True

    def __init__(self, path: str, shown: str | None = None) -> None:
        self._path = path
        self.shown = shown or path

    async def reach(self) -> str:
        """See `Way`."""
        return self._path


@dataclass(frozen=True, slots=True)
class Visitor:
    """How a client introduces itself: `console` a name that it made up (empty: it is no console), `origin` where it says it is.

    With `read_only` the engine refuses it whatever changes something.
    """

    console: str = ""
    origin: str = ""
    read_only: bool = False


def _local_time(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")


class RemoteClient:
    """`Client` and `Attachment` over a `Way`. It belongs to the event loop that it is first used on.

    With `stays` the events go on over the loss of the connection and the end of the engine, for as long as it takes; without, they end
    with the engine, and raise `Disconnected` when the connection is lost. `on_quiet` is told whenever an answer is long in coming.
    """

    def __init__(
        self,
        way: Way,
        clock: Clock,
        visitor: Visitor | None = None,
        *,
        stays: bool = False,
        place: str | None = None,
        back_off: BackOff | None = None,
        time_of_day: Callable[[float], str] = _local_time,
        on_quiet: OnQuiet | None = None,
    ) -> None:
        self._way = way
        self._visitor = visitor or Visitor()
        self._stays = stays
        self._contact = Contact(way.shown, clock, time_of_day, back_off or BackOff())
        self._wires = Wires(self._reach, on_quiet)
        self._is_followed = False
        self.place = place or way.shown
        """See `Attachment`."""

    # --- the way -----------------------------------------------------------------------------------------------------------------

    @property
    def read_only(self) -> bool:
        """See `Attachment`."""
        return self._visitor.read_only

    @property
    def away(self) -> Away | None:
        """See `Attachment`."""
        return self._contact.away

    @property
    def contacts(self) -> int:
        """See `Attachment`."""
        return self._contact.count

    def hurry(self) -> None:
        """See `Attachment`."""
        self._contact.hurry()

    async def health(self) -> Health:
        """Who serves. Raises `Disconnected`, sooner than other calls do when there is no answer, and `EngineMismatch`."""
        asking = Request("GET", "/health", self._headers(), stall_s=HELLO_S)
        health: Health = await self._told(self._value(asking, Health))
        return health

    def close(self) -> None:
        """Let go of connections that nobody uses."""
        self._wires.close()

    # --- the port ----------------------------------------------------------------------------------------------------------------

    async def do(self, command: Command) -> CommandOutcome:
        """See `Client`. Its actor is who this process belongs to. Raises `Disconnected`, which says so when it
        may have been carried out all the same.

        It has a key in any case: it may be sent twice, when a kept connection is lost.
        """
        request = self._request("POST", "/v1/commands", Order(action=command.action, key=command.key or uuid4().hex))
        try:
            outcome: CommandOutcome = await self._told(self._value(request, CommandOutcome))
        except RefusedCommand as refused:
            return CommandOutcome(done=False, message=str(refused))
        except Disconnected as lost:
            if not request.sent.is_set():
                raise
            remedy = "It was sent, and may have been carried out: look what became of it when the connection is back."
            raise Disconnected(lost.where, lost.problem, lost.since, remedy) from lost
        return outcome

    async def submit(
        self, offers: AsyncIterator[Offer], options: SubmissionOptions, on_receipt: Callable[[Receipt], None] | None = None
    ) -> Account:
        """See `Client`. Raises `Disconnected` when the engine can't be reached any more; what was told stays taken."""
        if not options.intake.key:
            label = msgspec.structs.replace(options.intake, key=uuid4().hex)
            options = msgspec.structs.replace(options, intake=label)
        sending = Sending(self._wires, self._headers(), options, self._way.shown, on_receipt)
        try:
            return await self._told(sending.run(offers))
        except Disconnected as lost:
            if not sending.answered:
                raise
            problem = f"{lost.problem}, after {sending.answered} {'sample' if sending.answered == 1 else 'samples'}"
            remedy = "Add the same again when the connection is back: nothing is taken twice."
            raise Disconnected(lost.where, problem, lost.since, remedy) from lost

    async def overview(self) -> Overview:
        """See `Client`. Raises `Disconnected`."""
        overview: Overview = await self._ask("GET", "/v1/overview", None, Overview)
        return overview

    async def query(self, query: TaskQuery) -> TaskPage:
        """See `Client`. Raises `Disconnected`."""
        page: TaskPage = await self._ask("POST", "/v1/tasks/query", query, TaskPage)
        return page

    async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
        """See `Client`. Raises `Disconnected`."""
        asked = Reading(reference=reference, max_bytes=min(max_bytes, MAX_READ_BYTES))
        request = self._request("POST", "/v1/results/read", asked)
        return await self._told(self._body(request, MAX_READ_BYTES))

    async def actions(self, before: int | None, limit: int) -> Sequence[ActionRecord]:
        """See `Client`. Raises `Disconnected`."""
        window = f"?limit={limit}" + ("" if before is None else f"&before={before}")
        page: ActionPage = await self._ask("GET", f"/v1/actions{window}", None, ActionPage)
        return page.rows

    async def content(self, sha256: str, form: SampleForm, actor: str = "", origin: str = "") -> AsyncGenerator[bytes, None]:
        """See `Client`. Who takes it is who this process belongs to. Raises `Disconnected`."""
        request = self._request("GET", f"/v1/samples/{sha256}/content?form={form.value}", None)
        try:
            async with self._wires.fresh() as wire:
                head = await wire.begin(request)
                if head.status >= 400:
                    body = b"".join([piece async for piece in wire.body(request.stall_s)])[:MAX_ANSWER_BYTES]
                    body_of(Answer(head, body), self._way.shown)
                check_protocol(head, self._way.shown)
                async for piece in wire.body(request.stall_s):
                    yield piece
        except Declined as declined:
            raise error_of(declined.problem) from None
        except ConnectionLost as lost:
            raise self._contact.error(str(lost)) from lost

    async def figures(self) -> StoreFigures:
        """See `Client`. Raises `Disconnected`."""
        figures: StoreFigures = await self._ask("GET", "/v1/store", None, StoreFigures)
        return figures

    async def intakes(self, before: int | None, limit: int) -> Sequence[IntakeView]:
        """See `Client`. Raises `Disconnected`."""
        window = f"?limit={limit}" + ("" if before is None else f"&before={before}")
        page: IntakeList = await self._ask("GET", f"/v1/intakes{window}", None, IntakeList)
        return page.rows

    async def intake_lines(self, query: LineQuery) -> IntakePage:
        """See `Client`. Raises `Disconnected`."""
        page: IntakePage = await self._ask("POST", "/v1/intakes/query", query, IntakePage)
        return page

    async def events(self, after: Position | None) -> AsyncIterator[Event | Gap]:
        """See `Client`."""
        following = Following(self._wires, self._headers(), self._way.shown, after, self._contact)
        self._is_followed = True
        try:
            while True:
                try:
                    async for item in following.run():
                        yield item
                except Ended as ended:
                    if not self._stays:
                        return
                    self._contact.lost(str(ended))
                except (ConnectionLost, EngineMismatch) as lost:
                    self._contact.lost(str(lost).rstrip("."), was_silent=isinstance(lost, Silence))
                    if not self._stays:
                        raise self._contact.error() from lost
                self._wires.close()
                await self._contact.wait_to_retry()
        finally:
            self._is_followed = False

    async def _reach(self) -> str:
        """While somebody follows, that one opens the way again, and all others are told that there is none."""
        if self._stays and not self._way.is_up:
            self._contact.lost("the way there was closed", gives_up=self._is_followed)
        return await self._way.reach()

    # --- asking ------------------------------------------------------------------------------------------------------------------

    async def _ask(self, method: str, target: str, body: Any, kind: Any) -> Any:
        return await self._told(self._value(self._request(method, target, body), kind))

    async def _value(self, request: Request, kind: Any) -> Any:
        return value_of(await self._wires.ask(request, MAX_ANSWER_BYTES), kind, self._way.shown)

    async def _body(self, request: Request, max_bytes: int) -> bytes:
        return body_of(await self._wires.ask(request, max_bytes), self._way.shown)

    async def _told(self, asking: Coroutine[Any, Any, T]) -> T:
        """The answer, or what went wrong as the port has it."""
        if self._is_followed and self._contact.away is not None:
            asking.close()
            raise self._contact.error()
        try:
            async with self._contact.needed():
                answer = await asking
        except Declined as declined:
            error = error_of(declined.problem)
            if isinstance(error, EngineStopped) and self._stays:
                raise self._contact.error("the engine ends") from None
            raise error from None
        except ConnectionLost as lost:
            if not self._is_followed:
                self._contact.lost(str(lost))
            raise self._contact.error(str(lost)) from lost
        except EngineStopped:
            if self._stays:
                raise self._contact.error("the engine ends") from None
            raise
        if not self._is_followed:
            self._contact.answered()
        return answer

    def _request(self, method: str, target: str, body: Any) -> Request:
        if body is None:
            return Request(method, target, self._headers())
        return Request(method, target, (*self._headers(), _JSON), msgspec.json.encode(body))

    def _headers(self) -> tuple[tuple[str, str], ...]:
        visitor = self._visitor
        given = [(PROTOCOL_HEADER, str(PROTOCOL))]
        if visitor.origin:
            given.append((ORIGIN_HEADER, visitor.origin))
        if visitor.read_only:
            given.append((READ_ONLY_HEADER, "1"))
        if visitor.console:
            given.append((CONSOLE_HEADER, visitor.console))
        return tuple(given)
