"""A served engine that is killed, twice, while it works and consoles look on: every task is accounted for."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from malbox_tui.engine import clock
from malbox_tui.engine.clock import SystemClock
from malbox_tui.model.errors import Disconnected, EngineStopped
from malbox_tui.model.events import Event, Gap, TaskCreated, TaskEnded
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Accepted, Offer, Receipt, Refused, SubmissionOptions
from malbox_tui.model.task import TaskState
from malbox_tui.remote.client import RemoteClient, SocketWay, Visitor
from tests.cli.service_rig import PATIENCE_S, Serving
from tests.confine.rig import write_plugin
from tests.tui.pty_console import PtyConsole

pytestmark = pytest.mark.slow

FILES = 300
FOLLOWERS = 6
KILLED_AT = (30, 100)
"""After how many ended tasks."""


class Follower:
    """A console without a screen: what it was told, in order."""

    def __init__(self, data: Path, number: int) -> None:
        visitor = Visitor(console=f"follower-{number}", origin="here")
        self.client = RemoteClient(SocketWay(str(data / "control.sock")), SystemClock(), visitor, stays=True)
        self.told: list[Event | Gap] = []
        self.news = asyncio.Event()

    async def follow(self) -> None:
        async for told in self.client.events(None):
            self.told.append(told)
            self.news.set()

    def seqs(self) -> list[int]:
        return [told.position.seq for told in self.told if isinstance(told, Event) and told.durable]

    def ended(self) -> Counter[int]:
        return Counter(told.body.task_id for told in self.told if isinstance(told, Event) and isinstance(told.body, TaskEnded))

    def created(self) -> set[int]:
        return {told.body.task_id for told in self.told if isinstance(told, Event) and isinstance(told.body, TaskCreated)}

    async def until_ended(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.ended()) < count:
                self.news.clear()
                await self.news.wait()


async def connected(followers: list[Follower], contacts: int) -> None:
    """Returns when each of them has made so many connections."""
    async with asyncio.timeout(PATIENCE_S):
        while any(follower.client.contacts < contacts for follower in followers):
            await clock.sleep(0.01)


async def offers(numbers: range) -> AsyncIterator[Offer]:
    for number in numbers:

        async def content(number: int = number) -> AsyncIterator[bytes]:
            yield b"harmless file %d\n" % number

        yield Offer(SampleName(b"file-%d.txt" % number, b"test"), content=content())


async def submit(client: RemoteClient, numbers: range) -> list[Receipt]:
    """The receipts of those that were taken before the connection was lost, if it was."""
    receipts: list[Receipt] = []
    with suppress(Disconnected, EngineStopped):
        await client.submit(offers(numbers), SubmissionOptions(), receipts.append)
    return receipts


def serving(data: Path, plugins: Path) -> Serving:
    (data.parent / f"{data.name}.notify").unlink(missing_ok=True)
    return Serving(data, plugins=plugins)


async def test_consoles_wait_and_go_on_and_every_task_is_accounted_for(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "config.toml").write_text("[general]\nmin_workers = 2\nmax_workers = 2\n[analysis]\nmax_crashes = 10\n")
    write_plugin(tmp_path / "plugins", "return None")
    followers = [Follower(data, number) for number in range(FOLLOWERS)]
    first = followers[0]
    receipts: list[Receipt] = []
    async with AsyncExitStack() as at_the_end:
        service = serving(data, tmp_path / "plugins")
        with service:
            await asyncio.to_thread(service.until, "Serving at")
            consoles = [
                at_the_end.enter_context(PtyConsole("malbox_tui", "--data-dir", data, "attach", size=(200, 40))) for _ in range(2)
            ]
            for console in consoles:
                await asyncio.to_thread(console.until, "attached")
            group = await at_the_end.enter_async_context(asyncio.TaskGroup())
            for follower in followers:
                at_the_end.callback(follower.client.close)
            following = [group.create_task(follower.follow()) for follower in followers]
            await connected(followers, 1)
            sending = group.create_task(submit(first.client, range(FILES)))
            await first.until_ended(KILLED_AT[0])
            service.send(signal.SIGKILL)
            await asyncio.to_thread(service.ended)
            receipts += await sending
            assert len(first.ended()) < FILES, "it was killed too late"
            for console in consoles:
                await asyncio.to_thread(console.until, "NOT CONNECTED")
        with serving(data, tmp_path / "plugins") as again:
            await asyncio.to_thread(again.until, "Serving at")
            for console in consoles:
                await asyncio.to_thread(console.until, "attached", gone="NOT CONNECTED")
            await connected(followers, 2)
            sending = group.create_task(submit(first.client, range(FILES)))
            await first.until_ended(KILLED_AT[1])
            again.send(signal.SIGKILL)
            await asyncio.to_thread(again.ended)
            receipts += await sending
            assert len(first.ended()) < FILES, "it was killed too late"
        with serving(data, tmp_path / "plugins") as last:
            await asyncio.to_thread(last.until, "Serving at")
            for console in consoles:
                await asyncio.to_thread(console.until, "attached", gone="NOT CONNECTED")
            await connected(followers, 3)
            receipts += await submit(first.client, range(FILES))
            for follower in followers:
                await follower.until_ended(FILES)
            page = await first.client.query(TaskQuery(limit=1000))
            for console in consoles:
                await asyncio.to_thread(console.until, f"✓ {FILES}")
            for task in following:
                task.cancel()
    taken = {receipt.task_id for receipt in receipts if isinstance(receipt, Accepted)}
    assert not [receipt for receipt in receipts if isinstance(receipt, Refused) and receipt.refusal.code != "cut"]
    assert {record.task.state for record in page.rows} == {TaskState.COMPLETED}
    assert len(page.rows) == FILES
    assert taken <= {record.task.id for record in page.rows}
    for follower in followers:
        assert follower.seqs() == sorted(set(follower.seqs())), "old news was told as new"
        assert set(follower.ended().values()) == {1}
        assert not [told for told in follower.told if isinstance(told, Gap)]
        assert follower.created() == {record.task.id for record in page.rows}
