"""One HTTP connection of a client over a Unix socket, and those that are kept for the next request.

HTTP itself is h11's; here are sockets, limits of time and size, and who answers before all was sent. Whatever goes wrong is
`ConnectionLost`. A request that was cancelled or failed takes its connection with it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import h11

from malbox_tui.remote.dialing import dial, listener_of

STALL_S = 60.0
"""Nothing that is sent or waited for takes longer than this to move on."""
QUIET_S = 2.0
"""After so much silence one who wants to know is told of it."""
MAX_HEAD_BYTES = 64 * 1024
PIECE_BYTES = 256 * 1024

OnQuiet = Callable[[int | None], None]
"""Told that the process with this id (None: it is not known) is waited for."""


class ConnectionLost(Exception):
    """The other side can't be reached, has gone, is silent, or says what is no HTTP. The text is a sentence's part."""


class Silence(ConnectionLost):
    """Nothing came for too long; since when nobody was there can't be told."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked. A `content` that comes in pieces is sent as it comes, and can't be sent twice. The answer may be silent for
    `stall_s`. `sent` is set when some of it may have come there."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]] = ()
    content: bytes | AsyncIterator[bytes] = b""
    stall_s: float = STALL_S
    sent: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be sent again as it is."""
        return isinstance(self.content, bytes)


@dataclass(frozen=True, slots=True)
class Head:
    """How an answer begins; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    head: Head
    body: bytes


class Wire:
    """A connection, for one request at a time. `on_quiet` is told when the other side keeps silent, once a wait."""

    def __init__(self, connected: socket.socket, on_quiet: OnQuiet | None = None) -> None:
        self._socket = connected
        self._on_quiet = on_quiet
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._loop = asyncio.get_running_loop()
        self.was_used = False

    @classmethod
    async def open(cls, path: str, on_quiet: OnQuiet | None = None) -> Wire:
        """Connect to the socket at `path`."""
        try:
            return cls(await dial(path), on_quiet)
        except TimeoutError as exc:
            raise ConnectionLost("too many wait to be let in there") from exc
        except OSError as exc:
            raise ConnectionLost(_why(exc)) from exc

    @property
    def is_open(self) -> bool:
        """Whether nobody ended it and nothing came that was not asked for."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    @property
    def is_ready(self) -> bool:
        """Whether another request can be sent, once the answer has been read."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        return self._http.our_state is h11.IDLE

    def close(self) -> None:
        """Let go."""
        self._socket.close()

    def hush(self) -> None:
        """From now on silence is nothing to tell of."""
        self._on_quiet = None

    async def ask(self, request: Request, max_bytes: int) -> Answer:
        """The whole answer. Raises `ConnectionLost`, and whatever the content raises."""
        head = await self.begin(request)
        body = bytearray()
        async for piece in self.body(request.stall_s):
            body += piece
            if len(body) > max_bytes:
                raise ConnectionLost(f"the answer is larger than {max_bytes} bytes")
        return Answer(head, bytes(body))

    async def begin(self, request: Request) -> Head:
        """Send a request and read how the answer begins. Raises as `ask` does."""
        self.was_used = True
        request.sent.set()
        await self._send(request)
        while True:
            event = await self._next(request.stall_s)
            if isinstance(event, h11.Response):
                return Head(event.status_code, {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers})
            if not isinstance(event, h11.InformationalResponse):
                raise ConnectionLost("the connection was closed")

    async def body(self, stall_s: float) -> AsyncIterator[bytes]:
        """The answer's content, piece by piece; silence of `stall_s` is the connection's loss."""
        while True:
            event = await self._next(stall_s)
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            else:
                raise ConnectionLost("the connection was closed")

    async def _send(self, request: Request) -> None:
        """Send it; cut short where the other side has answered already, or takes no more: the answer says why."""
        content = request.content
        length = (("content-length", str(len(content))),) if isinstance(content, bytes) else (("transfer-encoding", "chunked"),)
        headers = [("host", "malbox"), *request.headers, *length]
        unsent = self._http.send(h11.Request(method=request.method, target=request.target, headers=headers)) or b""
        if isinstance(content, bytes):
            await self._push(unsent + (self._http.send(h11.Data(data=content)) or b"") + self._end())
            return
        async for chunk in content:
            for start in range(0, len(chunk), PIECE_BYTES):
                unsent += self._http.send(h11.Data(data=chunk[start : start + PIECE_BYTES])) or b""
                if len(unsent) >= PIECE_BYTES:
                    if not self.is_open or not await self._push(unsent):
                        return
                    unsent = b""
        await self._push(unsent + self._end())

    def _end(self) -> bytes:
        return self._http.send(h11.EndOfMessage()) or b""

    async def _push(self, content: bytes) -> bool:
        """False when the other side takes nothing more; it may have said why."""
        try:
            async with self._patience(STALL_S):
                await self._loop.sock_sendall(self._socket, content)
        except TimeoutError as exc:
            raise ConnectionLost(f"nothing was taken within {STALL_S:g} s") from exc
        except OSError:
            return False
        return True

    @asynccontextmanager
    async def _patience(self, stall_s: float) -> AsyncIterator[None]:
        """What is done while entered may take so long. Raises TimeoutError."""
        on_quiet = self._on_quiet
        telling = on_quiet and self._loop.call_later(QUIET_S, lambda: on_quiet(listener_of(self._socket)))
        try:
            async with asyncio.timeout(stall_s):
                yield
        finally:
            if telling is not None:
                telling.cancel()

    async def _next(self, stall_s: float) -> object:
        has_ended = False
        while True:
            try:
                event = self._http.next_event()
                if event is not h11.NEED_DATA:
                    return event
                async with self._patience(stall_s):
                    received = await self._loop.sock_recv(self._socket, PIECE_BYTES)
                has_ended = not received
                self._http.receive_data(received)
            except TimeoutError as exc:
                raise Silence(f"no answer came within {stall_s:g} s") from exc
            except OSError as exc:
                raise ConnectionLost(_why(exc)) from exc
            except h11.RemoteProtocolError as exc:
                raise ConnectionLost(
                    "the connection was closed" if has_ended else f"what came is no proper HTTP ({exc})"
                ) from exc


