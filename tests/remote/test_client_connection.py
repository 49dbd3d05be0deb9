"""What a client makes of servers that go, come back, are silent, are of another version, or are none."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pytest

from malbox_tui.model.commands import Command, PausePool
from malbox_tui.model.errors import Disconnected, EngineMismatch, EngineStopped, MalboxError
from malbox_tui.model.events import Event, Gap
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Accepted, Offer, Refused, SubmissionOptions
from malbox_tui.remote.client import RemoteClient, SocketWay, Visitor
from malbox_tui.remote.contact import BackOff
from malbox_tui.remote.dialing import dial
from malbox_tui.remote.protocol import BeatLine, EndLine, GapLine, OverviewLine, Problem
from malbox_tui.remote.wire import ConnectionLost, Request, Wire, Wires
from tests.remote.odd_server import event, head, lines, odd_server, overview, place, stream, stream_head, whole

PAGE = TaskPage(rows=(), total=0, offset=0, clock=1.0)


class StandingClock:
    def now(self) -> float:
        return 1000.0


Make = Callable[..., RemoteClient]


@pytest.fixture
def client() -> Iterator[Make]:
    """Makes clients of the engine at a path, which wait for nothing before they try again."""
    made: list[RemoteClient] = []

    def make(path: Path, *, stays: bool = True, wait_s: float = 0.0, **given: Any) -> RemoteClient:
        made.append(
            RemoteClient(
                SocketWay(str(path), "sbx-01"),
                StandingClock(),
                stays=stays,
                back_off=BackOff(wait_s, wait_s),
                time_of_day=lambda at: f"time {at:.0f}",
                **given,
            )
        )
        return made[-1]

    yield make
    for remote in made:
        remote.close()


@asynccontextmanager
async def following(remote: RemoteClient, after: Any = None) -> AsyncIterator[AsyncGenerator[Event | Gap, None]]:
    events = cast(AsyncGenerator[Event | Gap, None], remote.events(after))
    try:
        async with asyncio.timeout(60):
            yield events
    finally:
        await events.aclose()


# --- nobody, or somebody else --------------------------------------------------------------------------------------------------


async def test_where_there_is_no_socket_that_is_said(client: Make, tmp_path: Path) -> None:
    with pytest.raises(Disconnected, match=r"^The engine at sbx-01 can't be asked: there is no socket"):
        await client(tmp_path / "none").overview()


async def test_a_socket_of_a_dead_server_is_told_from_none(client: Make, tmp_path: Path) -> None:
    async with odd_server(tmp_path / "s", None):  # type: ignore[arg-type]
        pass
    with pytest.raises(Disconnected, match="nobody listens on the socket"):
        await client(tmp_path / "s").overview()


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (2, "speaks protocol 2, this program 1: this malbox-tui is the older one; upgrade it"),
        (0, "speaks protocol 0, this program 1: the engine is the older one; upgrade it and start it again"),
        (None, "What answers at sbx-01 is no engine of malbox-tui"),
    ],
)
async def test_another_protocol_is_told_with_what_to_do(
    client: Make, tmp_path: Path, protocol: int | None, sentence: str
) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(PAGE, protocol=protocol))

    async with odd_server(tmp_path / "s", play):
        with pytest.raises(EngineMismatch, match=sentence):
            await client(tmp_path / "s").query(TaskQuery())


@pytest.mark.parametrize(
    "said",
    [
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\nmalbox-protocol: 1\r\ncontent-length: 100\r\n\r\nshort",
        head(content_length="3") + b"[1,",
        head(500, content_length="9") + b"<html>...",
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 100_000,
        b"",
    ],
)
async def test_what_is_no_proper_answer_is_a_lost_connection(client: Make, tmp_path: Path, said: bytes) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    async with odd_server(tmp_path / "s", play):
        with pytest.raises(Disconnected):
            await client(tmp_path / "s").query(TaskQuery())


async def test_an_answer_without_end_is_cut_off(tmp_path: Path) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_head())
        while not writer.is_closing():
            writer.write(b"400\r\n%s\r\n" % (b"x" * 1024))
            await writer.drain()

    async with odd_server(tmp_path / "s", play), Wires(SocketWay(str(tmp_path / "s")).reach).fresh() as wire:
        with pytest.raises(ConnectionLost, match="larger than 10000 bytes"):
            await wire.ask(Request("GET", "/"), 10_000)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("stopping", EngineStopped), ("store", MalboxError), ("no_such_code", MalboxError), ("read_only", MalboxError)],
)
async def test_a_problem_is_the_error_that_it_stands_for(
    client: Make, tmp_path: Path, code: str, kind: type[MalboxError]
) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(Problem(code=code, message="It is so."), status=503))

    async with odd_server(tmp_path / "s", play):
        with pytest.raises(kind) as caught:
            await client(tmp_path / "s", stays=False).query(TaskQuery())
        assert not isinstance(caught.value, Disconnected)


async def test_a_command_of_one_who_may_only_look_is_refused_in_the_server_s_words(client: Make, tmp_path: Path) -> None:
    async def play(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert "malbox-read-only: 1" in request
        writer.write(whole(Problem(code="read_only", message="You may only look."), status=403))

    async with odd_server(tmp_path / "s", play):
        remote = client(tmp_path / "s", visitor=Visitor(read_only=True))
        outcome = await remote.do(Command(action=PausePool(), actor=""))
    assert (outcome.done, outcome.message) == (False, "You may only look.")


# --- connections that are kept -------------------------------------------------------------------------------------------------


async def test_requests_one_after_the_other_share_a_connection(client: Make, tmp_path: Path) -> None:
    connections: set[asyncio.StreamWriter] = set()

    async def play(_: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        writer.write(whole(PAGE))

    async with odd_server(tmp_path / "s", play):
        remote = client(tmp_path / "s")
        for _ in range(5):
            assert await remote.query(TaskQuery()) == PAGE
    assert len(connections) == 1


async def test_a_kept_connection_that_was_ended_is_replaced(client: Make, tmp_path: Path) -> None:
    async def play(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(PAGE))
        await writer.drain()
        writer.close()

    async with odd_server(tmp_path / "s", play) as asked:
        remote = client(tmp_path / "s")
        for _ in range(5):
            assert await remote.query(TaskQuery()) == PAGE
    assert len(asked) == 5


async def test_a_request_that_was_cut_on_a_kept_connection_is_made_again(client: Make, tmp_path: Path) -> None:
    async def play(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(asked) == 2:
            writer.close()
        else:
            writer.write(whole(PAGE))

    async with odd_server(tmp_path / "s", play) as asked:
        remote = client(tmp_path / "s")
        assert [await remote.query(TaskQuery()) for _ in range(2)] == [PAGE, PAGE]
    assert len(asked) == 3


async def test_a_path_longer_than_a_socket_s_name_is_reached(client: Make, tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 200)
    folder.mkdir()
    short = tmp_path / "s"

    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(overview(4)))

    async with odd_server(short, play):
        short.rename(folder / "s")
        remote = client(folder / "s")
        assert (await remote.overview()).position == place(4)


async def test_silence_of_a_server_is_the_loss_of_the_connection(tmp_path: Path) -> None:
    async def play(_: str, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await reader.read()

    async with odd_server(tmp_path / "s", play):
        wires = Wires(SocketWay(str(tmp_path / "s")).reach)
        async with wires.fresh() as wire:
            await wire._push(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            with pytest.raises(ConnectionLost, match="no answer came within 0 s"):
                await wire._next(0.0)


async def test_who_is_waited_for_is_told_while_it_is_silent(tmp_path: Path, client: Make) -> None:
    told = asyncio.Event()
    whom: list[int | None] = []

    def on_quiet(process: int | None) -> None:
        whom.append(process)
        told.set()

    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await told.wait()
        writer.write(whole(overview(3)))

    async with odd_server(tmp_path / "s", play):
        assert (await client(tmp_path / "s", on_quiet=on_quiet).overview()).position == place(3)
    assert whom == [os.getpid()]


async def test_where_many_wait_to_be_let_in_one_more_waits_too(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(0)
        with await dial(str(tmp_path / "s")):
            with pytest.raises(TimeoutError):
                await dial(str(tmp_path / "s"), limit_s=0.0)
            async with asyncio.TaskGroup() as beside:
                waiting = beside.create_task(dial(str(tmp_path / "s")))
                await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
                listener.accept()[0].close()
            with waiting.result() as let_in:
                assert let_in.getpeername() == str(tmp_path / "s")


# --- uploads -------------------------------------------------------------------------------------------------------------------


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


# --- events --------------------------------------------------------------------------------------------------------------------


async def test_events_go_on_over_a_lost_connection_from_the_place_that_is_known(client: Make, tmp_path: Path) -> None:
    parts = [stream([1, 2]), stream([3]), stream([4])]

    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(parts[len(asked) - 1])
        if len(asked) < len(parts):
            await writer.drain()
            writer.transport.abort() if len(asked) == 2 else writer.close()

    async with odd_server(tmp_path / "s", play) as asked:
        remote = client(tmp_path / "s")
        async with following(remote, place(0)) as events:
            assert [await anext(events) for _ in range(4)] == [event(seq) for seq in (1, 2, 3, 4)]
    assert [unquote(line.partition("after=")[2]).split()[0].rpartition(":")[2] for line in asked] == ["0", "2", "3"]
    assert remote.contacts == 3


async def test_from_now_on_is_from_where_the_engine_was_at_the_first_contact(client: Make, tmp_path: Path) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(stream([] if len(asked) == 1 else [8], begin=7))
        if len(asked) == 1:
            await writer.drain()
            writer.close()

    async with odd_server(tmp_path / "s", play) as asked, following(client(tmp_path / "s")) as events:
        assert await anext(events) == event(8)
    assert "after" not in asked[0]
    assert "7" in asked[1].partition("after=")[2]


async def test_a_gap_is_told_and_gone_on_from(client: Make, tmp_path: Path) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            stream_head() + lines(OverviewLine(overview(9)), GapLine(place(9)), OverviewLine(overview(9)), BeatLine(2.0))
        )

    async with odd_server(tmp_path / "s", play), following(client(tmp_path / "s"), place(1)) as events:
        assert await anext(events) == Gap(place(9))


async def test_the_end_of_the_engine_is_waited_over_by_one_who_stays(client: Make, tmp_path: Path) -> None:
    seen: list[str] = []

    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(asked) == 1:
            writer.write(stream([1]) + lines(EndLine()))
        else:
            seen.append("connected" if remote.away is None else remote.away.problem)
            writer.write(stream([2], begin=1))

    async with odd_server(tmp_path / "s", play) as asked:
        remote = client(tmp_path / "s")
        async with following(remote, place(0)) as events:
            assert [await anext(events) for _ in range(2)] == [event(1), event(2)]
        assert remote.away is None
    assert seen == ["the engine has ended"]


async def test_one_who_does_not_stay_ends_with_the_engine_and_fails_with_the_connection(client: Make, tmp_path: Path) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(stream([1]) + (lines(EndLine()) if len(asked) == 1 else b""))
        await writer.drain()
        writer.close()

    async with odd_server(tmp_path / "s", play) as asked:
        remote = client(tmp_path / "s", stays=False)
        assert [item async for item in remote.events(place(0))] == [event(1)]
        with pytest.raises(Disconnected, match="since time 1000: the connection was closed"):
            assert not [item async for item in remote.events(place(0)) if item != event(1)]


async def test_while_there_is_no_connection_calls_fail_at_once_and_say_since_when(client: Make, tmp_path: Path) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(stream([1]))
        await writer.drain()
        (tmp_path / "s").unlink()
        writer.close()

    remote = client(tmp_path / "s", wait_s=600.0)
    async with odd_server(tmp_path / "s", play), following(remote, place(0)) as events, asyncio.TaskGroup() as beside:
        assert await anext(events) == event(1)
        waiting = beside.create_task(anext(events))
        while remote.away is None or remote.away.retry_in_s is None:
            await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
        assert 400 < remote.away.retry_in_s <= 600
        assert remote.away.since == 1000.0
        with pytest.raises(Disconnected, match=r"Not connected to sbx-01 since time 1000: the connection was closed\. Try again"):
            await remote.overview()
        remote.hurry()
        while remote.away.problem == "the connection was closed":
            await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
            assert remote.away is not None
        assert "no socket" in remote.away.problem
        waiting.cancel()


async def test_a_call_that_is_waited_for_is_given_up_when_the_connection_is_lost(client: Make, tmp_path: Path) -> None:
    followed, asked_in_vain = asyncio.Event(), asyncio.Event()

    async def play(request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if "/v1/events" not in request:
            asked_in_vain.set()
            await reader.read()
        elif not followed.is_set():
            followed.set()
            writer.write(stream([1]))
            await asked_in_vain.wait()
            writer.close()
        else:
            await reader.read()

    remote = client(tmp_path / "s", wait_s=600.0)
    async with odd_server(tmp_path / "s", play), following(remote, place(0)) as events, asyncio.TaskGroup() as beside:
        assert await anext(events) == event(1)
        waiting = beside.create_task(anext(events))
        with pytest.raises(Disconnected, match="the connection was closed"):
            await remote.overview()
        waiting.cancel()


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


async def test_a_wire_that_is_not_there_any_more_is_not_open(tmp_path: Path) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with odd_server(tmp_path / "s", play):
        wire = await Wire.open(str(tmp_path / "s"))
        assert wire.is_open
        with pytest.raises(ConnectionLost, match="connection was closed"):
            await wire.ask(Request("GET", "/"), 10)
        assert not wire.is_open
        wire.close()
