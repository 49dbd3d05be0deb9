"""What becomes of a client's submissions at servers that cut them, refuse them, or go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.errors import Disconnected
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Accepted, Offer, Refused, SubmissionOptions
from malbox_tui.remote.protocol import Problem
from tests.remote.clients import Make, following
from tests.remote.odd_server import event, odd_server, place, stream, whole


async def _chunks(*given: bytes) -> AsyncIterator[bytes]:
    for chunk in given:
        yield chunk


async def _offers(*contents: bytes) -> AsyncIterator[Offer]:
    for number, content in enumerate(contents):
        yield Offer(SampleName(b"%d" % number), content=_chunks(*[content] * 64))


async def _read_chunked(reader: asyncio.StreamReader) -> bytes:
    content = b""
    while size := int(await reader.readline(), 16):
        content += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return content


async def test_an_upload_that_the_server_cuts_is_told_and_the_others_go_on(client: Make, tmp_path: Path) -> None:
    async def play(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        content = await _read_chunked(reader)
        if content.startswith(b"b"):
            writer.close()
            return
        writer.write(whole({"type": "accepted"} | {"name": {"name": "MA=="}, "sha256": "0" * 64, "size_bytes": 1, "task_id": 1}))

    async with odd_server(tmp_path / "s", play):
        remote = client(tmp_path / "s")
        account = await remote.submit(_offers(b"a", b"b", b"c"), SubmissionOptions())
    first, cut, last = account.receipts
    assert isinstance(first, Accepted)
    assert isinstance(last, Accepted)
    assert isinstance(cut, Refused)
    assert cut.refusal.code == "cut"
    assert "Add it again" in cut.refusal.reason


async def test_an_upload_that_is_refused_while_it_is_sent_is_not_sent_to_its_end(client: Make, tmp_path: Path) -> None:
    async def play(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(whole(Problem(code="too_large", message="It is too large."), status=413))
        await writer.drain()
        await reader.read(1 << 20)
        writer.close()

    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"x" * (1 << 18)

    async def offers() -> AsyncIterator[Offer]:
        yield Offer(SampleName(b"large"), content=endless())

    async with odd_server(tmp_path / "s", play):
        remote = client(tmp_path / "s")
        async with asyncio.timeout(60):
            account = await remote.submit(offers(), SubmissionOptions())
    (refused,) = account.refused
    assert refused.refusal.reason == "It is too large."


async def test_a_submission_to_a_server_that_goes_says_so(client: Make, tmp_path: Path) -> None:
    async def play(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (tmp_path / "s").unlink(missing_ok=True)
        writer.close()

    async with odd_server(tmp_path / "s", play):
        with pytest.raises(Disconnected, match="there is no socket"):
            await client(tmp_path / "s").submit(_offers(b"a"), SubmissionOptions())


async def test_an_offer_that_breaks_takes_its_submission_with_it(client: Make, tmp_path: Path) -> None:
    async def offers() -> AsyncIterator[Offer]:
        raise LookupError("no such folder")
        yield

    with pytest.raises(LookupError, match="no such folder"):
        await client(tmp_path / "s").submit(offers(), SubmissionOptions())


async def test_a_submission_that_is_given_up_says_how_far_it_came_and_how_to_go_on(client: Make, tmp_path: Path) -> None:
    followed, half_way = asyncio.Event(), asyncio.Event()

    async def play(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if "/v1/events" not in request:
            await _read_chunked(reader)
            accepted = {"type": "accepted", "name": {"name": "MA=="}, "sha256": "0" * 64, "size_bytes": 1, "task_id": 1}
            writer.write(whole(accepted))
        elif not followed.is_set():
            followed.set()
            writer.write(stream([1]))
            await half_way.wait()
            writer.close()
        else:
            await reader.read()

    async def endless() -> AsyncIterator[bytes]:
        await half_way.wait()
        while True:
            yield b"x"
            await asyncio.Event().wait()

    async def offers() -> AsyncIterator[Offer]:
        yield Offer(SampleName(b"small"), content=_chunks(b"a"))
        yield Offer(SampleName(b"large"), content=endless())

    remote = client(tmp_path / "s", wait_s=600.0)
    async with odd_server(tmp_path / "s", play), following(remote, place(0)) as events, asyncio.TaskGroup() as beside:
        assert await anext(events) == event(1)
        waiting = beside.create_task(anext(events))
        with pytest.raises(Disconnected, match=r"closed, after 1 samples?\. Add the same again .* nothing is taken twice"):
            await remote.submit(offers(), SubmissionOptions(), lambda _: half_way.set())
        waiting.cancel()
