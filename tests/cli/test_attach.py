"""The console on a running engine, on real terminals: opened, left, cut off and come back, alone and beside another one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psutil
import pytest

from malbox_tui.cli.attach import _hello
from malbox_tui.engine.clock import SystemClock
from malbox_tui.model.errors import Disconnected
from malbox_tui.remote import client as remote_client
from malbox_tui.remote.client import RemoteClient, SocketWay
from tests.cli.service_rig import Serving
from tests.cli.terminal_rig import Terminal, made, malbox
from tests.confine.rig import write_plugin
from tests.remote.rig import served as serving_here
from tests.remote.ssh_rig import PROGRAM, ssh_host
from tests.tui.pty_console import PtyConsole

pytestmark = pytest.mark.slow

RIGHT, ENTER = b"\x1b[C", b"\r"
EMPTY = "No task yet"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text("[analysis]\ncancel_grace_s = 0.2\n[general]\nmax_workers = 1\n")
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "sample-1.txt"
    path.write_text("harmless\n")
    return path


@pytest.fixture
def service(data: Path) -> Iterator[Serving]:
    """An engine that is served."""
    with Serving(data) as serving:
        serving.until("Serving at")
        yield serving


def attached(data: Path, *arguments: str | Path) -> PtyConsole:
    return PtyConsole("malbox_tui", "--data-dir", data, *arguments, size=(240, 45))


def states(data: Path) -> list[str]:
    listed = subprocess.run([*map(str, malbox(data, "tasks", "--json"))], stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line)["state"] for line in listed.splitlines()]


def left(console: PtyConsole) -> int:
    return console.press(b"q").ended()


# --- opened and left -----------------------------------------------------------------------------------------------------------


def test_leaving_asks_nothing_and_stops_nothing(service: Serving, data: Path) -> None:
    with attached(data, "attach") as console:
        console.until(", attached", "queue 0")
        assert left(console) == 0
    assert service.process.poll() is None
    with Terminal(malbox(data, "attach")) as terminal:
        terminal.until(EMPTY)
        terminal.press(b"q")
        assert terminal.ended() == 0
        assert terminal.after_screen == f"The engine goes on; `malbox-tui attach --data-dir {data}` attaches again.\r\n"
        terminal.assert_as_before()


def test_a_socket_and_a_data_folder_are_targets(service: Serving, data: Path) -> None:
    for target in (data, data / "control.sock"):
        with attached(data.parent / "other", "attach", target) as console:
            console.until(", attached", "queue 0")
            assert left(console) == 0


def test_a_console_on_a_served_data_folder_attaches_and_adds_its_paths(service: Serving, data: Path, sample: Path) -> None:
    with attached(data, sample) as console:
        console.until(", attached", "sample-1.txt", "completed")
        assert left(console) == 0
    assert service.process.poll() is None
    assert states(data) == ["completed"]


@pytest.mark.parametrize(
    ("target", "sentence"), [("nowhere", "there is no socket"), ("ssh://-oProxyCommand=id", "no place to attach to")]
)
def test_what_there_is_nothing_to_attach_to_is_told_before_the_screen(data: Path, target: str, sentence: str) -> None:
    with Terminal(malbox(data, "attach", target if "://" in target else data / target)) as terminal:
        assert terminal.ended() == 2
        assert sentence in terminal.shown
        terminal.assert_untouched()


async def test_of_an_engine_that_hangs_it_is_not_said_that_there_is_none(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_client, "HELLO_S", 0.05)
    path = data / "control.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        client = RemoteClient(SocketWay(str(path)), SystemClock())
        with pytest.raises(Disconnected, match=r"no answer came within 0\.05 s\. Look what holds it up"):
            await _hello(client, "sbx-01")
    with pytest.raises(Disconnected, match=r"the engine was ended\. `malbox-tui serve` there starts an engine"):
        await _hello(client, "sbx-01")


def test_a_signal_ends_the_console_alone(service: Serving, data: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        with Terminal(malbox(data, "attach")) as terminal:
            terminal.until(EMPTY)
            terminal.send(number)
            assert terminal.ended() == 128 + number
            assert terminal.after_screen.startswith(f"Ended by {number.name}: the engine goes on")
    assert service.process.poll() is None


def test_where_says_whether_an_engine_answers(service: Serving, data: Path) -> None:
    found = json.loads(subprocess.run([*map(str, malbox(data, "where", "--json"))], stdout=subprocess.PIPE, check=True).stdout)
    assert (found["running"], found["socket"]) == (True, str(data / "control.sock"))
    service.send(signal.SIGINT)
    service.ended()
    asked = subprocess.run([*map(str, malbox(data, "where"))], stdout=subprocess.PIPE, check=False, text=True)
    assert asked.returncode == 1
    assert "No engine: there is no socket" in asked.stdout


# --- working -------------------------------------------------------------------------------------------------------------------


def test_what_is_dropped_is_uploaded_from_where_the_console_runs(service: Serving, data: Path, sample: Path) -> None:
    with attached(data, "attach") as console:
        console.until(", attached", "queue 0", EMPTY)
        console.press(b"\x1b[200~" + os.fsencode(sample) + b"\x1b[201~").until("Add 1 file").press(ENTER).until(
            "sample-1.txt", "completed"
        )
        assert left(console) == 0


def test_one_who_may_only_look_changes_nothing(service: Serving, data: Path, sample: Path) -> None:
    with attached(data, "attach", "--read-only") as console:
        console.until("attached, read-only", EMPTY)
        console.press(b"p").until("This console may only look")
        console.press(b"\x1b[200~" + os.fsencode(sample) + b"\x1b[201~").until("1 path not added")
        assert left(console) == 0
    assert states(data) == []


def test_two_consoles_see_each_other_and_the_same_tasks(service: Serving, data: Path, sample: Path) -> None:
    with attached(data, "attach") as first, attached(data, "attach", "--read-only") as second:
        first.until(", attached", EMPTY)
        second.until("attached, read-only", "2 consoles")
        first.press(b"\x1b[200~" + os.fsencode(sample) + b"\x1b[201~").until("Add 1 file").press(ENTER).until(
            "sample-1.txt", "completed", "2 consoles"
        )
        second.until("sample-1.txt", "completed")
        first.press(b"p").until("PAUSED")
        second.until("PAUSED").press(b"u").until("this one included", "read-only")
        second.press(ENTER).until("PAUSED", gone="this one included")
        assert left(second) == 0
        first.until("PAUSED", gone="2 consoles")
        assert left(first) == 0


def test_a_killed_engine_is_told_waited_for_and_gone_on_with(data: Path, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "sample-2.txt").write_text("harmless too\n")
    with Serving(data) as service, ExitStack() as at_the_end:
        service.until("Serving at")
        console = at_the_end.enter_context(attached(data, "attach"))
        console.until(", attached", EMPTY)
        console.press(b"\x1b[200~" + os.fsencode(sample) + b"\x1b[201~").until("Add 1 file").press(ENTER).until(
            "sample-1.txt", "completed"
        )
        service.process.kill()
        service.process.wait()
        console.until("NOT CONNECTED", "what you see is of then", "sample-1.txt")
        console.press(b"p").until("this key needs the engine")
        (data.parent / f"{data.name}.notify").unlink()
        with Serving(data) as again:
            again.until("Serving at")
            console.until("attached", "started again", gone="NOT CONNECTED")
            other = os.fsencode(tmp_path / "sample-2.txt")
            console.press(b"\x1b[200~" + other + b"\x1b[201~").until("Add 1 file").press(ENTER).until("sample-2.txt", "✓ 2")
            assert left(console) == 0
    assert states(data) == ["completed", "completed"]


# --- over ssh ------------------------------------------------------------------------------------------------------------------


@pytest.mark.needs("sshd")
def test_attach_work_be_cut_come_back_and_leave_nothing_behind(
    service: Serving, data: Path, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_host(tmp_path / "ssh") as host:
        monkeypatch.setenv("PATH", host.environment["PATH"])
        target = f"ssh://sbx{data}"
        with attached(tmp_path / "here", "attach", "--remote-program", PROGRAM, target) as console:
            console.until(", attached", EMPTY)
            console.press(b"\x1b[200~" + os.fsencode(sample) + b"\x1b[201~").until("Add 1 file").press(ENTER).until(
                "sample-1.txt", "completed"
            )
            host.stop()
            console.until("NOT CONNECTED", "ssh can't get to sbx")
            host.start()
            console.until(", attached", "sample-1.txt", gone="NOT CONNECTED")
            console.press(b"p").until("PAUSED")
            children = psutil.Process(console._process.pid).children(recursive=True)
            assert any("ssh" in child.name() for child in children)
            assert left(console) == 0
            assert not [child for child in children if child.is_running()]
    assert service.process.poll() is None


@pytest.mark.needs("sshd")
def test_ssh_asks_before_the_screen_is_opened(service: Serving, data: Path, tmp_path: Path) -> None:
    with ssh_host(tmp_path / "ssh") as host:
        command = malbox(tmp_path / "here", "attach", "--remote-program", PROGRAM, f"ssh://newcomer{data}")
        with Terminal(command, host.environment) as terminal:
            terminal.until("Are you sure you want to continue connecting")
            assert b"\x1b" not in terminal.output
            terminal.press(b"yes\n")
            terminal.until(EMPTY)
            terminal.press(b"q")
            assert terminal.ended() == 0
            terminal.assert_as_before()
        with Terminal(malbox(tmp_path / "here", "attach", f"ssh://stranger{data}"), host.environment) as terminal:
            assert terminal.ended() == 2
            assert "ssh can't get to stranger" in terminal.shown
            terminal.assert_untouched()


@pytest.mark.needs("sshd")
def test_it_can_be_left_at_once_while_ssh_hangs(
    service: Serving, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_host(tmp_path / "ssh") as host:
        monkeypatch.setenv("PATH", host.environment["PATH"])
        with attached(tmp_path / "here", "attach", "--remote-program", PROGRAM, f"ssh://sbx{data}") as console:
            console.until(", attached", EMPTY)
            (host.folder / "bin" / "ssh").write_text(f"#!/bin/sh\ntouch {tmp_path}/hangs\nexec sleep 600\n")
            host.stop()
            console.until("NOT CONNECTED", "trying again now")
            while not (tmp_path / "hangs").exists():
                console.until("NOT CONNECTED")
            children = psutil.Process(console._process.pid).children(recursive=True)
            assert left(console) == 0
            assert not [child for child in children if child.is_running()]


# --- into the background -------------------------------------------------------------------------------------------------------


def test_a_console_with_the_pool_inside_leaves_it_running_in_the_background(data: Path, sample: Path, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "time.sleep(600)")
    pid = 0
    try:
        with Terminal(made("slow", tmp_path / "plugins", data, sample)) as terminal:
            terminal.until("sample-1.txt", "running")
            terminal.press(b"q")
            terminal.until("Leave the pool running in the background")
            terminal.press(RIGHT * 3 + ENTER)
            assert terminal.ended() == 0
            said = terminal.after_screen
            assert said.startswith("The pool goes on in the background (process ")
            assert f"`malbox-tui --data-dir {data}` comes back to it" in said
            pid = int(said.partition("(process ")[2].partition(")")[0])
            terminal.assert_as_before()
        assert psutil.Process(pid).terminal() is None
        assert os.getsid(pid) == pid
        with attached(data) as console:
            console.until(", attached", "sample-1.txt", "completed")
            assert left(console) == 0
    finally:
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            psutil.wait_procs([process for process in psutil.process_iter() if process.pid == pid], timeout=60)
    assert states(data) == ["completed"]


async def test_an_engine_of_another_version_is_told_with_what_to_do(tmp_path: Path) -> None:
    async with serving_here(tmp_path / "data") as rig:
        with closing(RemoteClient(SocketWay(str(rig.socket)), SystemClock())) as client:
            (note,) = await _hello(client, "sbx-01")
    assert note.startswith("The engine is malbox-tui 1.2.3, this console ")
    assert note.endswith("they understand each other; upgrade the older one.")


def test_stdout_that_is_no_terminal_is_refused() -> None:
    done = subprocess.run([sys.executable, "-m", "malbox_tui", "attach"], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"needs a terminal on stdout" in done.stderr
