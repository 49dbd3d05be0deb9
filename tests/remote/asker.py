"""The simplest HTTP client there is, over a Unix socket: it can also do what no good client does."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from malbox_tui.model.events import TaskEnded
from malbox_tui.model.task import FINAL_STATES
from malbox_tui.remote.protocol import EventLine, OverviewLine, Problem, StreamLine

T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    """An answer: header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def as_a(self, kind: type[T]) -> T:
        assert self.status == 200, (self.status, self.body)
        return msgspec.json.decode(self.body, type=kind)

    @property
    def problem(self) -> tuple[int, str]:
        """Its status and code; it has a sentence too."""
        problem = msgspec.json.decode(self.body, type=Problem)
        assert problem.message.endswith((".", "`")) or ":" in problem.message, problem.message
        return self.status, problem.code


class Asker:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> None:
        self.reader = reader
        self.writer = writer
        self._headers = headers

    @classmethod
    async def connect(cls, path: Path, headers: Mapping[str, str] = {}) -> Asker:
        reader, writer = await asyncio.open_unix_connection(str(path), limit=1 << 20)
        return cls(reader, writer, headers)

    async def get(self, target: str, **headers: str) -> Reply:
        return await self.ask("GET", target, headers=headers)

    async def post(self, target: str, value: Any, **headers: str) -> Reply:
        return await self.ask("POST", target, msgspec.json.encode(value), {"content-type": "application/json", **headers})

    async def upload(self, query: str, content: bytes, **headers: str) -> Reply:
        return await self.ask("POST", f"/v1/samples?{query}", content, headers)

    async def ask(self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] = {}) -> Reply:
        self.begin(method, target, headers if body is None else {"content-length": str(len(body)), **headers})
        if body is not None:
            self.writer.write(body)
        return await self.reply()

    def begin(self, method: str, target: str, headers: Mapping[str, str] = {}) -> None:
        """Send what stands before the content."""
        fields = {"host": "engine", **self._headers, **headers}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()), "", ""]
        self.writer.write("\r\n".join(lines).encode("latin-1"))

    async def reply(self) -> Reply:
        status, headers = await self.reply_head()
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join([chunk async for chunk in self.chunks()])
        else:
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Reply(status, headers, body)

    async def reply_head(self) -> tuple[int, Mapping[str, str]]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(": ") for line in head[1:] if line)
        return int(head[0].split()[1]), {name.lower(): value for name, _, value in fields}

    async def chunks(self) -> AsyncIterator[bytes]:
        while size := int((await self.reader.readline()).strip() or b"0", 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()

    async def lines(self, target: str = "/v1/events", **headers: str) -> AsyncIterator[StreamLine]:
        """The lines of an event stream."""
        self.begin("GET", target, headers)
        status, _ = await self.reply_head()
        assert status == 200
        rest = b""
        async for chunk in self.chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield msgspec.json.decode(line, type=StreamLine)  # type: ignore[arg-type]

    async def until_ended(self, tasks: int) -> None:
        """Follow until so many tasks in all have ended."""
        ended = 0
        async for line in self.lines():
            if isinstance(line, OverviewLine):
                ended = sum(line.overview.counts.get(state, 0) for state in FINAL_STATES)
            ended += isinstance(line, EventLine) and isinstance(line.event.body, TaskEnded)
            if ended >= tasks:
                return

    def cut(self) -> None:
        self.writer.transport.abort()


def flooded(path: Path, head: bytes, piece: bytes) -> bytes:
    """Send `head`, and `piece` again and again until nobody takes it; returns what was answered."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(path))
        answer = b""
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(head)
            while True:
                connection.sendall(piece)
        with suppress(ConnectionResetError):
            while received := connection.recv(65536):
                answer += received
        return answer
