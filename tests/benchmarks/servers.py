"""Redis and PostgreSQL for as long as a benchmark takes: private sockets and data in a folder that is removed, no port, no
configuration of the host's. They end with the benchmark, also when that is killed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.debian import install

READY_S = 30.0
STOPPED_S = 20.0
LOOK_S = 0.05
LONGEST_SOCKET = 100
"""Of a path, in bytes; the kernel takes 107 (unix(7))."""
POSTGRES = "postgres"
"""The user that PostgreSQL runs as when we are root, whom it refuses; and its own name for its administrator."""


class ServerMissing(Exception):
    """There is no such server, and why."""


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """The URL of a Redis that appends every write to a file and syncs it once a second, its default. Raises `ServerMissing`."""
    program = _program("redis-server", "redis-server")
    socket = _socket(folder / "redis.sock")
    command = [program, "--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", "", "--appendonly", "yes"]
    with _running(command, [], socket.is_socket):
        yield f"unix://{socket}"


@contextmanager
def postgres(folder: Path, databases: Sequence[str]) -> Iterator[str]:
    """The folder with the socket of a PostgreSQL that has these databases, its settings the default ones. Raises `ServerMissing`."""
    programs = Path(_program("postgres", "postgresql", "usr/lib/postgresql/*/bin")).parent
    _socket(folder / ".s.PGSQL.5432")
    user = _hand_over(folder) if os.geteuid() == 0 else []
    cluster = folder / "cluster"
    _call([*user, str(programs / "initdb"), "-D", str(cluster), "-A", "trust", "-U", POSTGRES, "-E", "UTF8"])
    server = [str(programs / POSTGRES), "-D", str(cluster), "-k", str(folder), "-c", "listen_addresses="]
    client = ["-h", str(folder), "-U", POSTGRES]
    with _running(server, user, lambda: _succeeds([str(programs / "pg_isready"), *client])):
        for database in databases:
            _call([str(programs / "createdb"), *client, database])
        yield str(folder)


def _program(name: str, package: str, places: str = "") -> str:
    """Where it is, after its package was installed if need be. `places` is a pattern of folders, from the root on, the last of which
    goes before PATH."""
    if not (found := _found(name, places)):
        if why := install(package):
            raise ServerMissing(f"{name} is not here, and {why}")
        found = _found(name, places)
    if not found:
        raise ServerMissing(f"{name} is not here, although the package {package} is")
    if shutil.which("setpriv") is None:
        raise ServerMissing("setpriv is not here, which ends servers with the benchmark; the package util-linux brings it")
    return found


def _found(name: str, places: str) -> str:
    elsewhere = sorted(Path("/").glob(f"{places}/{name}")) if places else []
    return str(elsewhere[-1]) if elsewhere else shutil.which(name) or ""


def _socket(path: Path) -> Path:
    if len(os.fsencode(path)) > LONGEST_SOCKET:
        raise ServerMissing(f"the folder for temporary files has too long a path for a socket: {path.parent}")
    return path


def _hand_over(folder: Path) -> list[str]:
    """Give the folder to the user that PostgreSQL runs as; returns how to become that user."""
    try:
        user = pwd.getpwnam(POSTGRES)
    except KeyError as exc:
        raise ServerMissing(f"PostgreSQL does not run as root, and there is no user {POSTGRES}") from exc
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@contextmanager
def _running(command: Sequence[str], user: Sequence[str], ready: Callable[[], bool]) -> Iterator[None]:
    """A server that has said that it is ready; at the end it is interrupted, and killed if that does not help."""
    # The kernel forgets the signal at the parent's death when the user changes, so that comes first.
    bound = ["setpriv", "--pdeathsig", "INT", *command]
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen([*user, *bound], stdin=subprocess.DEVNULL, stdout=complaints, stderr=complaints)
        try:
            deadline = time.monotonic() + READY_S
            while not ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    complaints.seek(0)
                    raise ServerMissing(f"{Path(command[0]).name} did not start: {_last_line(complaints.read())}")
                time.sleep(LOOK_S)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOPPED_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _call(command: Sequence[str]) -> None:
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except OSError as exc:
        raise ServerMissing(f"{command[0]} can't be run: {exc}") from exc
    if result.returncode != 0:
        raise ServerMissing(f"{' '.join(command)} failed: {_last_line(result.stdout)}")


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it did not say why"
