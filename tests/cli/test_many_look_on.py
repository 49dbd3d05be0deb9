"""As many as look on at once while much happens: each is told everything, in its order, and one that stops reading harms nobody."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from malbox_tui.model.events import Gap
from malbox_tui.model.submission import Accepted
from malbox_tui.remote.socket_file import connected as connection_to
from tests.cli.service_rig import Serving
from tests.cli.test_killed_under_load import Follower, connected, submit
from tests.confine.rig import write_plugin
from tests.tui.pty_console import PtyConsole

pytestmark = pytest.mark.slow

FILES = 300
FOLLOWERS = 48


async def test_forty_eight_clients_and_two_consoles_are_told_everything(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    write_plugin(tmp_path / "plugins", "return None")
    followers = [Follower(data, number) for number in range(FOLLOWERS)]
    async with AsyncExitStack() as at_the_end:
        service = at_the_end.enter_context(Serving(data, plugins=tmp_path / "plugins"))
        await asyncio.to_thread(service.until, "Serving at")
        deaf = at_the_end.enter_context(connection_to(data / "control.sock"))
        deaf.sendall(b"GET /v1/events?follow=true HTTP/1.1\r\nhost: x\r\nmalbox-console: deaf\r\n\r\n")
        consoles = [
            at_the_end.enter_context(PtyConsole("malbox_tui", "--data-dir", data, "attach", size=(200, 40))) for _ in range(2)
        ]
        group = await at_the_end.enter_async_context(asyncio.TaskGroup())
        for follower in followers:
            at_the_end.callback(follower.client.close)
        following = [group.create_task(follower.follow()) for follower in followers]
        await connected(followers, 1)
        for console in consoles:
            await asyncio.to_thread(console.until, f"{FOLLOWERS + len(consoles) + 1} consoles")
        receipts = await submit(followers[0].client, range(FILES))
        for follower in followers:
            await follower.until_ended(FILES)
        for console in consoles:
            await asyncio.to_thread(console.until, f"✓ {FILES}")
        for task in following:
            task.cancel()
    assert len([receipt for receipt in receipts if isinstance(receipt, Accepted)]) == FILES
    seqs = {tuple(follower.seqs()) for follower in followers}
    assert len(seqs) == 1, "each is told the same"
    (told,) = seqs
    assert list(told) == sorted(set(told))
    for follower in followers:
        assert set(follower.ended().values()) == {1}
        assert not [item for item in follower.told if isinstance(item, Gap)]
