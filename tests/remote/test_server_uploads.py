"""Samples over the socket: streamed, bounded, and kept whole or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from malbox_tui.model.intake import LineQuery
from malbox_tui.model.overview import Overview
from malbox_tui.model.submission import Accepted, Receipt
from malbox_tui.model.task import TaskState
from malbox_tui.remote.bounds import Bounds
from tests.remote.asker import Asker, flooded
from tests.remote.fakes import Script, serving_script
from tests.remote.rig import MAX_SAMPLE_BYTES, ServerRig, served

SAMPLES = "/v1/samples?name=x"
QUICK = Bounds(stall_s=0.05)


async def refusals(rig: ServerRig) -> list[tuple[bytes, str]]:
    """The names and codes of what was refused, in all accounts."""
    pages = [await rig.client.intake_lines(LineQuery(intake=view.number)) for view in await rig.client.intakes(None, 100)]
    return [(line.name.name, line.code) for page in pages for line in page.lines]


async def nothing_was_kept(rig: ServerRig) -> bool:
    """No task, no content, and nothing half-written."""
    files = [path for path in rig.folders.quarantine.rglob("*") if path.is_file()]
    return files == [] and sum((await rig.client.overview()).counts.values()) == 0


async def begun(asker: Asker, content: bytes, **headers: str) -> None:
    """An upload of which `content` has come, and more is to come."""
    asker.begin("POST", SAMPLES, headers)
    asker.writer.write(content)
    await asker.writer.drain()


async def test_a_sample_over_the_limit_by_its_own_word_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        await begun(asker, b"", content_length=str(MAX_SAMPLE_BYTES + 1))
        assert (await asker.reply()).problem == (413, "too_large")
        assert await asker.reader.read() == b""
        assert await nothing_was_kept(rig)
        assert await refusals(rig) == [(b"x", "too_large")]


async def test_a_sample_that_doesnt_say_how_large_it_is_is_read_up_to_the_limit(tmp_path: Path) -> None:
    head = f"POST {SAMPLES} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{1 << 40:x}\r\n".encode()
    async with served(tmp_path) as rig:
        answer = await asyncio.to_thread(flooded, rig.socket, head, b"x" * 65536)
        assert b"413 Request Entity Too Large" in answer
        assert b'"code":"too_large"' in answer
        assert await nothing_was_kept(rig)
        assert await refusals(rig) == [(b"x", "too_large")]


@pytest.mark.parametrize("sent", [0, 1, 70_000])
async def test_an_upload_that_is_cut_leaves_nothing(tmp_path: Path, sent: int) -> None:
    async with served(tmp_path) as rig:
        async with rig.asker() as asker:
            await begun(asker, b"x" * sent, content_length="100000")
        await rig.until_connections(0)
        async with rig.asker() as asker:
            # A later request is answered when the cut one is done with.
            assert (await asker.get("/v1/overview")).as_a(Overview).counts[TaskState.PENDING] == 0
        await until(lambda: nothing_was_kept(rig))


async def until(happens: object) -> None:
    async with asyncio.timeout(30):
        while not await happens():  # type: ignore[operator]
            await asyncio.sleep(0)  # noqa: TID251 - one step of the loop


async def test_one_who_sends_too_little_for_too_long_is_told_and_cut(tmp_path: Path) -> None:
    async with served(tmp_path, bounds=QUICK) as rig, rig.asker() as asker:
        await begun(asker, b"x" * 10, content_length="100000")
        assert (await asker.reply()).problem == (408, "too_slow")
        assert await asker.reader.read() == b""
        assert await nothing_was_kept(rig)


async def test_drops_don_t_keep_a_slow_upload_alive(tmp_path: Path) -> None:
    async with served(tmp_path, bounds=QUICK) as rig, rig.asker() as asker:
        await begun(asker, b"", content_length="100000")
        await rig.until_connections(1)
        while rig.connections():
            asker.writer.write(b"x")
            await asyncio.sleep(0.01)  # noqa: TID251 - a slow sender


async def test_while_the_engine_takes_nothing_the_sender_waits(tmp_path: Path) -> None:
    script = Script()
    async with serving_script(script, tmp_path) as scene:
        asker = await scene.connect()
        sent = 0
        await begun(asker, b"", content_length=str(1 << 28))
        script.pulls.release()
        with pytest.raises(TimeoutError):
            while True:
                asker.writer.write(b"x" * 65536)
                sent += 65536
                async with asyncio.timeout(0.3):
                    await asker.writer.drain()
        assert sent < 4 << 20
        assert script.pulled_bytes <= sent
        asker.cut()


async def test_many_small_ones_in_parallel_become_a_task_each(tmp_path: Path) -> None:
    async with served(tmp_path) as rig:

        async def send(sender: int) -> list[int]:
            async with rig.asker() as asker:
                replies = [await asker.upload(f"name={sender}-{number}", b"%d %d" % (sender, number)) for number in range(25)]
            receipts = [reply.as_a(Receipt) for reply in replies]  # type: ignore[arg-type]
            return [receipt.task_id for receipt in receipts if isinstance(receipt, Accepted)]

        async with asyncio.TaskGroup() as senders:
            sending = [senders.create_task(send(sender)) for sender in range(8)]
        task_ids = [task_id for sender in sending for task_id in sender.result()]
        assert sorted(task_ids) == list(range(1, 201))


async def test_a_client_that_waits_to_be_asked_for_the_content_is(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        await begun(asker, b"", content_length="3", expect="100-continue")
        assert (await asker.reply_head())[0] == 100
        asker.writer.write(b"abc")
        assert isinstance((await asker.reply()).as_a(Receipt), Accepted)  # type: ignore[arg-type]


async def test_a_client_that_waits_is_not_asked_for_what_is_too_large(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        await begun(asker, b"", content_length=str(1 << 40), expect="100-continue")
        assert (await asker.reply()).problem == (413, "too_large")


async def test_a_malformed_query_is_refused_before_the_content_is_read(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        for query in ("", "origin=x", "name=", "name=a&priority=x", "name=a&colour=red", "name=a&tag=%ff"):
            assert (await asker.upload(query, b"x")).problem == (400, "malformed"), query
        assert await nothing_was_kept(rig)
