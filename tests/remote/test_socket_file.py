"""The socket's file: its mode, its place, and who may take it over."""

from __future__ import annotations

import errno
import grp
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from malbox_tui.model.errors import SocketUnavailable
from malbox_tui.remote.served import Served
from malbox_tui.remote.server import serving
from malbox_tui.remote.socket_file import connected, group_id, listening
from tests.remote.asker import Asker
from tests.remote.fakes import Script, serving_script
from tests.remote.test_server_connections import asked_as, open_the_way


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir(mode=0o700)
    return tmp_path / "data" / "control.sock"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_it_is_for_the_owner_alone_whatever_the_umask(path: Path, umask: int) -> None:
    former = os.umask(umask)
    try:
        with listening(path):
            assert mode(path) == 0o600
            assert mode(path.parent) == 0o700
    finally:
        os.umask(former)


def test_at_the_end_nothing_is_left(path: Path) -> None:
    with listening(path):
        pass
    assert list(path.parent.iterdir()) == []


def test_one_left_by_a_dead_server_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listening(path), connected(path):
        pass


def test_one_of_a_living_server_never_is(path: Path) -> None:
    with listening(path):
        with pytest.raises(SocketUnavailable, match="Another server answers"), listening(path):
            pass
        with connected(path):
            pass


def test_one_whose_queue_is_full_lives(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(str(path))
        busy.listen(0)
        waiting.connect(str(path))
        with pytest.raises(SocketUnavailable, match="Another server answers"), listening(path):
            pass


def test_one_that_another_took_over_meanwhile_is_left_alone(path: Path) -> None:
    with listening(path):
        path.unlink()
        path.write_text("another's")
    assert path.read_text() == "another's"


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("elsewhere")])
def test_what_is_no_socket_is_never_replaced(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    was = path.lstat()
    with pytest.raises(SocketUnavailable, match=r"is no socket.*Move it away"), listening(path):
        pass
    assert path.lstat() == was


def test_what_one_left_that_was_killed_before_it_listened_goes(path: Path) -> None:
    left, other = path.with_name("control.sock.4711"), path.with_name("control.sock.bak")
    for name in (left, other):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(name))
    with listening(path):
        assert not left.exists()
    assert other.exists()


def test_it_is_noticed_when_the_file_is_taken_away_or_another(path: Path) -> None:
    with listening(path) as place:
        assert place.is_kept
        path.unlink()
        assert not place.is_kept
        path.touch()
        assert not place.is_kept


async def test_a_server_goes_on_at_another_place_with_the_connections_it_has(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with ExitStack() as places:
        place = places.enter_context(listening(path))
        async with serving(Served(Script(), "1", lambda: 1), place.listener) as server:
            before = await Asker.connect(path)
            path.unlink()
            await server.listen(places.enter_context(listening(path)).listener)
            after = await Asker.connect(path)
            for asker in (before, after):
                assert (await asker.ask("GET", "/health")).status == 200
                asker.cut()


def test_a_folder_with_a_long_path_will_do(tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 100) / ("b" * 100) / ("c" * 100)
    folder.mkdir(parents=True)
    with listening(folder / "control.sock"), connected(folder / "control.sock"):
        pass


def test_a_group_may_use_it_and_pass_through_the_folder(path: Path) -> None:
    with listening(path, os.getgid()):
        assert mode(path) == 0o660
        assert mode(path.parent) == 0o710
        assert path.stat().st_gid == path.parent.stat().st_gid == os.getgid()


def test_an_unknown_group_is_named() -> None:
    with pytest.raises(SocketUnavailable, match="nobody-has-such-a-group"):
        group_id("nobody-has-such-a-group")
    entry = grp.getgrgid(os.getgid())
    assert group_id(entry.gr_name) == entry.gr_gid


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_what_keeps_it_from_being_made_is_told_with_the_remedy(path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: socket.socket, address: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket.socket, "bind", fails)
    with pytest.raises(SocketUnavailable, match=rf"{os.strerror(number)}\. [A-Z].*\.$"), listening(path):
        pass
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SocketUnavailable, match="No such file"), listening(tmp_path / "none" / "control.sock"):
        pass


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="takes root, to become someone else")
async def test_a_member_of_the_group_is_served_and_sees_nothing_else(path: Path) -> None:
    """65533 is no user; 65534 the group."""
    import asyncio

    secret = path.parent / "malbox.sqlite3"
    secret.write_text("secret")
    secret.chmod(0o600)
    with listening(path, 65534) as place:
        async with serving(Served(Script(), "1", lambda: 1), place.listener, 65534):
            open_the_way(path.parent.parent)
            assert b'"status":"ok"' in await asyncio.to_thread(asked_as, 65533, 65534, path)
            assert await asyncio.to_thread(asked_as, 65533, 65532, path) == b""
            looking = ["setpriv", "--reuid=65533", "--regid=65534", "--clear-groups", "cat", str(secret)]
            assert subprocess.run(looking, capture_output=True, check=False).stdout == b""


async def test_a_server_ends_with_its_socket(tmp_path: Path) -> None:
    async with serving_script(Script(), tmp_path):
        pass
    assert not (tmp_path / "control.sock").exists()
