"""A server that says what the test scripts, byte by byte: what no good engine does, a client has to stand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from malbox_tui.model.events import Event, PoolPaused, Position
from malbox_tui.model.overview import Overview
from malbox_tui.remote.protocol import PROTOCOL, EventLine, OverviewLine, StreamLine

Play = Callable[[str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Gets the first line of a request, and the connection."""

ENGINE = "e" * 32


def place(seq: int, epoch: int = 1) -> Position:
    return Position(ENGINE, epoch, seq)


def overview(seq: int = 0, epoch: int = 1) -> Overview:
    return Overview(clock=1.0, position=place(seq, epoch), counts={}, groups=(), workers=())


def event(seq: int, epoch: int = 1) -> Event:
    return Event(place(seq, epoch), 1.0, PoolPaused(reason=str(seq)))


def head(status: int = 200, protocol: int | None = PROTOCOL, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    lines += [] if protocol is None else [f"malbox-protocol: {protocol}"]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(value: object, status: int = 200, protocol: int | None = PROTOCOL) -> bytes:
    """A whole answer."""
    body = msgspec.json.encode(value)
    return head(status, protocol, content_length=str(len(body))) + body


def stream_head() -> bytes:
    return head(transfer_encoding="chunked")


def lines(*given: StreamLine) -> bytes:
    """Lines of the event stream, in one chunk."""
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in given)
    return b"%x\r\n%s\r\n" % (len(text), text)


def stream(seqs: Iterable[int], begin: int = 0) -> bytes:
    return stream_head() + lines(OverviewLine(overview(begin)), *(EventLine(event(seq)) for seq in seqs))


@asynccontextmanager
async def odd_server(path: Path, play: Play) -> AsyncIterator[list[str]]:
    """Serves `play` at `path`; gives the first lines of all requests. A body whose length was given has been read when it plays."""
    asked: list[str] = []
    open_here: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        open_here[this] = writer
        try:
            while request := (await reader.readuntil(b"\r\n\r\n")).decode():
                asked.append(request.partition("\r\n")[0])
                await reader.readexactly(_content_length(request))
                await play(request, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(serve, path, limit=1 << 20)
    try:
        yield asked
    finally:
        for _ in range(10):  # who knocked is let in
            await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
        server.close()
        for writer in open_here.values():
            writer.transport.abort()
        for writer in open_here.values():
            with suppress(ConnectionError):
                await writer.wait_closed()
        if open_here:
            await asyncio.wait(open_here)


def _content_length(request: str) -> int:
    for line in request.lower().splitlines():
        if line.startswith("content-length:"):
            return int(line.partition(":")[2])
    return 0
