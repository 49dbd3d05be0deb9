"""The commands when something stands in their way: no engine, one that hangs or is another, a folder or streams that are closed."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.remote import client, wire
from malbox_tui.store.folder_lock import FolderLock
from tests.cli.command_line import CommandLine
from tests.cli.terminal_rig import malbox as terminal_command


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_nobody_s_to_ask_and_to_tell(malbox: CommandLine, closed: str) -> None:
    malbox.submit("a", "b")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", f'exec "$@" {closed}', "sh", *map(str, terminal_command(malbox.data, *words))]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    asked, done = run("cancel", "--all"), run("cancel", "--all", "--yes")
    assert (asked.returncode, done.returncode) == (2, 0)
    assert ("no terminal to ask on" in asked.stderr, "Traceback" in asked.stderr) == ("2>" not in closed, False)
    assert malbox.states() == {1: "canceled", 2: "canceled"}


@pytest.mark.parametrize(
    "words",
    [
        ["workers"],
        ["machines"],
        ["machines", "disable", "m1"],
        ["machines", "return", "m1"],
        ["machines", "probe", "m1"],
        ["machines", "remove", "m1"],
        ["machines", "show", "m1"],
        ["machines", "edit", "m1", "tags=office"],
        ["machines", "add", "m9", "--provider", "simulated", "--platform", "linux"],
        ["resize", "--max", "2"],
        ["drain"],
        ["events", "--follow"],
    ],
    ids=" ".join,
)
def test_what_needs_an_engine_says_so(malbox: CommandLine, words: list[str]) -> None:
    malbox.submit("a")
    said = malbox(*words)
    assert (said.code, said.out) == (2, "")
    assert "No engine is served in" in said.err
    assert "malbox-tui serve --data-dir" in said.err


def test_waiting_needs_an_engine_and_takes_nothing_in_without(malbox: CommandLine) -> None:
    assert malbox("submit", "--wait", malbox.sample("a")).code == 2
    assert not malbox.data.exists()


@pytest.mark.parametrize("words", [["cancel", "1"], ["retry", "1"], ["priority", "3", "1"], ["actions"], ["events"], ["stats"]])
def test_a_folder_without_a_store_is_left_without_one(malbox: CommandLine, words: list[str]) -> None:
    said = malbox(*words)
    assert (said.code, "There is no store in" in said.err) == (2, True)
    assert not malbox.data.exists()


def test_a_folder_that_another_process_works_on_is_left_alone(malbox: CommandLine) -> None:
    malbox.submit("a")
    lock = FolderLock(DataFolders.under(malbox.data).root)
    lock.acquire(0.0)
    try:
        for words in (["cancel", 1], ["submit", malbox.sample("b")]):
            said = malbox(*words)
            assert (said.code, "is in use by process" in said.err) == (2, True)
        assert malbox.states() == {1: "pending"}, "looking goes on"
    finally:
        lock.close()


def test_a_folder_that_nobody_can_write_is_looked_at_and_changing_it_is_refused_in_words(malbox: CommandLine) -> None:
    malbox.submit("a", "b")
    with read_only(malbox.data):
        for words in (["tasks"], ["task", 1], ["stats"], ["actions"], ["events"]):
            assert malbox(*words, "--json").code == 0, words
        assert malbox.states() == {1: "pending", 2: "pending"}
        for words in (["cancel", 1], ["submit", malbox.sample("c")], ["serve"]):
            said = malbox(*words)
            assert (said.code, "can't be written" in said.err, "choose another" in said.err) == (2, True, True)
    assert malbox.states() == {1: "pending", 2: "pending"}


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Root may write wherever the mode says that nobody may; on a disk that is mounted so it can't."""
    if os.getuid():
        folder.chmod(0o500)
        (folder / "logs").chmod(0o500)
        yield
        folder.chmod(0o700)
        (folder / "logs").chmod(0o700)
        return
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_socket_that_a_dead_server_left_is_no_engine(malbox: CommandLine) -> None:
    malbox.submit("a")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(malbox.data / "control.sock"))
    assert malbox("cancel", 1).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["cancel", "1"],
        ["submit", "/etc/hostname"],
        ["stats", "--json"],
        ["workers"],
        ["events", "--follow"],
        ["machines", "disable", "m1"],
    ],
    ids=" ".join,
)
def test_of_an_engine_that_hangs_it_is_said_who_is_waited_for_and_it_is_given_up(
    malbox: CommandLine, deaf: None, words: list[str]
) -> None:
    malbox.submit("a")
    with hanging(malbox.data / "control.sock"):
        said = malbox(*words)
    assert (said.code, said.out) == (2, "")
    assert f"Waiting for process {os.getpid()}, the engine at {malbox.data}/control.sock: it doesn't answer." in said.err
    assert "no answer came within 0.05 s. Look what holds it up" in said.err
    assert malbox.states() == {1: "pending"}


def test_where_takes_an_engine_that_hangs_for_none_and_says_why(malbox: CommandLine, deaf: None) -> None:
    malbox.submit("a")
    with hanging(malbox.data / "control.sock"):
        said, record = malbox("where"), malbox("where", "--json").records
    assert (said.code, "No engine: no answer came within 0.05 s." in said.out) == (1, True)
    assert (record[0]["running"], record[0]["problem"]) == (False, "no answer came within 0.05 s")


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is waited for as long as people are."""
    monkeypatch.setattr(client, "HELLO_S", 0.05)
    monkeypatch.setattr(wire, "QUIET_S", 0.0)


@contextmanager
def hanging(path: Path) -> Iterator[None]:
    """A process that listens and never answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield


@pytest.mark.parametrize("words", [["cancel", "1"], ["pause"], ["stats"], ["submit", "/etc/hostname"]], ids=" ".join)
@pytest.mark.parametrize(("protocol", "advice"), [(999, "this malbox-tui is the older one"), (0, "the engine is the older one")])
def test_an_engine_of_another_version_is_left_alone_and_it_is_said_what_to_do(
    malbox: CommandLine, words: list[str], protocol: int, advice: str
) -> None:
    malbox.submit("a")
    with speaking(malbox.data / "control.sock", protocol):
        said = malbox(*words)
    assert (said.code, said.out) == (2, "")
    assert advice in said.err.lower()
    assert malbox.states() == {1: "pending"}


@contextmanager
def speaking(path: Path, protocol: int) -> Iterator[None]:
    """A server of this protocol, which answers each connection once."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    head = f"HTTP/1.1 200 OK\r\nmalbox-protocol: {protocol}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n"
                    connection.sendall(f"{head}{{}}".encode())

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
