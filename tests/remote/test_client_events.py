"""How a client follows events over servers that go and come back, and what it says meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import unquote

import pytest

from malbox_tui.model.commands import Command, PausePool
from malbox_tui.model.errors import Disconnected
from malbox_tui.model.events import Gap
from malbox_tui.remote import following as following_module
from malbox_tui.remote.client import RemoteClient, SocketWay
from malbox_tui.remote.contact import BackOff
from malbox_tui.remote.protocol import BeatLine, EndLine, GapLine, OverviewLine
from tests.remote.clients import Make, following
from tests.remote.odd_server import event, lines, odd_server, overview, place, stream, stream_head


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
        with pytest.raises(Disconnected, match=r"the connection was closed\. Try again"):
            await remote.overview()
        waiting.cancel()


async def test_of_a_command_that_is_given_up_it_is_said_whether_it_may_have_been_carried_out(
    client: Make, tmp_path: Path
) -> None:
    async def play(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    pause = Command(action=PausePool(), actor="ana")
    async with odd_server(tmp_path / "s", play):
        with pytest.raises(Disconnected, match=r"the connection was closed\. It was sent, and may have been carried out: look"):
            await client(tmp_path / "s").do(pause)
    with pytest.raises(Disconnected, match=r"nobody listens on the socket: the engine was ended\. Try again"):
        await client(tmp_path / "s").do(pause)


class TurnedClock:
    """Goes on by a minute each time that it is looked at."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        self.at += 60.0
        return self.at


@pytest.mark.slow
async def test_what_is_known_is_as_old_as_the_last_sign_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the silence was this side's: a console that was stopped reads nothing, and shows what was."""
    monkeypatch.setattr(following_module, "SILENCE_S", 1.0)

    async def play(_: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(stream([1]))
        await reader.read()

    clock = TurnedClock()
    remote = RemoteClient(SocketWay(str(tmp_path / "s")), clock, stays=True, back_off=BackOff(60.0, 60.0))
    async with odd_server(tmp_path / "s", play), following(remote) as events, asyncio.TaskGroup() as beside:
        assert await anext(events) == event(1)
        heard_at = clock.at
        waiting = beside.create_task(anext(events))
        while (away := remote.away) is None:
            await asyncio.sleep(0.01)  # noqa: TID251 - the others' turn
        waiting.cancel()
    assert (away.since, away.problem) == (heard_at, "no answer came within 1 s")
