"""What a client makes of servers that are silent, of another version, or none, and when it asks on the same connection."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from malbox_tui.model.commands import Command, PausePool
from malbox_tui.model.errors import Disconnected, EngineMismatch, EngineStopped, MalboxError
from malbox_tui.model.queries import TaskQuery
from malbox_tui.remote.client import SocketWay, Visitor
from malbox_tui.remote.dialing import dial
from malbox_tui.remote.protocol import Problem
from malbox_tui.remote.wire import ConnectionLost, Request, Wire, Wires
from tests.remote.clients import PAGE, Make
from tests.remote.odd_server import head, odd_server, overview, place, stream_head, whole


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
