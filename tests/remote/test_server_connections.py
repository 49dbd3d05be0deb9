"""Connections: who may, how many, how slow, and what is no HTTP."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from malbox_tui.model.queries import TaskPage, TaskRecord
from malbox_tui.model.sample import Sample
from malbox_tui.model.task import Task
from malbox_tui.remote.bounds import Bounds
from malbox_tui.remote.peers import Admission, Peer, PeerBook
from tests.remote.asker import Asker, flooded
from tests.remote.fakes import Script, serving_script

QUICK = Bounds(header_s=0.05, body_s=0.05, stall_s=0.05, idle_s=1)
HEALTH = b"GET /health HTTP/1.1\r\nhost: engine\r\n\r\n"
HEALTH_ONCE = HEALTH.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")


async def cut_off(asker: Asker) -> bool:
    async with asyncio.timeout(30):
        try:
            return await asker.reader.read() == b""
        except ConnectionError:
            return True


# --- slowness ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"", b"GET", b"GET /health HTTP/1.1\r\n", b"\r\n\r\n", b"GET /health HTTP/1.1\r\nx: 1\r\n"])
async def test_a_request_that_doesnt_name_itself_in_time_is_cut(tmp_path: Path, said: bytes) -> None:
    async with serving_script(Script(), tmp_path, QUICK) as scene:
        asker = await scene.connect()
        asker.writer.write(said)
        assert (await asker.reply()).problem == (408, "too_slow")
        assert await cut_off(asker)


@pytest.mark.parametrize("drop", [b"\r\n", b"x: y\r\n"])
async def test_a_header_that_drips_is_no_request(tmp_path: Path, drop: bytes) -> None:
    async with serving_script(Script(), tmp_path, QUICK) as scene:
        asker = await scene.connect()
        if drop != b"\r\n":
            asker.writer.write(b"GET /health HTTP/1.1\r\n")
        await until(lambda: scene.connections() == 1)
        while scene.connections():
            asker.writer.write(drop)
            await asyncio.sleep(0.01)  # noqa: TID251 - a slow sender


async def test_between_two_requests_dripping_helps_as_little(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path, QUICK) as scene:
        asker = await scene.connect()
        assert (await asker.get("/health")).status == 200
        asker.writer.write(b"GET /hea")
        assert (await asker.reply()).problem == (408, "too_slow")


async def test_json_that_doesnt_come_is_not_waited_for(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path, QUICK) as scene:
        asker = await scene.connect()
        asker.begin("POST", "/v1/commands", {"content-type": "application/json", "content-length": "100"})
        asker.writer.write(b'{"action"')
        assert (await asker.reply()).problem == (408, "too_slow")
        assert await cut_off(asker)


async def test_one_who_takes_nothing_of_a_large_answer_is_cut(tmp_path: Path) -> None:
    script = Script()
    task = Task(id=1, sha256="0", created_at=0.0, stage_since=0.0, reason="x" * 1_000_000)
    record = TaskRecord(task, Sample(sha256="0", size_bytes=1, first_seen_at=0.0))
    script.page = TaskPage(rows=(record,), total=1, offset=0, clock=0.0)
    async with serving_script(script, tmp_path, QUICK) as scene:
        asker = await scene.connect()
        asker.writer.transport.pause_reading()  # type: ignore[attr-defined]
        asker.begin("GET", "/v1/tasks")
        await until(lambda: scene.connections() == 1)
        await until(lambda: scene.connections() == 0)
        asker.cut()


async def until(happens: object) -> None:
    async with asyncio.timeout(30):
        while not happens():  # type: ignore[operator]
            await asyncio.sleep(0)  # noqa: TID251 - one step of the loop


# --- size and form -------------------------------------------------------------------------------------------------------------


async def test_large_headers_are_refused(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path) as scene:
        for field in (b"x: " + b"y" * 70_000, b"\r\n".join(b"x%d: yyyyyyyyyy" % number for number in range(5000))):
            asker = await scene.connect()
            asker.writer.write(b"GET /health HTTP/1.1\r\n" + field + b"\r\n\r\n")
            assert (await asker.reply()).problem == (431, "headers_too_large")


async def test_headers_without_end_are_not_kept(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path) as scene:
        answer = await asyncio.to_thread(flooded, scene.path, b"GET /health HTTP/1.1\r\nx: ", b"y" * 65536)
        assert b"431 Request Header Fields Too Large" in answer


async def test_trailers_without_end_are_not_kept(tmp_path: Path) -> None:
    head = b"POST /v1/commands HTTP/1.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    async with serving_script(Script(), tmp_path) as scene:
        await asyncio.to_thread(flooded, scene.path, head, b"x: %s\r\n" % (b"y" * 60_000))


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET \xff HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        b"POST /v1/commands HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"GET /health HTTP/1.1\r\nx\x00y: 1\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_told_so(tmp_path: Path, said: bytes) -> None:
    async with serving_script(Script(), tmp_path) as scene:
        asker = await scene.connect()
        asker.writer.write(said)
        assert (await asker.reply()).problem == (400, "malformed")
        assert await cut_off(asker)


async def test_an_upgrade_is_not_offered(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path) as scene:
        asker = await scene.connect()
        reply = await asker.get("/health", connection="upgrade", upgrade="websocket")
        assert reply.status == 200


async def test_requests_that_are_sent_together_are_answered_in_order(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path) as scene:
        asker = await scene.connect()
        for target in ("/health", "/nowhere", "/health"):
            asker.begin("GET", target)
        assert [(await asker.reply()).status for _ in range(3)] == [200, 404, 200]


async def test_more_of_them_than_make_sense_cut_the_connection(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path) as scene:
        asker = await scene.connect()
        asker.writer.write(HEALTH * 2000)
        assert (await asker.reader.read()).count(b"HTTP/1.1 200") < 2000


async def test_a_head_request_is_answered_without_a_body(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path) as scene:
        asker = await scene.connect()
        for target in ("/v1/overview", "/v1/events", "/metrics"):
            asker.begin("HEAD", target)
            assert (await asker.reply_head())[0] == 200
        assert (await asker.get("/health")).status == 200


# --- how many ------------------------------------------------------------------------------------------------------------------


async def test_one_too_many_is_told_so_and_there_is_room_when_one_leaves(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path, Bounds(connections=3, told=2)) as scene:
        askers = [await scene.connect() for _ in range(3)]
        for asker in askers:
            assert (await asker.get("/health")).status == 200
        refused, told, cut = [await scene.connect() for _ in range(3)]
        assert (await refused.get("/health")).problem == (503, "too_many_connections")
        assert await cut_off(refused)
        assert (await told.get("/health")).problem == (503, "too_many_connections")
        for asker in (*askers, refused, told, cut):
            asker.cut()
        await until(lambda: scene.connections() == 0)
        assert (await (await scene.connect()).get("/health")).status == 200


async def test_far_too_many_are_cut_and_the_others_are_served_on(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path, Bounds(connections=1, told=1)) as scene:
        first = await scene.connect()
        assert (await first.get("/health")).status == 200
        more = [await scene.connect() for _ in range(30)]
        assert sum([await cut_off(asker) for asker in more[1:]]) == 29
        assert (await first.get("/health")).status == 200


@pytest.mark.slow
async def test_ten_thousand_connections_opened_and_dropped_leave_nothing(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path) as scene:
        path = tmp_path / "control.sock"
        descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        for number in range(10_000):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.setblocking(False)
            try:
                connection.connect(str(path))
                if number % 3:
                    connection.send(HEALTH[: number % len(HEALTH)])
            except BlockingIOError:
                pass  # the backlog is full
            connection.close()
            if not number % 100:
                await asyncio.sleep(0)  # noqa: TID251 - the server's turn
        await until(lambda: scene.connections() == 0)
        asker = await scene.connect()
        assert (await asker.get("/health")).status == 200
        asker.cut()
        await until(lambda: scene.connections() == 0)
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 1  # noqa: PTH208


# --- who -----------------------------------------------------------------------------------------------------------------------


def test_owner_root_and_members_of_the_group_may() -> None:
    def may(uid: int, *groups: int, gid: int | None = None) -> bool:
        return Admission(1000, gid).admits(Peer(uid, frozenset(groups), 1, "x"))

    assert may(1000)
    assert may(0)
    assert not may(1001, 50)
    assert may(1001, 7, 50, gid=50)
    assert not may(1001, 7, gid=50)


def test_the_kernel_says_who_is_there() -> None:
    here, there = socket.socketpair()
    with here, there:
        peer = PeerBook().peer_of(here)
    assert (peer.uid, peer.pid) == (os.getuid(), os.getpid())
    assert peer.groups == {os.getgid(), *os.getgroups()}


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="takes root, to become someone else")
async def test_a_foreign_user_is_refused_even_when_the_file_lets_him_in(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path):
        (tmp_path / "control.sock").chmod(0o666)
        open_the_way(tmp_path)
        problem = await asyncio.to_thread(asked_as, 65534, 65534, tmp_path / "control.sock")
        assert b"403 Forbidden" in problem
        assert b'"foreign_user"' in problem


def open_the_way(folder: Path) -> None:
    for parent in (folder, *folder.parents):
        if str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o011)


def asked_as(uid: int, gid: int, path: Path) -> bytes:
    """What a process of that user is answered."""
    code = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        f"s.sendall({HEALTH_ONCE!r})\nsys.stdout.buffer.write(s.makefile('rb').read())"
    )
    who = (f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
    return subprocess.run(["setpriv", *who, "/usr/bin/python3", "-c", code, str(path)], capture_output=True, check=False).stdout
