"""The event stream: whole, in order, and nobody's slowness is anybody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.events import Gap, Position, TaskCreated
from malbox_tui.model.overview import ConsoleView, Overview
from malbox_tui.remote.bounds import Bounds
from malbox_tui.remote.protocol import (
    CONSOLE_HEADER,
    ORIGIN_HEADER,
    READ_ONLY_HEADER,
    BeatLine,
    EndLine,
    EventLine,
    GapLine,
    OverviewLine,
    StreamLine,
    position_text,
)
from tests.remote.fakes import ENGINE, Script, serving_script
from tests.remote.rig import ServerRig, served

SMALL = Bounds(lines=10, beat_s=60.0)


async def take(lines: AsyncIterator[StreamLine], count: int) -> list[StreamLine]:
    async with asyncio.timeout(30):
        return [await anext(lines) for _ in range(count)]


def seqs(lines: list[StreamLine]) -> list[int]:
    return [line.event.position.seq for line in lines if isinstance(line, EventLine)]


async def all_of(lines: AsyncIterator[StreamLine]) -> list[StreamLine]:
    async with asyncio.timeout(30):
        return [line async for line in lines]


# --- with a real engine --------------------------------------------------------------------------------------------------------


async def test_the_overview_comes_first_and_then_what_happens_after_it(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as reader, rig.asker() as asker:
        lines = reader.lines()
        (first,) = await take(lines, 1)
        assert isinstance(first, OverviewLine)
        await asker.upload("name=x", b"x")
        told = await take(lines, 1)
        while not (isinstance(told[-1], EventLine) and isinstance(told[-1].event.body, TaskCreated)):
            told += await take(lines, 1)
        before = first.overview.position.seq
        assert seqs(told) == list(range(before + 1, before + 1 + len(told))), "what the overview knew is not told again"


async def test_a_stream_that_isnt_followed_ends_at_the_present(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as reader, rig.asker() as asker:
        start = (await asker.get("/v1/overview")).as_a(Overview).position
        for name in ("a", "b", "c"):
            await asker.upload(f"name={name}", name.encode())
        now, *events = await all_of(reader.lines(f"/v1/events?follow=false&after={position_text(start)}"))
        assert isinstance(now, OverviewLine)
        assert seqs(events) == list(range(start.seq + 1, now.overview.position.seq + 1))
        assert [type(line) for line in await all_of(reader.lines("/v1/events?follow=false"))] == [OverviewLine]


async def test_what_happened_before_the_server_began_is_served_from_the_store(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as reader:
        engine = (await rig.client.overview()).position.engine_id
        lines = await all_of(reader.lines(f"/v1/events?follow=false&after={engine}:1:0"))
        assert seqs(lines) == list(range(1, (await rig.client.overview()).position.seq + 1))


async def test_a_place_of_another_engine_begins_with_a_gap(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as reader:
        for place in (f"{ENGINE}:1:1", f"{(await rig.client.overview()).position.engine_id}:1:999999"):
            lines = await all_of(reader.lines(f"/v1/events?follow=false&after={place}"))
            assert [type(line) for line in lines] == [OverviewLine, GapLine, OverviewLine], place


async def test_at_the_engines_end_the_stream_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as reader:
        lines = reader.lines()
        await take(lines, 1)
        rig.thread.stop(ShutdownMode.GIVE_BACK)
        assert isinstance((await all_of(lines))[-1], EndLine)


async def test_those_who_follow_with_a_name_are_in_everyones_overview(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        headers = {CONSOLE_HEADER: "c1", ORIGIN_HEADER: "ana@\u202elaptop".encode().decode("latin-1"), READ_ONLY_HEADER: "1"}
        async with rig.asker(**headers) as reader, rig.asker() as nameless:
            lines = reader.lines()
            (first,) = await take(lines, 1)
            assert isinstance(first, OverviewLine)
            await take(nameless.lines(), 1)
            (console,) = await consoles(rig, asker_overview := (await asker.get("/v1/overview")).as_a(Overview))
            assert first.overview.consoles == asker_overview.consoles
            assert console.read_only
            assert "ana@\\xe2\\x80\\xaelaptop (process " in console.origin
        await rig.until_connections(1)
        assert (await asker.get("/v1/overview")).as_a(Overview).consoles == ()


async def consoles(rig: ServerRig, overview: Overview) -> tuple[ConsoleView, ...]:
    assert (await rig.client.overview()).consoles == ()
    return overview.consoles


async def test_a_console_that_comes_back_is_there_once_and_since_it_first_came(tmp_path: Path) -> None:
    named = {CONSOLE_HEADER: "c1"}
    async with served(tmp_path) as rig, rig.asker() as asker, rig.asker(**named) as first, rig.asker(**named) as again:
        await take(first.lines(), 1)
        (console,) = (await asker.get("/v1/overview")).as_a(Overview).consoles
        await take(again.lines(), 1)
        first.cut()
        await rig.until_connections(2)
        assert (await asker.get("/v1/overview")).as_a(Overview).consoles == (console,)


# --- what a real engine does too seldom ----------------------------------------------------------------------------------------


async def test_a_stream_with_nothing_to_tell_says_that_it_lives(tmp_path: Path) -> None:
    script = Script()
    async with serving_script(script, tmp_path, Bounds(beat_s=0.01)) as scene:
        reader = await scene.connect()
        lines = await take(reader.lines(), 3)
        assert [type(line) for line in lines] == [OverviewLine, BeatLine, BeatLine]


async def test_a_reader_that_falls_behind_is_told_of_the_gap_and_begins_anew(tmp_path: Path) -> None:
    script = Script()
    async with serving_script(script, tmp_path, SMALL) as scene:
        reader, quick = await scene.connect(), await scene.connect()
        lines, quick_lines = reader.lines(), quick.lines()
        await take(lines, 1)
        await take(quick_lines, 1)
        kept_up = 0
        for _ in range(300):  # far more than both sockets hold
            script.publish(5, padding="x" * 10_000)
            kept_up += len(seqs(await take(quick_lines, 5)))
        assert kept_up == 1500
        script.publish(1)
        seen: list[StreamLine] = []
        async with asyncio.timeout(30):
            async for line in lines:
                seen.append(line)
                if seqs([line]) == [1501] or (isinstance(line, OverviewLine) and line.overview.position.seq == 1501):
                    break
        kinds = [type(line) for line in seen]
        assert kinds.count(GapLine) >= 1
        assert all(kinds[at + 1] is OverviewLine for at, kind in enumerate(kinds) if kind is GapLine)
        assert seqs(seen) == sorted(set(seqs(seen)))


async def test_a_reader_that_stops_reading_is_dropped(tmp_path: Path) -> None:
    script = Script()
    async with serving_script(script, tmp_path, Bounds(stall_s=0.05, beat_s=60.0)) as scene:
        reader = await scene.connect()
        reader.writer.transport.pause_reading()  # type: ignore[attr-defined]
        reader.begin("GET", "/v1/events")
        async with asyncio.timeout(30):
            while scene.connections() != 1:
                await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
            while scene.connections():
                script.publish(20, padding="x" * 10_000)
                await asyncio.sleep(0.01)  # noqa: TID251 - the others' turn


async def test_a_gap_of_the_engines_own_is_handed_on(tmp_path: Path) -> None:
    script = Script()
    async with serving_script(script, tmp_path, SMALL) as scene:
        reader = await scene.connect()
        lines = reader.lines()
        await take(lines, 1)
        script.position = Position(ENGINE, 1, 50)
        script.tell(Gap(script.position))
        gap, anew = await take(lines, 2)
        assert gap == GapLine(Position(ENGINE, 1, 50))
        assert isinstance(anew, OverviewLine)
        script.publish()
        assert seqs(await take(lines, 1)) == [51]


@pytest.mark.parametrize(("after", "from_store"), [(95, False), (90, False), (89, True), (3, True)])
async def test_a_place_that_is_kept_here_is_not_asked_of_the_engine(tmp_path: Path, after: int, from_store: bool) -> None:
    script = Script()
    async with serving_script(script, tmp_path, SMALL) as scene:
        script.publish(100)
        reader = await scene.connect()
        lines = await all_of(reader.lines(f"/v1/events?follow=false&after={ENGINE}:1:{after}"))
        assert seqs(lines) == list(range(after + 1, 101))
        assert (len(script.asked_after) == 2) is from_store


async def test_forty_eight_readers_all_read_everything(tmp_path: Path) -> None:
    script = Script()
    async with serving_script(script, tmp_path) as scene:
        readers = [await scene.connect() for _ in range(48)]
        streams = [reader.lines() for reader in readers]
        for lines in streams:
            await take(lines, 1)
        for _ in range(10):
            script.publish(50)
            for lines in streams:
                await take(lines, 50)
        assert len(script.asked_after) == 1