class Wires:
    """Connections to one place. `reach` says where its socket is, and may raise `ConnectionLost`; for `on_quiet` see `Wire`."""

    def __init__(self, reach: Callable[[], Awaitable[str]], on_quiet: OnQuiet | None = None) -> None:
        self._reach = reach
        self._on_quiet = on_quiet
        self._idle: list[Wire] = []

    async def ask(self, request: Request, max_bytes: int) -> Answer:
        """One request and its answer. A kept connection that was ended meanwhile is replaced."""
        async with self.taken() as wire:
            was_used = wire.was_used
            try:
                return await wire.ask(request, max_bytes)
            except ConnectionLost:
                if not (was_used and request.is_repeatable):
                    raise
        async with self.fresh() as wire:
            return await wire.ask(request, max_bytes)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[Wire]:
        """A connection that nobody else uses; afterwards it is kept if it can be used again."""
        wire = self._kept() or await Wire.open(await self._reach(), self._on_quiet)
        try:
            yield wire
            if wire.is_ready:
                self._idle.append(wire)
        finally:
            if wire not in self._idle:
                wire.close()

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[Wire]:
        """A new connection, closed at the end."""
        wire = await Wire.open(await self._reach(), self._on_quiet)
        try:
            yield wire
        finally:
            wire.close()

    def _kept(self) -> Wire | None:
        while self._idle:
            wire = self._idle.pop()
            if wire.is_open:
                return wire
            wire.close()
        return None

    def close(self) -> None:
        """Let go of all that nobody uses."""
        while self._idle:
            self._idle.pop().close()


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no socket: no engine is served there"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens on the socket: the engine was ended"
    if isinstance(error, PermissionError):
        return "this user may not open the socket"
    return (error.strerror or str(error)).lower()
