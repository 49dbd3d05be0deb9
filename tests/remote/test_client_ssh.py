"""The way through ssh, over a real sshd: attach, work, be cut, come back, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from malbox_tui.engine.clock import SystemClock
from malbox_tui.model.errors import EngineMismatch, MalboxError
from malbox_tui.model.events import Event, TaskCreated
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.remote.client import RemoteClient
from malbox_tui.remote.contact import BackOff
from malbox_tui.remote.ssh_target import SshTarget, quoted
from malbox_tui.remote.tunnel import Tunnel
from malbox_tui.remote.wire import ConnectionLost
from tests.remote.rig import served
from tests.remote.ssh_rig import PROGRAM, SshRig, ssh_host

needs_sshd = [pytest.mark.slow, pytest.mark.needs("sshd")]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshRig]:
    with ssh_host(tmp_path / "ssh") as rig:
        monkeypatch.setenv("PATH", rig.environment["PATH"])
        yield rig


def ours() -> list[psutil.Process]:
    """Children of this process that are ssh."""
    return [child for child in psutil.Process().children(recursive=True) if "ssh" in child.name() and "sshd" not in child.name()]


async def offers(*contents: bytes) -> AsyncIterator[Offer]:
    async def chunks(content: bytes) -> AsyncIterator[bytes]:
        yield content

    for content in contents:
        yield Offer(SampleName(content), content=chunks(content))


def program(folder: Path, script: str) -> str:
    """A program of the other host."""
    path = folder / "malbox-there"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


# --- targets -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("ssh://sbx-01", SshTarget("sbx-01")),
        ("ssh://ana@sbx-01:2222", SshTarget("sbx-01", "ana", 2222)),
        ("ssh://sbx/srv/malbox", SshTarget("sbx", folder="/srv/malbox")),
        ("ssh://sbx/", SshTarget("sbx")),
        ("ssh://sbx/a%20b/%C3%BC", SshTarget("sbx", folder="/a b/ü")),
        ("ssh://[::1]:22/x", SshTarget("::1", port=22, folder="/x")),
        ("ssh://[fe80::1%25eth0]", SshTarget("fe80::1%eth0")),
    ],
)
def test_a_target_is_read(text: str, target: SshTarget) -> None:
    assert SshTarget.parse(text) == target


@pytest.mark.parametrize(
    "text",
    [
        "ssh://-oProxyCommand=touch$IFS/tmp/x",
        "ssh://-oProxyCommand=id/",
        "ssh://ana@-oProxyCommand=id",
        "ssh://-lroot@sbx",
        "ssh://$(id)",
        "ssh://`id`@sbx",
        "ssh://a;b",
        "ssh://a b",
        "ssh://a\nb",
        "ssh://sbx:0",
        "ssh://sbx:65536",
        "ssh://sbx:-1",
        "ssh://",
        "ssh://@sbx",
        "ssh:sbx",
        "ssh://sbx/a%00b",
        "ssh://'sbx'",
        "ssh://[::1",
    ],
)
def test_a_hostile_or_broken_target_is_refused(text: str) -> None:
    with pytest.raises(MalboxError, match=r"ssh://\[user@\]host|NUL"):
        SshTarget.parse(text)


@pytest.mark.parametrize(
    ("path", "word"),
    [("/srv/x", "/srv/x"), ("/a b", "'/a b'"), ("/$(id)", "'/$(id)'"), ("/~/x y", "~/'x y'"), ("~/x", "~/x"), ("a;b", "'a;b'")],
)
def test_a_path_is_one_word_of_the_shell_there(path: str, word: str) -> None:
    assert quoted(path) == word


# --- over a real sshd ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def tunnel(host: SshRig, tmp_path: Path) -> AsyncIterator[Tunnel]:
    """Open, to an engine in this process."""
    async with served(tmp_path / "data"):
        way = Tunnel(SshTarget.parse(f"ssh://sbx{tmp_path}/data"), str(PROGRAM))
        try:
            found = await asyncio.to_thread(way.open, may_ask=False)
            assert (found.running, found.socket) == (True, str(tmp_path / "data" / "control.sock"))
            yield way
        finally:
            way.close()
    assert ours() == []


def client(way: Tunnel, **given: Any) -> RemoteClient:
    return RemoteClient(way, SystemClock(), stays=True, back_off=BackOff(0.05, 0.05), **given)


class TestOverSsh:
    pytestmark = needs_sshd

    async def test_an_engine_on_another_host_is_asked_and_given_samples(self, tunnel: Tunnel) -> None:
        with closing(client(tunnel)) as remote:
            account = await remote.submit(offers(*(b"%d" % number for number in range(20))), SubmissionOptions())
            assert len(account.accepted) == 20
            assert (await remote.health()).protocol == 1

    async def test_a_cut_connection_is_opened_again_and_nothing_is_lost(self, tunnel: Tunnel, host: SshRig) -> None:
        with closing(client(tunnel)) as remote:
            before = await remote.overview()
            async with asyncio.timeout(120), aclosing(cast(Any, remote.events(before.position))) as events:
                await remote.submit(offers(b"one"), SubmissionOptions())
                assert await _created(events) == 1
                host.stop()
                async with asyncio.TaskGroup() as beside:
                    second = beside.create_task(_created(events))
                    while remote.away is None or "ssh can't get to sbx" not in remote.away.problem:
                        await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
                    host.start()
                    while remote.away is not None:
                        await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
                    await remote.submit(offers(b"two"), SubmissionOptions())
                assert second.result() == 2
            assert len(ours()) == 1

    async def test_closing_leaves_no_process_and_no_file(self, tunnel: Tunnel) -> None:
        folder = Path(await tunnel.reach()).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert ours()
        tunnel.close()
        tunnel.close()
        assert ours() == []
        assert not folder.exists()

    async def test_killing_the_console_takes_its_ssh_with_it(self, tunnel: Tunnel, tmp_path: Path) -> None:
        script = (
            "import sys; from malbox_tui.remote.tunnel import Tunnel; from malbox_tui.remote.ssh_target import SshTarget\n"
            f"t = Tunnel(SshTarget.parse('ssh://sbx{tmp_path}/data'), {str(PROGRAM)!r}); t.open(may_ask=False)\n"
            "print('open', flush=True); sys.stdin.read()"
        )
        console = await asyncio.to_thread(
            subprocess.Popen, [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert console.stdout is not None
        assert console.stdin is not None
        assert await asyncio.to_thread(console.stdout.readline) == b"open\n"
        children = psutil.Process(console.pid).children(recursive=True)
        assert children
        os.kill(console.pid, signal.SIGKILL)
        console.wait()
        _, left = await asyncio.to_thread(psutil.wait_procs, children, 60)
        assert left == []
        console.stdout.close()
        console.stdin.close()

    def test_where_no_engine_runs_that_is_said(self, host: SshRig, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        with pytest.raises(ConnectionLost, match="has malbox-tui, but there is no socket"):
            _opened(f"ssh://sbx{tmp_path}/data", str(PROGRAM))

    def test_where_the_program_is_missing_that_is_said(self, host: SshRig) -> None:
        with pytest.raises(MalboxError, match=r"sbx has no malbox-nowhere, or its shell doesn't find it.*--remote-program"):
            _opened("ssh://sbx", "malbox-nowhere")

    def test_an_older_program_is_told_from_a_missing_one(self, host: SshRig, tmp_path: Path) -> None:
        older = program(tmp_path, "echo \"malbox-tui: \\`malbox-tui\\` has no command 'where'. There are: tasks.\" >&2; exit 2")
        with pytest.raises(EngineMismatch, match=r"is older and can't be attached to\. Upgrade it there"):
            _opened("ssh://sbx", older)

    def test_what_a_shell_prints_before_does_no_harm(self, host: SshRig, tmp_path: Path) -> None:
        noisy = program(tmp_path, 'echo "Welcome to sbx!"; echo "{}"; echo; echo not json at all; exit 3')
        with pytest.raises(MalboxError, match=r"did not say where its engine is: Welcome to sbx!"):
            _opened("ssh://sbx", noisy)

    def test_a_stranger_is_told_what_ssh_says(self, host: SshRig) -> None:
        with pytest.raises(ConnectionLost, match=r"ssh can't get to stranger: .*Permission denied"):
            _opened("ssh://stranger", str(PROGRAM))

    def test_a_host_that_does_not_listen_is_told(self, host: SshRig) -> None:
        host.stop()
        with pytest.raises(ConnectionLost, match=r"ssh can't get to sbx: .*refused"):
            _opened("ssh://sbx", str(PROGRAM))

    def test_one_who_never_ends_talking_is_not_listened_to(self, host: SshRig, tmp_path: Path) -> None:
        with pytest.raises(MalboxError, match="did not say where its engine is"):
            _opened("ssh://sbx", program(tmp_path, "yes nonsense"))


def _opened(target: str, there: str) -> None:
    way = Tunnel(SshTarget.parse(target), there)
    try:
        way.open(may_ask=False)
    finally:
        way.close()
        assert ours() == []


async def _created(events: AsyncIterator[Event]) -> int:
    """The id of the next task that was created."""
    async for event in events:
        if isinstance(event, Event) and isinstance(event.body, TaskCreated):
            return event.body.task_id
    raise AssertionError("the events ended")
