"""The simplest HTTP client there is, over a Unix socket: it can also do what no good client does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from malbox_tui.remote.protocol import Problem

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

    def cut(self) -> None:
        self.writer.transport.abort()
